"""The tabs on runs: records and their lost demand, a plan, a forecast."""

from __future__ import annotations

from typing import Any

from dash import dcc, html

from unmet.views.app.address import BUDGET, PLUGS, View
from unmet.views.app.parts import control_box, facts, field, graph, labelled, plain_table, problem, prose
from unmet.views.figures.lost_week import LOST_WEEK, lost_when
from unmet.views.figures.plan_gain import PLAN_GAIN
from unmet.views.figures.plan_map import PLAN_MAP, plan_has_positions
from unmet.views.figures.recovered_weeks import RECOVERED_WEEKS
from unmet.views.figures.site_map import SITE_MAP, has_positions
from unmet.views.first_screen import first_screen, method
from unmet.views.page import PageSection
from unmet.views.report_sections import build, forecast_section, quality
from unmet.views.stored import StoredForecast, StoredLost, StoredPlan

__all__ = [
    "budget_marks",
    "budget_scale",
    "forecast_layout",
    "forecast_result",
    "plan_layout",
    "plan_result",
    "records_layout",
    "records_result",
]

GIVEN = "given"  # as in `unmet.views.app.state`: the runs that the app was started with
MAX_PLUGS = 60  # end of the slider of plugs to add
MAX_SITES = 20  # the budget slider ends at the cost of this many sites and `MAX_PLUGS` plugs


def records_layout() -> Any:
    """An area to drop files, assumptions, and the lost demand of the records."""
    controls = [
        html.Div(id="records-drop", className="drop"),
        html.H2("Assumptions"),
        field(
            "Time zone",
            dcc.Input(id="records-zone", type="text", placeholder="Europe/London", debounce=True),
            "For times without a time zone; UTC if left empty.",
        ),
        field("Drivers who wait [%]", _percent("records-waiting"), "Estimated if left empty."),
        field("Others who charge nearby [%]", _percent("records-spill"), "Estimated if left empty."),
        html.Button("Estimate lost demand", id="records-start", className="primary"),
        html.P(id="records-status", role="status"),
    ]
    return _tab(controls, "records")


def _percent(name: str) -> Any:
    return dcc.Input(id=name, type="number", min=0, max=100, step=1, debounce=True)


def plan_layout() -> Any:
    """A slider for the number of plugs or the budget, and the plan."""
    defaults = View()
    kinds = [{"label": "Number of plugs", "value": PLUGS}, {"label": "Budget", "value": BUDGET}]
    marks = {n: str(n) for n in (1, 20, 40, MAX_PLUGS)}
    top, step = budget_scale(defaults)
    money: dict[str, Any] = {"type": "number", "min": 0, "step": "any", "debounce": True}
    controls = [
        field("Plan by", dcc.Dropdown(kinds, defaults.by, id="plan-by", clearable=False, searchable=False)),
        html.Div(
            labelled("Plugs to add", _slider("plan-add", 1, MAX_PLUGS, 1, defaults.add, marks)), id="plan-by-plugs"
        ),
        html.Div(
            [
                labelled("Budget", _slider("plan-budget", 0, top, step, defaults.budget, budget_marks(top))),
                field("Cost of a plug", dcc.Input(id="plan-plug-cost", value=defaults.plug_cost, **money)),
                field(
                    "Cost of a site",
                    dcc.Input(id="plan-site-cost", value=defaults.site_cost, **money),
                    "Paid once for each site that gets plugs. Both costs are round numbers to start from: enter "
                    "your own, in your currency.",
                ),
            ],
            id="plan-by-budget",
            hidden=True,
        ),
        field(
            "At most per site",
            dcc.Input(id="plan-most", type="number", min=1, max=200, step=1, debounce=True),
            "No limit if left empty.",
        ),
        html.Button("Plan", id="plan-start", className="primary", n_clicks=0),
    ]
    return _tab(controls, "plan")


def _slider(name: str, low: float, high: float, step: float, value: float, marks: dict[Any, str]) -> Any:
    tooltip = {"placement": "bottom", "always_visible": True}
    return dcc.Slider(low, high, step, value=value, marks=marks, id=name, allow_direct_input=False, tooltip=tooltip)


def budget_scale(view: View) -> tuple[float, float]:
    """The end of the budget slider, and its step (half the cost of a plug); the end is a multiple of the step."""
    max_budget = max(MAX_PLUGS * view.plug_cost + MAX_SITES * view.site_cost, view.budget)
    step = max(view.plug_cost / 2, 1.0)
    return step * -(-max_budget // step), step


def budget_marks(top: float) -> dict[float, str]:
    """Marks of the budget slider, which ends at `top`."""
    return {0: "0", top / 2: short_money(top / 2), top: short_money(top)}


def short_money(amount: float) -> str:
    """An amount as text that fits under a slider, 150000 as "150k"."""
    for size, letter in ((1e9, "bn"), (1e6, "M"), (1e3, "k")):
        if amount >= size:
            return f"{amount / size:.3g}{letter}"
    return f"{amount:.3g}"


def forecast_layout() -> Any:
    """A button, and the forecast of the hours ahead."""
    controls = [
        field(
            "Hours ahead",
            dcc.Input(id="forecast-hours", type="number", min=1, max=168, step=1, value=168, debounce=True),
            "Up to a week.",
        ),
        html.Button("Forecast", id="forecast-start", className="primary", n_clicks=0),
        html.P("A model is fitted to the records first, which takes a minute or more.", className="note"),
    ]
    return _tab(controls, "forecast")


TITLES = {"records": "Files and assumptions", "plan": "What to plan", "forecast": "What to forecast"}


def _tab(controls: list[Any], name: str) -> Any:
    cancel = html.Button("Cancel", id=f"{name}-cancel", n_clicks=0, hidden=True)
    answers = [html.Div(id=f"{name}-progress"), cancel, html.Div(id=f"{name}-problem"), html.Div(id=f"{name}-result")]
    return html.Div([control_box(TITLES[name], controls), html.Div(answers)], className="columns")


def _links(name: str, files: tuple[str, ...], *, report: bool) -> Any:
    links = [html.A(file, href=f"/api/runs/{name}/files/{file}") for file in files]
    if report:
        links.append(html.A("Report to share", href=f"/api/runs/{name}/report", target="_blank"))
    return html.P(links, className="links")


def _section(section: PageSection) -> list[Any]:
    parts = [html.H3(section.heading), *(html.P(prose(text)) for text in section.paragraphs)]
    if section.table:
        parts.append(plain_table(section.table))
    if section.items:
        parts.append(html.Ul([html.Li(prose(item)) for item in section.items]))
    return parts


def records_result(lost: StoredLost | None, name: str) -> Any:
    """Lost demand: the answer, the sites and their map, when it was lost, data quality and the method."""
    if lost is None:
        return [html.H2("Drop a file of charging sessions"), html.P("It stays on the machine that runs this app.")]
    opening = first_screen(lost)
    parts: list[Any] = [problem(opening["warning"])] if opening["warning"] else []
    parts += [html.H2(opening["headline"]), html.P(prose(opening["lead"])), facts(opening["facts"])]
    parts.append(_links(name, ("sites.csv", "sites.geojson", "weeks.csv"), report=True))
    for section in opening["before"]:
        parts += _section(section)
        if section.name == "sites" and has_positions(lost):
            parts += graph(SITE_MAP, lost, "records-map")
    if lost_when(lost):
        parts += [*graph(LOST_WEEK, lost, "records-when"), html.P(lost_when(lost))]
    parts += graph(RECOVERED_WEEKS, lost, "records-weeks")
    return [*parts, *_section(quality(lost)), *_section(method(lost))]


def plan_result(plan: StoredPlan | None, name: str, lost: StoredLost | None = None) -> Any:
    """A plan: the answer, the map, the curve and the sites with reasons."""
    if plan is None:
        return [
            html.H2("Choose how many plugs to add"),
            html.P("The plan starts from the lost demand of the Records tab."),
        ]
    section = build(plan, lost)
    answer = str(plan.summary["answer"])
    parts: list[Any] = [html.H2(prose(answer))]
    if name == GIVEN:
        parts.append(
            html.P("This plan was given when the app started; move the slider to make another.", className="note")
        )
    # The section opens with the answer, which is already the heading.
    parts += [html.P(prose(text.removeprefix(f"{answer}. "))) for text in section.paragraphs]
    parts.append(_links(name, ("plan.csv", "plan.xlsx", "plan.geojson"), report=True))
    shown: Any = plan  # has the attributes that figures of a plan read
    if plan_has_positions(shown):
        parts += graph(PLAN_MAP, plan, "plan-map")
    if section.table:
        parts.append(plain_table(section.table))
    return [*parts, *graph(PLAN_GAIN, plan, "plan-gain")]


def forecast_result(forecast: StoredForecast | None, name: str) -> Any:
    """A forecast: the answer, the hours ahead and the regions."""
    if forecast is None:
        return [
            html.H2("Forecast the hours ahead"),
            html.P("The forecast starts from the records of the Records tab."),
        ]
    section = forecast_section(forecast)
    parts: list[Any] = [html.H2(section.paragraphs[0]), _links(name, ("forecast.csv",), report=True)]
    for figure, result in section.figures:
        parts += graph(figure, result, "forecast-fan")
    return [*parts, *([plain_table(section.table)] if section.table else [])]
