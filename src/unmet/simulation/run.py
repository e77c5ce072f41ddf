"""Write a simulation as a run folder: the scenario, the tables and the summary."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import yaml

from unmet import __version__
from unmet.city.build import City
from unmet.runs import write_json
from unmet.simulation.outcome import Outcome
from unmet.simulation.scenario import BUILT_IN, Scenario

__all__ = ["summarise", "write_run", "write_scenario"]


def summarise(city: City, scenario: Scenario, outcome: Outcome) -> dict[str, Any]:
    """Summary of a simulation. The same seed gives the same numbers.

    A driver who retries or diverts counts as an arrival at every station tried, and as lost at each one without a free
    plug, so arrivals and energies count some drivers more than once. `wishes` counts each wish to charge once, and
    `unserved_share_of_energy` only its final outcome.
    """
    arrivals = outcome.arrivals
    lost = arrivals.filter(pl.col("outcome") == "lost")
    served = arrivals.filter(pl.col("outcome") == "served")
    wanted, lost_kwh = float(arrivals["wanted_kwh"].sum()), float(lost["wanted_kwh"].sum())
    wishes = int((arrivals["attempt"] == 1).sum())
    first, last = city.period
    hours = (last - first).total_seconds() / 3600
    return {
        "queue": scenario.queue,
        "penetration": scenario.penetration,
        "seed": scenario.seed,
        "vehicles": outcome.vehicles.height,
        "trips": outcome.trips,
        "stations": city.stations.height,
        "plugs": int(city.stations["plugs"].sum()),
        "arrivals": arrivals.height,
        "served": served.height,
        "lost": lost.height,
        "true_kwh": round(wanted, 3),
        "observed_kwh": round(wanted - lost_kwh, 3),
        "lost_kwh": round(lost_kwh, 3),
        "wishes": wishes,
        "wishes_unserved_percent": round(100 * (1 - served.height / wishes), 3) if wishes else 0.0,
        "unserved_share_of_energy": round(_unserved_share(arrivals), 6),
        "lost_share_of_energy": round(lost_kwh / wanted, 6) if wanted else 0.0,
        "censored_hours_percent": round(100 * lost["arrival"].dt.truncate("1h").n_unique() / hours, 3),
        "mean_waited_minutes": round(float(served["waited_minutes"].mean() or 0.0), 3),  # type: ignore[arg-type]
        "rows_set_aside": city.rejected.height,
        "station_cells_filled_with_defaults": city.filled,
    }


def _unserved_share(arrivals: pl.DataFrame) -> float:
    """Energy of wishes that were never served, over the energy of all wishes."""
    ordered = arrivals.sort("vehicle_id", "arrival", "attempt")
    next_attempt = pl.col("attempt").shift(-1).over("vehicle_id")
    final_attempts = ordered.filter((next_attempt == 1) | next_attempt.is_null())
    wanted = float(final_attempts["wanted_kwh"].sum())
    lost = float(final_attempts.filter(pl.col("outcome") == "lost")["wanted_kwh"].sum())
    return lost / wanted if wanted else 0.0


def write_run(folder: Path, city: City, scenario: Scenario, outcome: Outcome, sources: dict[str, Path | None]) -> None:
    """Write all files of a run into a folder; `sources` are the files of trips and stations, if any."""
    write_scenario(folder, city, scenario, sources)
    outcome.arrivals.write_parquet(folder / "arrivals.parquet")
    outcome.sessions.write_parquet(folder / "sessions.parquet")
    outcome.stations.write_parquet(folder / "stations.parquet")
    outcome.vehicles.write_parquet(folder / "vehicles.parquet")
    write_json(folder / "summary.json", summarise(city, scenario, outcome))
    if not city.rejected.is_empty():
        city.rejected.write_parquet(folder / "rejected.parquet")


def write_scenario(folder: Path, city: City, scenario: Scenario, sources: dict[str, Path | None]) -> None:
    """Write `scenario.yaml`, from which the run can be repeated."""
    files = {name: str(path.resolve()) if path else BUILT_IN for name, path in sources.items()}
    about = {"version": __version__, "city": {**files, "cars": city.cars, "time_zone": city.time_zone}}
    text = scenario.to_yaml() + yaml.safe_dump(about, sort_keys=False)
    (folder / "scenario.yaml").write_text(text, encoding="utf-8")
