"""How drivers who try elsewhere or later bias the estimate, and the correction: `python -m benchmarks.spill`."""

from __future__ import annotations

import polars as pl

from unmet.city.build import build_city
from unmet.demand.panel import build_panel
from unmet.demand.unserved import Unserved
from unmet.simulation.scenario import Scenario, TurnedAway
from unmet.simulation.simulate import prepare, simulate

SHARES = (0.0, 0.3, 0.6)


def main() -> None:
    """Print total true demand as estimated without and with the correction, over the truth, in simulated cities."""
    itinerary = prepare(build_city())
    print(
        "| city | turned away | unserved, of all energy | estimated, of the truth | with --spill | with --spill auto |"
    )
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for queue in ("first-come", "three-hour"):
        for kind in (TurnedAway.DIVERT, TurnedAway.RETRY):
            for share in SHARES:
                if share == 0 and kind is TurnedAway.RETRY:
                    continue
                scenario = Scenario(queue=queue, penetration=0.05, turned_away=kind, turned_away_share=share)
                outcome = simulate(itinerary, scenario)
                true, unserved = true_energy(outcome.arrivals)
                made = [estimated(outcome.sessions, outcome.stations, spill) / true for spill in (0.0, share, None)]
                name = f"{100 * share:.0f} % {kind.value}" if share else "none tries again"
                print(
                    f"| {queue}, 5 % | {name} | {100 * unserved / true:.1f} % | "
                    + " | ".join(f"{100 * (of_true - 1):+.1f} %" for of_true in made)
                    + " |"
                )


def true_energy(arrivals: pl.DataFrame) -> tuple[float, float]:
    """Energy that drivers wanted, each wish once, and the part that nobody served [kWh]."""
    ordered = arrivals.sort("vehicle_id", "arrival", "attempt")
    tried_again = (pl.col("attempt").shift(-1) > 1).over("vehicle_id").fill_null(value=False)
    unserved = ordered.filter((pl.col("outcome") == "lost") & ~tried_again)["wanted_kwh"].sum()
    served = arrivals.filter(pl.col("outcome") == "served")["energy_kwh"].sum()
    return float(served + unserved), float(unserved)


def estimated(sessions: pl.DataFrame, stations: pl.DataFrame, spill: float | None) -> float:
    """Energy seen and estimated to be lost [kWh]."""
    unserved = Unserved(spill=spill, energies="to-80")
    panel = build_panel(sessions, stations, time_zone="Europe/Copenhagen", unserved=unserved)
    return float(sessions["energy_kwh"].sum() + panel.stations["lost_kwh"].sum())


if __name__ == "__main__":
    main()
