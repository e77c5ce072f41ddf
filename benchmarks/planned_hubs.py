"""The two hubs that opened in Dundee in 2018, as the planner would have seen them: `python -m benchmarks.planned_hubs`.

Each hub is a candidate for the planner, with its position, plugs and power; the planner reads only the records before
it opened. The drivers that the planner expects it to attract, take from its neighbours and recover are compared with
those recorded after it opened (`benchmarks.hubs`). Writes docs/results/planned-hubs.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

import numpy as np
import polars as pl

from benchmarks.data_sets import DUNDEE, read_records
from benchmarks.hubs import HUBS, RAPID_KW, WEEKS, Comparison, compare, used_stations
from unmet.demand.panel import Panel
from unmet.estimation.lost_demand import LostDemand
from unmet.planning.candidates import Candidates, score_candidates
from unmet.planning.changes import changed_world
from unmet.planning.drivers import demand_of
from unmet.records.sessions import Records

PAGE = Path(__file__).parents[1] / "docs" / "results" / "planned-hubs.md"
HUB_KW = 50.0
INTERVAL = (0.05, 0.95)


@dataclass(frozen=True, slots=True)
class Predicted:
    """The planner's prediction for a hub, in drivers per week, (draws,) each."""

    plugs: int
    attracted: np.ndarray
    taken: np.ndarray
    recovered: np.ndarray


def predict(name: str, records: Records, whole: LostDemand, opened: object) -> Predicted:
    """Score the hub as a candidate, from the records before it opened."""
    stations = used_stations(records)
    hub = stations.filter((pl.col("kw") > RAPID_KW) & pl.col("name").str.contains(name))
    plugs = int(whole.panel_.stations.filter(pl.col("station_id").is_in(hub["station_id"].implode()))["capacity"].sum())
    past = records.sessions.filter(pl.col("start") < opened)
    panel = Panel(past, records.stations, regions="station", time_zone=records.time_zone)
    world = changed_world(demand_of(LostDemand().fit(panel)))
    lat, lon = (np.array([float(hub[column].to_numpy().mean())]) for column in ("lat", "lon"))
    places = Candidates((name,), lat, lon, (None,), (HUB_KW,))
    (score,) = score_candidates(world, places, plugs)
    curve = score.supply.curves[None]
    attracted, taken = (part.drivers[:, part.at(plugs)] for part in (score.attracted, score.taken))
    return Predicted(plugs, attracted, taken, curve.drivers[:, curve.at(plugs)])


INTRODUCTION = f"""Written by `python -m benchmarks.planned_hubs` from Dundee's open records. The planner is given each
hub as a candidate, with its position, plugs and power, and only the records from before it opened. The outcome is that
of [docs/hubs.md](../hubs.md), {WEEKS} weeks after the opening. Drivers per week; intervals are 90 %."""
SHOWN = """The planner counts drivers who were recorded at the neighbours, or lost there. It cannot predict drivers
who come only because of the hub: in Dundee, they were most of its arrivals. A plan's gain at a new site is therefore
a lower bound on its use, not a forecast of its sales."""


def page(rows: list[tuple[Comparison, Predicted]]) -> str:
    """The comparison as Markdown."""

    def span(draws: np.ndarray) -> str:
        low, high = np.quantile(draws, INTERVAL)
        return f"{draws.mean():.0f} ({low:.0f} to {high:.0f})"

    lines = [
        "# Two hubs as the planner would have seen them",
        "",
        fill(INTRODUCTION, 120),
        "",
        "| drivers per week | " + " | ".join(f"{one.name}, {one.opened:%-d %B %Y}" for one, _ in rows) + " |",
        "| --- |" + " --- |" * len(rows),
    ]
    taken = [one.trend * (one.near.before + one.between.before) - one.near.after - one.between.after for one, _ in rows]
    recovered = [one.trend * one.lost - one.left for one, _ in rows]
    for name, cells in (
        ("plugs of the hub", [str(predicted.plugs) for _, predicted in rows]),
        ("**predicted**: attracts", [span(predicted.attracted) for _, predicted in rows]),
        ("of which taken from neighbours", [span(predicted.taken) for _, predicted in rows]),
        ("of which lost so far: its gain", [span(predicted.recovered) for _, predicted in rows]),
        ("**outcome**: arrivals at the hub", [f"{one.hub.after:.0f}" for one, _ in rows]),
        ("taken from rapid chargers within 3 km", [span(values) for values in taken]),
        ("lost demand recovered, by the estimate", [span(values) for values in recovered]),
        ("arrivals over the prediction",
         [f"{one.hub.after / max(float(predicted.attracted.mean()), 1e-9):.1f} times" for one, predicted in rows]),
    ):  # fmt: skip
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += [
        "",
        fill(SHOWN, 120),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    """Predict both hubs and write the page."""
    records = read_records(DUNDEE)
    panel = Panel(records.sessions, records.stations, regions="station", time_zone=records.time_zone)
    whole = LostDemand().fit(panel)
    rows = []
    for name in HUBS:
        one = compare(name, records, whole)
        rows.append((one, predict(name, records, whole, one.opened)))
    PAGE.write_text(page(rows), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
