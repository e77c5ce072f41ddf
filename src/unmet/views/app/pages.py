"""The pages: a Dash app whose address contains the whole view."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from anyio.to_thread import run_sync
from dash import Dash, Input, Output, State, ctx, dcc, html, no_update
from fastapi import FastAPI
from pydantic import ValidationError

from unmet import __version__
from unmet.errors import InputError
from unmet.views.app import state as app_state
from unmet.views.app.address import BUDGET, PLUGS, TABS, View
from unmet.views.app.city_tab import (
    changed_list,
    city_answer,
    city_facts,
    city_layout,
    region_options,
    station_options,
)
from unmet.views.app.jobs import Job
from unmet.views.app.live_city import Answer
from unmet.views.app.parts import aria_label, job_box, problem
from unmet.views.app.run_tabs import (
    budget_marks,
    budget_scale,
    forecast_layout,
    forecast_result,
    plan_layout,
    plan_result,
    records_layout,
    records_result,
)
from unmet.views.figures.live_city import ALL, CITY_DAYS, CITY_HOURS, CITY_MAP, CityView

__all__ = ["make_pages"]

TITLES = {"city": "City", "records": "Records", "plan": "Plan", "forecast": "Forecast"}
JOB_TABS = ("records", "plan", "forecast")
"""Tabs whose answers come from jobs."""
TICK_MS = 700  # time between two looks at the progress of jobs
CONTROLS = {
    "cars": "cars", "growth": "growth", "queue": "queue", "share": "share", "region": "region", "station": "station",
    "records-zone": "zone", "records-waiting": "waiting", "records-spill": "spill", "plan-by": "by", "plan-add": "add",
    "plan-budget": "budget", "plan-plug-cost": "plug_cost", "plan-site-cost": "site_cost", "plan-most": "most",
    "forecast-hours": "hours",
}  # fmt: skip
"""Controls by their id, and the part of the view that each sets."""
OPTIONAL = frozenset({"zone", "waiting", "spill", "most", "station"})
"""Parts of the view that may be left empty."""
PLAN_TRIGGERS = ("plan-by", "plan-add", "plan-budget")
"""Controls that start a new plan when they are moved."""


def make_pages(server: FastAPI, state: app_state.State) -> Dash:
    """Add the pages to a server."""
    pages = Dash(__name__, server=server, title="unmet", update_title=None, serve_locally=True, assets_folder="assets")  # type: ignore[arg-type]
    pages.backend.websocket_capability = False  # the app needs no websockets, and the guard refuses them
    # Dash puts its scripts into a footer, which screen readers would announce as a second footer.
    index = pages.index_string.replace("<html>", '<html lang="en">')
    pages.index_string = index.replace("<footer>", "<div>").replace("</footer>", "</div>")
    pages.layout = _layout
    _sync_address(pages, state)
    _draw_city(pages, state)
    _draw_runs(pages, state)
    _start_jobs(pages, state)
    _watch_jobs(pages, state)
    return pages


def _layout() -> Any:
    bodies = {"city": city_layout, "records": records_layout, "plan": plan_layout, "forecast": forecast_layout}
    return html.Div(
        [
            dcc.Location(id="address", refresh=False),
            dcc.Interval(id="tick", interval=TICK_MS, disabled=True),
            dcc.Store(id="finished"),
            dcc.Store(id="plan-request"),
            *(dcc.Store(id=f"{name}-job") for name in JOB_TABS),
            *(dcc.Store(id=f"{name}-cancelled") for name in JOB_TABS),
            html.Header([html.H1("unmet"), html.Nav(id="tabs", **aria_label("Tabs"))]),
            html.Main([html.Div(bodies[name](), id=f"tab-{name}", hidden=name != TABS[0]) for name in TABS]),
            html.Footer(
                ["unmet ", __version__, " · ", html.A("API", href="/docs"), " · to share this view, copy its address"]
            ),
        ]
    )


def _sync_address(pages: Dash, state: app_state.State) -> None:
    """Keep the address and the controls in step: each change of one sets the other."""

    @pages.callback(
        Output("address", "search"),
        # Options are set together with values: a dropdown drops a value that is not among its options.
        Output("region", "options"),
        Output("station", "options"),
        *(Output(name, "value") for name in CONTROLS),
        Output("station-plugs", "value"),
        Input("address", "search"),
        *(Input(name, "value") for name in CONTROLS),
        Input("city-map", "clickData"),
        Input("apply", "n_clicks"),
        Input("undo", "n_clicks"),
        Input("finished", "data"),
        State("station-plugs", "value"),
    )
    async def follow(search: str, *given: Any) -> tuple[Any, ...]:
        *values, clicked, _applied, _undone, finished, plugs = given
        view, cause = View.read(search), ctx.triggered_id
        before = view
        if cause in CONTROLS:
            view = _with_value(view, CONTROLS[str(cause)], dict(zip(CONTROLS, values, strict=True))[str(cause)])
        elif cause == "city-map" and clicked:
            view = await run_sync(_clicked, state, view, clicked["points"][0])
        elif cause == "apply" and view.station and plugs is not None:
            view = replace(view, plugs=View.plugs_text(view.changed() | {view.station: int(plugs)}))
        elif cause == "undo":
            view = replace(view, plugs="")
        elif cause == "finished" and finished:
            view = _with_jobs(view, finished)
        # A late answer that changes nothing must not take the visitor back from a tab opened in the meantime.
        new = no_update if cause in (None, "address") or view == before else view.search()
        shown: dict[str, Any] = {name: getattr(view, part) for name, part in CONTROLS.items()}
        shown = {name: None if value == "" else value for name, value in shown.items()}
        choices: tuple[Any, Any] = (no_update, no_update)
        station_plugs: Any = no_update
        if view.tab == "city":
            choices = await run_sync(_choices, state, view)
            if cause in (None, "address", "station", "city-map") and view.station:
                station_plugs = await run_sync(_plugs_now, state, view)
        else:
            shown |= {"region": no_update, "station": no_update}
        return new, *choices, *shown.values(), station_plugs

    @pages.callback(
        *(Output(f"tab-{name}", "hidden") for name in TABS), Output("tabs", "children"), Input("address", "search")
    )
    async def show_tab(search: str) -> tuple[Any, ...]:
        view = View.read(search)
        links = [
            html.Span(
                dcc.Link(TITLES[name], href=replace(view, tab=name).search(), refresh=False, id=f"to-{name}"),
                className="current" if name == view.tab else "",
            )
            for name in TABS
        ]
        return *(name != view.tab for name in TABS), links


def _with_value(view: View, part: str, value: Any) -> View:
    """The view after a control was set. An empty optional control resets its part; an invalid value changes nothing."""
    if value in (None, ""):
        return replace(view, **{part: getattr(View(), part)}) if part in OPTIONAL else view
    return View.read(replace(view, **{part: value}).search())


def _with_jobs(view: View, finished: dict[str, str]) -> View:
    """The view once jobs are done; new records discard the plan and the forecast of the old ones."""
    if "records" in finished:
        view = replace(view, run=finished["records"], plan="", forecast="")
    return replace(view, plan=finished.get("plan", view.plan), forecast=finished.get("forecast", view.forecast))


def _clicked(state: app_state.State, view: View, point: dict[str, Any]) -> View:
    """The view after a click on a station or a region of the map; a click on the current region deselects it."""
    if "customdata" in point:
        station, region, _ = point["customdata"]
        return replace(view, station=station, region=region)
    region = state.city.regions[point["curveNumber"]]  # the map draws the regions first, in this order
    return replace(view, region=ALL if region == view.region else region)


def _choices(state: app_state.State, view: View) -> tuple[Any, Any]:
    """Options of the dropdowns for regions and stations."""
    try:
        answer = state.city.ask(view.question())
    except (InputError, ValidationError):
        return no_update, no_update  # the error is shown in place of the answer
    return region_options(answer), station_options(answer)


def _plugs_now(state: app_state.State, view: View) -> Any:
    """Plugs of the station in view, including changes."""
    now = dict(state.city.stations.select("station_id", "plugs").iter_rows())
    return (now | view.changed()).get(view.station)


CITY_FIGURES = (CITY_MAP, CITY_DAYS, CITY_HOURS)
UNCHANGED: tuple[Any, ...] = (no_update,) * 11  # all outputs of the city tab except the problem, which is the last


def _draw_city(pages: Dash, state: app_state.State) -> None:
    @pages.callback(
        Output("city-answer", "children"),
        Output("city-facts", "children"),
        *(Output(figure.name, "figure") for figure in CITY_FIGURES),
        *(Output(f"{figure.name}-caption", "children") for figure in CITY_FIGURES),
        *(Output(f"{figure.name}-title", "children") for figure in CITY_FIGURES[1:]),
        Output("changed", "children"),
        Output("city-problem", "children"),
        Input("address", "search"),
    )
    async def draw(search: str) -> tuple[Any, ...]:
        view = View.read(search)
        if view.tab != "city":
            return *UNCHANGED, no_update
        try:
            answer, unchanged, now = await run_sync(_ask, state, view)
        except (InputError, ValidationError) as error:
            text = str(error) if isinstance(error, InputError) else "A value is out of range."
            return *UNCHANGED, problem(text)
        if view.region != ALL and view.region not in answer.regions:
            return *UNCHANGED, problem(f"There is no region {view.region}: try {answer.regions[0]}.")
        city_view = CityView(answer, view.region, view.station or None, state.layers)
        return (
            city_answer(answer),
            city_facts(answer, unchanged),
            *(figure.draw(city_view) for figure in CITY_FIGURES),
            *(figure.caption(city_view) for figure in CITY_FIGURES),
            *(f"{figure.title}, {city_view.where}" for figure in CITY_FIGURES[1:]),
            changed_list(view, now),
            None,
        )


def _ask(state: app_state.State, view: View) -> tuple[Answer, Answer, dict[str, int]]:
    """The answer, the answer without changed plugs, and the unchanged plugs."""
    answer = state.city.ask(view.question())
    unchanged = state.city.ask(replace(view, plugs="").question()) if view.plugs else answer
    return answer, unchanged, dict(state.city.stations.select("station_id", "plugs").iter_rows())


def _draw_runs(pages: Dash, state: app_state.State) -> None:
    for tab in JOB_TABS:

        @pages.callback(Output(f"{tab}-result", "children"), Input("address", "search"))
        async def draw(search: str, tab: str = tab) -> Any:
            view = View.read(search)
            return no_update if view.tab != tab else await run_sync(_result, state, view, tab)


def _result(state: app_state.State, view: View, tab: str) -> Any:
    """The content of the records, plan or forecast tab."""
    name = {"records": view.run, "plan": view.plan, "forecast": view.forecast}[tab] or app_state.GIVEN
    if name == app_state.GIVEN != view.run:  # the runs given at the start belong to other records
        return plan_result(None, name) if tab == "plan" else forecast_result(None, name)
    try:
        runs = state.runs(name)
    except KeyError:
        return problem("This run no longer exists: results are removed when the server stops.")
    except InputError as error:
        return problem(str(error))
    if tab == "records":
        return records_result(runs.lost, name)
    return plan_result(runs.plan, name, runs.lost) if tab == "plan" else forecast_result(runs.forecast, name)


def _start_jobs(pages: Dash, state: app_state.State) -> None:
    """Buttons and sliders start jobs."""

    @pages.callback(
        Output("plan-job", "data"),
        Output("plan-problem", "children"),
        Output("plan-request", "data"),
        Input("plan-start", "n_clicks"),
        *(Input(name, "value") for name in PLAN_TRIGGERS),
        State("address", "search"),
        State("plan-job", "data"),
        State("plan-request", "data"),
    )
    async def plan(
        _clicks: int, by: str, add: float, budget: float, search: str, before: str | None, last: dict[str, Any] | None
    ) -> tuple[Any, Any, Any]:
        view = replace(View.read(search), by=by, add=float(add), budget=float(budget))
        request = view.plan_request()
        # The first call, when a page opens, only reports the values of the controls.
        moved = last is not None and last != request and not _is_planned(state, view, request)
        if ctx.triggered_id != "plan-start" and not moved:
            return no_update, no_update, request
        if before and _job_of(state, before):
            state.jobs.cancel(before)
        return *_started(lambda: state.start_plan(view.run, request)), request

    @pages.callback(
        Output("plan-by-plugs", "hidden"),
        Output("plan-by-budget", "hidden"),
        Output("plan-budget", "max"),
        Output("plan-budget", "step"),
        Output("plan-budget", "marks"),
        Input("plan-by", "value"),
        Input("address", "search"),
    )
    async def scale(by: str, search: str) -> tuple[Any, ...]:
        top, step = budget_scale(View.read(search))
        return by != PLUGS, by != BUDGET, top, step, budget_marks(top)

    @pages.callback(
        Output("forecast-job", "data"),
        Output("forecast-problem", "children"),
        Input("forecast-start", "n_clicks"),
        State("address", "search"),
        prevent_initial_call=True,
    )
    async def forecast(_clicks: int, search: str) -> tuple[Any, Any]:
        view = View.read(search)
        return _started(lambda: state.start_forecast(view.run, int(view.hours)))


def _watch_jobs(pages: Dash, state: app_state.State) -> None:
    """A timer shows the progress of jobs, and updates the address when they end; buttons cancel them."""

    @pages.callback(
        *(Output(f"{name}-progress", "children") for name in JOB_TABS),
        *(Output(f"{name}-cancel", "hidden") for name in JOB_TABS),
        Output("tick", "disabled"),
        Output("finished", "data"),
        Input("tick", "n_intervals"),
        *(Input(f"{name}-job", "data") for name in JOB_TABS),
        State("address", "search"),
        prevent_initial_call=True,
    )
    async def watch(_ticks: int, *given: Any) -> tuple[Any, ...]:
        *ids, search = given
        jobs = [_job_of(state, job_id) for job_id in ids]
        view = View.read(search)
        shown = {"records": view.run, "plan": view.plan, "forecast": view.forecast}
        done = {
            name: job.id
            for name, job in zip(JOB_TABS, jobs, strict=True)
            if job is not None and job.state == "done" and shown[name] != job.id
        }
        idle = [job is None or job.state not in ("waiting", "running") for job in jobs]
        return *map(job_box, jobs), *idle, all(idle) and not done, done or no_update

    for name in JOB_TABS:

        @pages.callback(
            Output(f"{name}-cancelled", "data"),
            Input(f"{name}-cancel", "n_clicks"),
            State(f"{name}-job", "data"),
            prevent_initial_call=True,
        )
        async def cancel(clicks: int, job_id: str | None) -> Any:
            if clicks and job_id:
                state.jobs.cancel(job_id)
            return clicks


def _is_planned(state: app_state.State, view: View, request: dict[str, Any]) -> bool:
    """Whether the plan in view is already the requested one, for example after going back to it."""
    job = _job_of(state, view.plan)
    return job is not None and request.items() <= job.request.items()


def _job_of(state: app_state.State, job_id: str | None) -> Job | None:
    """A job by its id; None if it no longer exists."""
    try:
        return state.jobs.named(job_id) if job_id else None
    except KeyError:
        return None


def _started(start: Any) -> tuple[Any, Any]:
    try:
        return start().id, None
    except KeyError:
        return no_update, problem("This run no longer exists: upload the records again.")
    except InputError as error:
        return no_update, problem(str(error))
