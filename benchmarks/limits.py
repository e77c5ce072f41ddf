"""Where the estimate of lost demand fails, and by how much: `python -m benchmarks.limits`."""

from __future__ import annotations

import datetime as dt

import polars as pl

from unmet.city.build import build_city
from unmet.demand.panel import Panel, build_panel
from unmet.demand.unserved import Unserved
from unmet.records.formats.base import OUTAGES
from unmet.simulation.scenario import Scenario
from unmet.simulation.simulate import Outcome, prepare, simulate

ZONE = "Europe/Copenhagen"
DARK_FROM, WEEKS = dt.datetime(2019, 10, 7, tzinfo=dt.UTC), 3


def main() -> None:
    """Print lost arrivals and energy as estimated over the truth, with what the records lack."""
    city = build_city()
    outcome = simulate(prepare(city), Scenario(queue="first-come", penetration=0.05))
    lost = outcome.arrivals.filter(pl.col("outcome") == "lost")
    print("| records | lost drivers, estimated of the truth | lost energy |")
    print("| --- | ---: | ---: |")

    def tell(name: str, panel: Panel) -> None:
        drivers = panel.stations["lost_arrivals"].sum() / lost.height
        energy = panel.stations["lost_kwh"].sum() / lost["wanted_kwh"].sum()
        print(f"| {name} | {100 * drivers:.0f} % | {100 * energy:.0f} % |")

    to_80 = Unserved(energies="to-80")
    stations = outcome.stations
    tell("as they are", build_panel(outcome.sessions, stations, time_zone=ZONE, unserved=to_80))
    tell(
        "energies as seen, where lost ones are booked to 80 %", build_panel(outcome.sessions, stations, time_zone=ZONE)
    )
    anonymous = outcome.sessions.drop("plug_id")
    unknown = stations.with_columns(plugs=pl.lit(None, pl.Int64))
    tell("plugs not known", build_panel(anonymous, unknown, time_zone=ZONE, unserved=to_80))
    for change in (1, -1):
        wrong = stations.with_columns(pl.max_horizontal(pl.col("plugs") + change, 1))
        panel = build_panel(anonymous, wrong, time_zone=ZONE, unserved=to_80)
        tell(f"one plug too {'many' if change > 0 else 'few'} at every station", panel)
    dark(outcome, stations)


def dark(outcome: Outcome, stations: pl.DataFrame) -> None:
    """Print the same of stations that had no free plug for weeks."""
    print("\n| stations without a free plug for three weeks | drivers who came then | estimated |")
    print("| --- | ---: | ---: |")
    until = DARK_FROM + dt.timedelta(weeks=WEEKS)
    for every, name in ((10, "every tenth"), (2, "every second")):
        hidden = stations.gather_every(every)
        inside = pl.col("arrival").is_between(DARK_FROM, until, closed="left")
        there = outcome.arrivals.filter(pl.col("station_id").is_in(hidden["station_id"].implode()) & inside)
        kept = outcome.sessions.join(
            there.filter(pl.col("outcome") == "served").select("session_id"), on="session_id", how="anti"
        )
        plugs = hidden.select("station_id", plug_id=pl.int_ranges(1, pl.col("plugs") + 1)).explode("plug_id")
        outages = plugs.with_columns(
            pl.col("plug_id").cast(pl.String), start=pl.lit(DARK_FROM), end=pl.lit(until)
        ).cast(pl.Schema(OUTAGES))
        panel = build_panel(kept, stations, time_zone=ZONE, outages=outages, unserved=Unserved(energies="to-80"))
        hours = panel.station_hours().filter(
            pl.col("ds").is_between(DARK_FROM, until, closed="left")
            & pl.col("station_id").is_in(hidden["station_id"].implode())
        )
        print(f"| {name} | {there.height:,} | {100 * hours['lost_arrivals'].sum() / there.height:.0f} % |")


if __name__ == "__main__":
    main()
