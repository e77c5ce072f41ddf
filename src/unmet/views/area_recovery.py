"""Lost demand estimated area by area, as a folder of tables and a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from unmet.estimation.by_area import AddedUp
from unmet.estimation.notes import FAR_OFF
from unmet.estimation.selfcheck import MAX_EXCESS
from unmet.runs import write_json
from unmet.views.lost_report import TOP_SITES, plain_values
from unmet.views.lost_tables import LostTables
from unmet.views.recovery import lost_tables, write_tables
from unmet.views.report import report_page
from unmet.views.stored import StoredLost, read_runs

__all__ = ["write_area_recovery"]


def write_area_recovery(
    added: AddedUp, rejected: pl.DataFrame, records: dict[str, Any], options: dict[str, Any], folder: Path
) -> tuple[LostTables, dict[str, Any]]:
    """Write lost demand into a folder, with the tables of `unmet recover` and a table of areas.

    Args:
        added: lost demand of all areas together.
        rejected: rows of the records that were set aside.
        records: how the records were read, and counts of rows that were used or set aside.
        options: options of the estimator.
        folder: an existing folder.

    Returns:
        The tables, and the summary.
    """
    write_tables({**lost_tables(added), "areas": added.areas}, rejected, folder)
    added.hours.write_parquet(folder / "hours.parquet")
    summary = plain_values(added.summary) | {
        "seed": options["seed"],
        "draws": options["draws"],
        "energies": options["energies"],
        "time_zone": records["time_zone"],
        "given": {name: options[name] for name in ("waiting", "spill")},
    }
    tables = StoredLost(
        summary, added.stations, added.sites, added.regions, added.weeks, added.sensitivity, folder=folder
    )
    summary |= _for_machines(tables) | {"records": {n: value for n, value in records.items() if n != "mapping"}}
    write_json(folder / "summary.json", summary)
    (folder / "recovery.html").write_text(report_page(read_runs([folder])), encoding="utf-8")
    return tables, summary


def _for_machines(tables: StoredLost) -> dict[str, Any]:
    """Entries that `summary.json` adds to the summary of the estimator; see `LostReport.for_machines`."""
    measures = [name for name in tables.sites.columns if name.startswith("lost_")]
    worst = tables.ranked_sites().filter(pl.col("lost_kwh") > 0).head(TOP_SITES)
    check, share = tables.summary["self_check"], tables.lost_share()
    return {
        "doubtful": check is not None and _excess(check) >= FAR_OFF,
        "elsewhere_kwh": 0.0,  # areas are estimated without competitors
        "lost_share": {end: round(value, 6) for end, value in zip(("mean", "low", "high"), share, strict=True)},
        "most_lost": plain_values(worst.select("site_id", "name", "capacity", "full_share", *measures).to_dicts()),
        "sensitivity": plain_values(tables.sensitivity.to_dicts()),
    }


def _excess(check: dict[str, float]) -> float:
    """Distance of the self-check from 1 beyond chance, as a logarithm; see `SelfCheck.excess`."""
    import math

    spread = math.log(check["high"] / check["ratio"]) / 1.645  # standard deviation, from the end of a 90 % interval
    return min(math.sqrt(max(math.log(check["ratio"]) ** 2 - spread**2, 0.0)), MAX_EXCESS)
