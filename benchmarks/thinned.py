"""Lost drivers as estimated from real records with plugs removed on paper: `python -m benchmarks.thinned FILES...`."""

from __future__ import annotations

import argparse
from pathlib import Path

from unmet.demand.panel import build_panel
from unmet.records.sessions import read_records
from unmet.study.thinning import NEAR, REMOVED, quiet_sites, thin


def main() -> None:
    """Print one line: lost arrivals estimated over the truth, for each share of the energy that is turned away."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="session records of one operator")
    parser.add_argument("--stations", type=Path, help="table of stations")
    asked = parser.parse_args()
    records = read_records(asked.files, stations=asked.stations)
    sites, sessions = quiet_sites(records.sessions, records.stations, records.time_zone)
    cells = []
    for share in REMOVED:
        made = thin(sessions, sites, share)
        if abs(made.removed - share) > NEAR:
            cells.append("cannot be reached")
            continue
        fewer = sites.drop("plugs").join(made.plugs, on="station_id", how="left", maintain_order="left")
        panel = build_panel(made.sessions, fewer, regions="station", time_zone=records.time_zone)
        lost = sessions.height - made.sessions.height
        cells.append(f"{panel.stations['lost_arrivals'].sum() / lost:.2f}")
    print(f"| {asked.files[0].name} ({sites.height}) | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
