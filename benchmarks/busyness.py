"""How much days differ in real records, beyond chance and weekday: `python -m benchmarks.busyness`.

The number of sessions n of each day is compared with its expectation m, the mean of the 29 days around it times a
factor of the weekday. If days have factors with standard deviation s, the variance of n is m + s^2 m^2, so s^2 is the
sum of (n - m)^2 - m over the sum of m^2. A negative s^2 is shown as a negative s: plugs, not drivers, limit the day.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from benchmarks.data_sets import DATA
from unmet.demand.from_records import PanelChoices, chosen_records

TOWNS = {"Dundee": "dundee", "Boulder": "boulder", "Caltech": "acn_caltech_2019", "Lugano": "lugano", "Paris": "belib",
         "SAP": "sap"}  # fmt: skip
MIN_SESSIONS = 400  # per station


def spread(days: pl.Series) -> float:
    """The spread s of the dates of sessions, with the sign of s^2."""
    whole = pl.DataFrame({"day": pl.date_range(days.min(), days.max(), "1d", eager=True)})  # type: ignore[arg-type]
    counts = pl.DataFrame({"day": days}).group_by("day").agg(n=pl.len().cast(pl.Float64))
    table = whole.join(counts, on="day", how="left").with_columns(pl.col("n").fill_null(0.0))
    level = table.with_columns(level=pl.col("n").rolling_mean(29, center=True, min_samples=8)).filter(
        pl.col("level") > 0
    )
    weekday = (pl.col("n") / pl.col("level")).mean().over(pl.col("day").dt.weekday())
    expected = level.with_columns(m=weekday * pl.col("level")).filter(pl.col("m") > 0)
    n, m = expected["n"].to_numpy(), expected["m"].to_numpy()
    squared = float(((n - m) ** 2 - m).sum() / (m**2).sum())
    return math.copysign(math.sqrt(abs(squared)), squared)


def main() -> None:
    """Print one line per town."""
    for town, begins in TOWNS.items():
        files = tuple(sorted((DATA / "sessions").glob(f"{begins}*")))
        stations = DATA / "stations" / f"{begins}_locations.csv"
        records = chosen_records(PanelChoices(files, stations if stations.is_file() else None))
        day = pl.col("start").dt.convert_time_zone(records.time_zone).dt.date()
        sessions = records.sessions.with_columns(day=day)
        parts = [p["day"] for _, p in sessions.group_by("station_id") if p.height > MIN_SESSIONS]
        pooled = [math.copysign(spread(part) ** 2, spread(part)) for part in parts]
        mean = float(np.average(pooled, weights=[len(part) for part in parts])) if parts else math.nan
        own = math.copysign(math.sqrt(abs(mean)), mean) if parts else math.nan
        all_days = spread(sessions["day"])
        print(f"{town}: city-days {100 * all_days:.0f} %, station-days {100 * own:.0f} % ({len(parts)} stations)")


if __name__ == "__main__":
    main()
