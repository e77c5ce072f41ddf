"""The pages: one Dash app whose whole view is its address."""

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
from unmet.views.app.address import TABS, View
from unmet.views.app.city_tab import changed_list, city_facts, city_layout
from unmet.views.app.live_city import Answer
from unmet.views.app.parts import aria_label, job_box, problem
from unmet.views.app.run_tabs import (
    forecast_layout,
    forecast_result,
    plan_layout,
    plan_result,
    records_layout,
    records_result,
)
from unmet.views.figures.live_city import ALL, CITY_DAYS, CITY_HOURS, CITY_MAP, CityView
from unmet.views.theme import energy

__all__ = ["make_pages"]

TITLES = {"city": "City", "records": "Records", "plan": "Plan", "forecast": "Forecast"}
LONG = ("records", "plan", "forecast")
"""Tabs whose answers take a while."""
TICK_MS = 700
CONTROLS = ("cars", "growth", "queue", "share", "region")


def make_pages(server: FastAPI, state: app_state.State) -> Dash:
    """Add the pages to a server."""
    pages = Dash(__name__, server=server, title="unmet", update_title=None, serve_locally=True, assets_folder="assets")  # type: ignore[arg-type]
    pages.backend.websocket_capability = False  # nothing here needs one, and the guard refuses them
    # Dash keeps its scripts in a footer, which would be a second one for screen readers.
    index = pages.index_string.replace("<html>", '<html lang="en">')
    pages.index_string = index.replace("<footer>", "<div>").replace("</footer>", "</div>")
    pages.layout = _layout
    _follow(pages, state)
    _draw_city(pages, state)
    _draw_runs(pages, state)
    _run_jobs(pages, state)
    return pages


def _layout() -> Any:
    bodies = {"city": city_layout, "records": records_layout, "plan": plan_layout, "forecast": forecast_layout}
    return html.Div(
        [
            dcc.Location(id="address", refresh=False),
            dcc.Interval(id="tick", interval=TICK_MS, disabled=True),
            dcc.Store(id="finished"),
            *(dcc.Store(id=f"{name}-job") for name in LONG),
            *(dcc.Store(id=f"{name}-cancelled") for name in LONG),
            html.Header([html.H1("unmet"), html.Nav(id="tabs", **aria_label("Tabs"))]),
            html.Main([html.Div(bodies[name](), id=f"tab-{name}", hidden=name != TABS[0]) for name in TABS]),
            html.Footer(
                ["unmet ", __version__, " · ", html.A("API", href="/docs"), " · the address holds this view: share it"]
            ),
        ]
    )


def _follow(pages: Dash, state: app_state.State) -> None:
    """Controls write the address, and the address sets the controls."""

    @pages.callback(
        Output("address", "search"),
        *(Output(name, "value") for name in CONTROLS),
        Output("station", "value"),
        Output("station-plugs", "value"),
        Input("address", "search"),
        *(Input(name, "value") for name in CONTROLS),
        Input("city-map", "clickData"),
        Input("station", "value"),
        Input("apply", "n_clicks"),
        Input("undo", "n_clicks"),
        Input("finished", "data"),
        State("station-plugs", "value"),
    )
    async def follow(
        search: str, cars: float, growth: float, queue: str, share: float, region: str, clicked: dict[str, Any] | None,
        station: str, _applied: int, _undone: int, finished: dict[str, str] | None, plugs: int | None,
    ) -> tuple[Any, ...]:  # fmt: skip
        view, cause = View.read(search), ctx.triggered_id
        chosen: tuple[Any, Any] = (no_update, no_update)
        if cause in CONTROLS:
            given = {"cars": cars, "growth": growth, "queue": queue, "share": share, "region": region or ALL}
            given = {name: value for name, value in given.items() if value is not None}
            view = View.read(replace(view, **given).search())  # type: ignore[arg-type]
        elif cause == "city-map" and clicked:
            name, where, _ = clicked["points"][0]["customdata"]
            view, chosen = replace(view, region=where), (name, await run_sync(_plugs_now, state, view, name))
        elif cause == "station" and station:
            chosen = (no_update, await run_sync(_plugs_now, state, view, station.strip()))
        elif cause == "apply" and station and plugs is not None:
            view = replace(view, plugs=View.of_plugs(view.changed() | {station.strip(): int(plugs)}))
        elif cause == "undo":
            view = replace(view, plugs="")
        elif cause == "finished" and finished:
            names: dict[str, Any] = {"run" if name == "records" else name: job for name, job in finished.items()}
            view = replace(view, **names)
        new = no_update if cause in (None, "address") else view.search()
        return new, *(getattr(view, name) for name in CONTROLS), *chosen

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


def _plugs_now(state: app_state.State, view: View, station: str) -> Any:
    """Plugs of a station, changes included."""
    changed = view.changed()
    if station in changed:
        return changed[station]
    now = dict(state.city.stations.select("station_id", "plugs").iter_rows())
    return now.get(station)


def _draw_city(pages: Dash, state: app_state.State) -> None:
    @pages.callback(
        Output("city-answer", "children"),
        Output("city-problem", "children"),
        Output("city-facts", "children"),
        Output("city-map", "figure"),
        Output("city-days", "figure"),
        Output("city-hours", "figure"),
        Output("changed", "children"),
        Input("address", "search"),
        State("station", "value"),
    )
    async def draw(search: str, station: str) -> tuple[Any, ...]:
        view = View.read(search)
        if view.tab != "city":
            return (no_update,) * 7
        try:
            answer, usual, now = await run_sync(_ask, state, view)
        except (InputError, ValidationError) as error:
            text = str(error) if isinstance(error, InputError) else "That is out of range."
            return no_update, problem(text), *(no_update,) * 5
        if view.region != ALL and view.region not in answer.regions:
            return no_update, problem(f"There is no region {view.region}: try {answer.regions[0]}."), *(no_update,) * 5
        seen = CityView(answer, view.region, station or None)
        totals = answer.totals
        said = (
            f"{100 * totals['lost_share']:.1f} % of charging demand is lost: {energy(totals['lost_kwh'])} wanted by "
            f"{totals['lost_drivers']:,} drivers"
        )
        figures = (figure.draw(seen) for figure in (CITY_MAP, CITY_DAYS, CITY_HOURS))
        return said, None, city_facts(answer, usual), *figures, changed_list(view, now)


def _ask(state: app_state.State, view: View) -> tuple[Answer, Answer, dict[str, int]]:
    """The answer, that without changed plugs, and the plugs as they are."""
    answer = state.city.ask(view.question())
    usual = state.city.ask(replace(view, plugs="").question()) if view.plugs else answer
    return answer, usual, dict(state.city.stations.select("station_id", "plugs").iter_rows())


def _draw_runs(pages: Dash, state: app_state.State) -> None:
    for tab in LONG:

        @pages.callback(Output(f"{tab}-result", "children"), Input("address", "search"))
        async def draw(search: str, tab: str = tab) -> Any:
            view = View.read(search)
            return no_update if view.tab != tab else await run_sync(_result, state, view, tab)


def _result(state: app_state.State, view: View, tab: str) -> Any:
    """What a tab shows of the runs in view."""
    name = {"records": view.run, "plan": view.plan, "forecast": view.forecast}[tab] or app_state.GIVEN
    try:
        runs = state.runs(name)
    except KeyError:
        return problem("This run is gone: jobs end with the server that ran them.")
    except InputError as error:
        return problem(str(error))
    if tab == "records":
        return records_result(runs.lost, name)
    return plan_result(runs.plan, name) if tab == "plan" else forecast_result(runs.forecast, name)


def _run_jobs(pages: Dash, state: app_state.State) -> None:
    """Buttons start jobs; a clock shows how they go, and tells the address when they end."""

    @pages.callback(
        Output("plan-job", "data"),
        Output("plan-problem", "children"),
        Input("plan-start", "n_clicks"),
        State("plan-plugs", "value"),
        State("plan-most", "value"),
        State("plan-cost", "value"),
        State("address", "search"),
        prevent_initial_call=True,
    )
    async def plan(_clicks: int, plugs: int, most: int | None, cost: float | None, search: str) -> tuple[Any, Any]:
        asked = {"plugs": plugs, "most_per_site": most, "plug_cost": cost}
        return _started(lambda: state.start_plan(View.read(search).run, asked))

    @pages.callback(
        Output("forecast-job", "data"),
        Output("forecast-problem", "children"),
        Input("forecast-start", "n_clicks"),
        State("forecast-hours", "value"),
        State("address", "search"),
        prevent_initial_call=True,
    )
    async def forecast(_clicks: int, hours: int | None, search: str) -> tuple[Any, Any]:
        return _started(lambda: state.start_forecast(View.read(search).run, int(hours or 168)))

    @pages.callback(
        *(Output(f"{name}-progress", "children") for name in LONG),
        *(Output(f"{name}-cancel", "hidden") for name in LONG),
        Output("tick", "disabled"),
        Output("finished", "data"),
        Input("tick", "n_intervals"),
        *(Input(f"{name}-job", "data") for name in LONG),
        State("address", "search"),
        prevent_initial_call=True,
    )
    async def watch(_ticks: int, *given: Any) -> tuple[Any, ...]:
        *ids, search = given
        jobs = [None if not job_id else state.jobs.named(job_id) for job_id in ids]
        view = View.read(search)
        shown = {"records": view.run, "plan": view.plan, "forecast": view.forecast}
        done = {
            name: job.id
            for name, job in zip(LONG, jobs, strict=True)
            if job is not None and job.state == "done" and shown[name] != job.id
        }
        idle = [job is None or job.state not in ("waiting", "running") for job in jobs]
        return *map(job_box, jobs), *idle, all(idle) and not done, done or no_update

    for name in LONG:

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


def _started(start: Any) -> tuple[Any, Any]:
    try:
        return start().id, None
    except KeyError:
        return no_update, problem("This run is gone: upload the records again.")
    except InputError as error:
        return no_update, problem(str(error))
