"""The city tab: ask what if, and see what drivers do."""

from __future__ import annotations

from typing import Any

from dash import dcc, html

from unmet.simulation.queues import QUEUES
from unmet.views.app.address import View
from unmet.views.app.live_city import Answer
from unmet.views.app.parts import facts, field, figure_box
from unmet.views.figures.live_city import CURVE_HEIGHT, MAP_HEIGHT
from unmet.views.theme import energy, percent

__all__ = ["changed_list", "city_facts", "city_layout"]

MOST_PLUGS = 99
ALOUD: dict[str, Any] = {"aria-live": "polite"}
MAP_NOTE = "The larger a circle, the more its station loses; the darker, the larger a share."


def city_layout() -> Any:
    """Controls beside the map and curves."""
    queues = [{"label": QUEUES.named(name).title, "value": name} for name in QUEUES.names()]
    usual = View()
    controls = [
        field(
            "Electric cars [% of all]", _number("cars", usual.cars, 0.1, 5.7, 0.1), "Trips are known of 5.7 % of cars."
        ),
        field("Growth of their number [%]", _number("growth", usual.growth, -90, 100, 1)),
        field("Queue", dcc.Dropdown(queues, usual.queue, id="queue", clearable=False, searchable=False)),
        field("Own share of the stations [%]", _number("share", usual.share, 1, 100, 1), "Others are competitors'."),
        field(
            "Region",
            dcc.Input(id="region", type="text", value=usual.region, debounce=True),
            "Or click the map; all for all.",
        ),
        html.H2("Change a station"),
        field("Station", dcc.Input(id="station", type="text", value="", debounce=True), "Click it on the map."),
        field("Plugs", _number("station-plugs", None, 0, MOST_PLUGS, 1)),
        html.Button("Simulate", id="apply", className="primary", n_clicks=0),
        html.Button("Undo changes", id="undo", n_clicks=0),
        html.Div(id="changed"),
    ]
    answers = [
        html.H2(id="city-answer", **ALOUD),
        html.Div(id="city-problem"),
        html.Div(id="city-facts"),
        html.Div(
            [
                html.Div(
                    [figure_box("city-map", "Where demand is lost", MAP_HEIGHT), html.P(MAP_NOTE, className="note")]
                ),
                html.Div(
                    [
                        figure_box("city-days", "Day by day", CURVE_HEIGHT),
                        figure_box("city-hours", "Hour by hour", CURVE_HEIGHT),
                    ]
                ),
            ],
            className="pair",
        ),
    ]
    return html.Div([html.Div(controls, className="controls"), html.Div(answers)], className="columns")


def _number(name: str, value: float | None, low: float, high: float, step: float) -> Any:
    return dcc.Input(id=name, type="number", value=value, min=low, max=high, step=step, debounce=True)


def city_facts(answer: Answer, usual: Answer) -> Any:
    """Numbers of the city, and how they differ from the city as it is."""
    now, before = answer.totals, usual.totals
    difference = now["lost_kwh"] - before["lost_kwh"]
    changed = (
        ""
        if answer is usual
        else f", {energy(abs(difference))} {'more' if difference > 0 else 'less'} than without changes"
    )
    pairs = [
        (energy(now["lost_kwh"]), f"lost{changed}"),
        (percent(now["lost_share"], 1), "of demand lost"),
        (f"{now['lost_drivers']:,}", "drivers found no plug"),
        (f"{now['mean_waited_minutes']:.1f} min", "waited on average"),
    ]
    if now["competitors_kwh"] > 0:
        pairs.append((energy(now["competitors_kwh"]), "went to competitors"))
    return facts(pairs)


def changed_list(view: View, now: dict[str, int]) -> Any:
    """Stations whose plugs were changed."""
    items = [html.Li(f"{name}: {now.get(name, 0)} → {plugs} plugs") for name, plugs in view.changed().items()]
    return html.Ul(items) if items else html.P("No station is changed.", className="note")
