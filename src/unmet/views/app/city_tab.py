"""The city tab: what-if questions, and their answers on a map and over time."""

from __future__ import annotations

from typing import Any

from dash import dcc, html

from unmet.simulation.queues import QUEUES
from unmet.views.app.address import View
from unmet.views.app.live_city import Answer
from unmet.views.app.parts import control_box, facts, field, figure_box
from unmet.views.figures.live_city import ALL, CURVE_HEIGHT, MAP_HEIGHT
from unmet.views.theme import count, energy, percent

__all__ = ["changed_list", "city_answer", "city_facts", "city_layout", "region_options", "station_options"]

MAX_PLUGS = 99  # addresses allow two digits, see `unmet.views.app.address`
MAX_CARS_PERCENT = 5.7  # cars whose trips the built-in city knows, see `LiveCity.max_penetration`
ALOUD: dict[str, Any] = {"aria-live": "polite"}  # screen readers read changes aloud


def city_layout() -> Any:
    """Controls next to the map and curves."""
    queues = [{"label": QUEUES.named(name).title, "value": name} for name in QUEUES.names()]
    defaults = View()
    controls = [
        field(
            "Electric cars [% of all cars]",
            _number("cars", defaults.cars, 0.1, MAX_CARS_PERCENT, 0.1),
            f"Trips are known for {MAX_CARS_PERCENT} % of cars.",
        ),
        field("Growth of their number [%]", _number("growth", defaults.growth, -90, 100, 1)),
        field("Queue", dcc.Dropdown(queues, defaults.queue, id="queue", clearable=False, searchable=False)),
        field(
            "Own share of the stations [%]", _number("share", defaults.share, 1, 100, 1), "Competitors have the rest."
        ),
        field(
            "Region",
            dcc.Dropdown([{"label": "All regions", "value": ALL}], defaults.region, id="region", clearable=False),
            "Or click it on the map.",
        ),
        html.H2("Change a station"),
        field("Station", dcc.Dropdown([], None, id="station", placeholder="None"), "Or click it on the map."),
        field("Plugs", _number("station-plugs", None, 0, MAX_PLUGS, 1)),
        html.Button("Simulate", id="apply", className="primary", n_clicks=0),
        html.Button("Undo changes", id="undo", n_clicks=0),
        html.Div(id="changed"),
    ]
    answers = [
        html.H2("The city is being built …", id="city-answer", **ALOUD),
        html.Div(id="city-problem"),
        html.Div(id="city-facts"),
        html.Div(
            [
                html.Div(figure_box("city-map", "Where demand is lost", MAP_HEIGHT), id="city-map-box"),
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
    return html.Div([control_box("What if", controls), html.Div(answers)], className="columns")


def _number(name: str, value: float | None, low: float, high: float, step: float) -> Any:
    return dcc.Input(id=name, type="number", value=value, min=low, max=high, step=step, debounce=True)


def city_answer(answer: Answer) -> str:
    """The answer in one sentence."""
    totals = answer.totals
    return (
        f"{percent(totals['lost_share'], 1)} of charging demand is lost: {energy(totals['lost_kwh'])} wanted by "
        f"{count(int(totals['lost_drivers']), 'driver')}"
    )


def city_facts(answer: Answer, unchanged: Answer) -> Any:
    """Key numbers of the city, and how lost energy differs from the city with unchanged stations."""
    now, before = answer.totals, unchanged.totals
    difference = now["lost_kwh"] - before["lost_kwh"]
    changed = (
        ""
        if answer is unchanged
        else f", {energy(abs(difference))} {'more' if difference > 0 else 'less'} than without changes"
    )
    days = max(len(answer.days), 1)
    pairs = [
        (energy(now["lost_kwh"]), f"lost in {days} days{changed}"),
        (f"{now['lost_drivers']:,}", "drivers found no plug and left"),
        (f"{now['served_drivers']:,}", f"drivers charged, {energy(now['observed_kwh'])}"),
        (f"{now['mean_waited_minutes']:.1f} min", "was the mean wait of drivers who charged"),
    ]
    if now["competitors_kwh"] > 0:
        pairs.append((energy(now["competitors_kwh"]), "went to competitors"))
    note = f"{int(now['electric_cars']):,} electric cars, simulated in {answer.seconds:.2f} s."
    return html.Div([facts(pairs), html.P(note, className="note")])


def region_options(answer: Answer) -> list[dict[str, str]]:
    """Options of the region dropdown; the region that loses the largest share of its demand comes first."""
    rows = answer.region_rows().sort("lost_share", descending=True)
    options = [
        {"label": f"Region {name}: {percent(share, 1)} lost", "value": name}
        for name, share in rows.select("unique_id", "lost_share").iter_rows()
    ]
    return [{"label": "All regions", "value": ALL}, *options]


def station_options(answer: Answer) -> list[dict[str, str]]:
    """Options of the station dropdown; the station that loses the most energy comes first."""
    rows = answer.stations.sort("lost_kwh", "station_id", descending=[True, False])
    return [
        {"label": f"{name}: {count(plugs, 'plug')}, {energy(lost)} lost", "value": name}
        for name, plugs, lost in rows.select("station_id", "plugs", "lost_kwh").iter_rows()
    ]


def changed_list(view: View, plugs_before: dict[str, int]) -> Any:
    """Stations with a changed number of plugs, before and after."""
    items = [html.Li(f"{name}: {plugs_before.get(name, 0)} → {plugs} plugs") for name, plugs in view.changed().items()]
    return html.Ul(items) if items else html.P("No station is changed.", className="note")
