"""Lost drivers and energy estimated from real records with plugs removed: `python -m benchmarks.thinned FILES...`."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import polars as pl

from unmet.records.sessions import read_records
from unmet.study.thinning import NEAR, REMOVED, quiet_sites, sessions_between, thin, thinned_panel

DRAWS = 5  # of plugs to remove


def main() -> None:
    """Print one line: for each share of the energy that is turned away, drivers and energy estimated over the truth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="session records of one operator")
    parser.add_argument("--stations", type=Path, help="table of stations")
    parser.add_argument("--until", type=datetime.fromisoformat, help="leave out sessions from then on, UTC")
    asked = parser.parse_args()
    records = read_records(asked.files, stations=asked.stations)
    until = None if asked.until is None else asked.until.replace(tzinfo=UTC)
    used = sessions_between(records.sessions, None, until)
    sites, sessions = quiet_sites(used, records.stations, records.time_zone)
    cells = []
    for share in REMOVED:
        draws = [thin(sessions, sites, share, seed) for seed in range(1, DRAWS + 1)]
        if max(abs(made.removed - share) for made in draws) > NEAR:
            cells.append("cannot be reached")
            continue
        estimated, true = np.zeros(2), np.zeros(2)
        for made in draws:
            panel = thinned_panel(made, sites, "station", records.time_zone)
            estimated += panel.stations.select(pl.col("lost_arrivals", "lost_kwh").sum()).row(0)
            energy = sessions["energy_kwh"].sum() - made.sessions["energy_kwh"].sum()
            true += (sessions.height - made.sessions.height, energy)
        cells.append(" / ".join(f"{value:.2f}" for value in estimated / true))
    print(f"| {asked.files[0].name} ({sites.height}) | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
