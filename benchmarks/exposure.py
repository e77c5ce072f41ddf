"""How well exposure tells what was lost in simulated cities: `python -m benchmarks.exposure`."""

from __future__ import annotations

import numpy as np
import polars as pl

from unmet.city.build import build_city
from unmet.demand.panel import build_panel
from unmet.demand.simulated import simulated_panel
from unmet.simulation.scenario import Scenario
from unmet.simulation.simulate import prepare, simulate

RULES = {
    "any station full for a moment": pl.col("exposure") < 1,
    "exposure under 0.95": pl.col("exposure") < 0.95,
    "a loss more likely than not (ours)": pl.col("censored"),
}


CITIES = (("first-come", 0.05), ("first-come", 0.03), ("three-hour", 0.05), ("three-hour", 0.03), ("gas-station", 0.05))


def main() -> None:
    """Print two tables: lost arrivals as estimated, and each rule for `censored`, in simulated cities."""
    itinerary = prepare(build_city())
    lost = ["| city | lost, of all arrivals | estimated |", "| --- | ---: | ---: |"]
    rules = [
        "| city | rule | flagged | of the flagged, truly censored | of the truly censored, flagged | agrees |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for queue, penetration in CITIES:
        outcome = simulate(itinerary, Scenario(queue=queue, penetration=penetration))
        panel = build_panel(outcome.sessions, outcome.stations, time_zone="Europe/Copenhagen")
        truth = simulated_panel(outcome.arrivals, panel.regions, panel.period)
        really = truth["censored"].to_numpy()
        city = f"{queue}, {100 * penetration:.0f} %"
        lost.append(
            f"| {city} | {truth['lost'].sum():,} of {outcome.arrivals.height:,} | {panel.exposure.lost.sum():,.0f} |"
        )
        if queue == "gas-station":
            continue  # drivers wait there, and hardly any are lost
        for name, rule in RULES.items():
            flag = panel.table.select(rule).to_series().to_numpy()
            both = float(np.sum(flag & really))
            rules.append(
                f"| {city} ({100 * really.mean():.0f} % censored) | {name} | {100 * flag.mean():.0f} % "
                f"| {100 * both / flag.sum():.0f} % | {100 * both / really.sum():.0f} % "
                f"| {100 * np.mean(flag == really):.0f} % |"
            )
    print("\n".join([*lost, "", *rules]))


if __name__ == "__main__":
    main()
