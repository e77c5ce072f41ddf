"""Run folders as commands write them, for tests of the report and the app."""

from __future__ import annotations

import atexit
import datetime as dt
import shutil
import tempfile
from functools import cache
from pathlib import Path

import polars as pl

from tests.small_network import STATIONS, records
from unmet.demand.panel import Panel
from unmet.estimation.lost_demand import LostDemand
from unmet.runs import write_json
from unmet.views.lost_report import LostReport
from unmet.views.recovery import write_recovery
from unmet.views.table_files import write_table_files

ABOUT = {
    "formats": {"/somewhere/private/sessions.csv": "unmet"},
    "rows_in": 1200,
    "rows_kept": 1190,
    "rows_set_aside": 10,
    "quality": {"open_sessions": 7, "energy_negative": 3},
    "record_notes": ["A note on reading."],
    "time_zone": "Europe/Copenhagen",
}


def rejected() -> pl.DataFrame:
    """Rows that were set aside."""
    return pl.DataFrame(
        {
            "file": ["/somewhere/private/sessions.csv"] * 10,
            "line": list(range(2, 12)),
            "column": ["end"] * 7 + ["energy_kwh"] * 3,
            "value": [None] * 7 + ["-1"] * 3,
            "reason": ["is empty"] * 7 + ["is negative"] * 3,
        }
    )


@cache
def _lost_run() -> Path:
    """The run of `write_lost`, estimated once; it is removed when the process ends."""
    stored = Path(tempfile.mkdtemp(prefix="unmet-tests-"))
    atexit.register(shutil.rmtree, stored, ignore_errors=True)
    panel = Panel(records()[0], STATIONS, regions=2, time_zone="Europe/Copenhagen")
    write_recovery(LostReport.of(LostDemand(draws=60).fit(panel)), rejected(), ABOUT, stored)
    write_table_files(stored, None)
    return stored


def write_lost(folder: Path) -> Path:
    """A run of `unmet recover` on the small network."""
    shutil.copytree(_lost_run(), folder)
    return folder


def write_plan(folder: Path) -> Path:
    """A run of `unmet plan` with invented numbers."""
    folder.mkdir(parents=True)
    lost = [30.0, 12.0, 0.0]
    numbers = {"plugs_now": [1, 2, 2], "plugs_added": [2, 1, 0], "chosen_share": [1.0, 0.7, 0.0]}
    table = pl.DataFrame(
        {"site_id": ["a", "b", "c"], "name": ["Town hall", "Station <West>", None], "lat": [55.6, 55.61, 55.7],
         "lon": [12.5, 12.51, 12.5], "is_new": [False] * 3, "power_kw": [None, 22.0, None],
         "utilisation": [0.5, 0.4, 0.1], **numbers}
    ).with_columns(
        *(pl.Series(f"{name}{end}", lost) for name in ("lost_kwh", "gain_kwh") for end in ("", "_low", "_high")),
        lost_drivers=pl.Series([3.0, 1.0, 0.0]), lost_drivers_after=pl.Series([0.1, 0.2, 0.0]),
        gain_drivers=pl.Series([2.9, 0.8, 0.0]),
    )  # fmt: skip
    table.write_parquet(folder / "plan.parquet")
    plugs = list(range(6))
    ends = {f"gain_kwh{end}": [40 * (1 - 0.6**n) for n in plugs] for end in ("", "_low", "_high")}
    pl.DataFrame({"plugs": plugs, **ends}).write_csv(folder / "gain.csv")
    pl.DataFrame({"assumption": ["as estimated"], "gain_kwh": [42.0], "best_kwh": [42.0], "moved": [0]}).write_csv(
        folder / "sensitivity.csv"
    )
    write_table_files(folder, None)
    summary = {
        "answer": "3 plugs at 2 sites recover 80 % of lost energy, 70 to 90 %", "plugs": 3, "sites": 2, "knee": 2,
        "gain_kwh_per_week": {"mean": 42.0, "low": 30.0, "high": 55.0}, "lost_kwh_per_week": 52.0, "interval": 0.9,
        "served_share": 0.9, "served_share_after": 0.98, "cost": None, "seed": 1, "version": "0.1.0",
    }  # fmt: skip
    write_json(folder / "summary.json", summary)
    return folder


def write_forecast(folder: Path) -> Path:
    """A run of `unmet forecast` with invented numbers."""
    folder.mkdir(parents=True)
    hours = [dt.datetime(2024, 2, 12, tzinfo=dt.UTC) + dt.timedelta(hours=h) for h in range(24)]
    rows = [(name, hour, i + 1) for name in ("r0", "r1") for i, hour in enumerate(hours)]
    table = pl.DataFrame(rows, schema=["unique_id", "ds", "horizon"], orient="row").with_columns(
        pl.col("ds").cast(pl.Datetime("ms", "UTC")), **{"q0.05": pl.lit(1.0), "q0.5": pl.lit(2.0), "q0.95": pl.lit(4.0)}
    )
    table.write_parquet(folder / "forecast.parquet")
    write_json(folder / "summary.json", {"hours": 24, "regions": 2, "time_zone": "Europe/Copenhagen", "seed": 1})
    return folder
