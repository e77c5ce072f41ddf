"""How much days differ in real records, beyond chance and weekday: `python -m benchmarks.busyness`.

The number of sessions n of each day is compared with its expectation m, the mean of the 29 days around it times a
factor of the weekday. If days have factors with standard deviation s, the variance of n is m + s^2 m^2, so s^2 is the
sum of (n - m)^2 - m over the sum of m^2. A negative s^2 is shown as a negative s. It means that days differ less than
by chance, because plugs rather than drivers limit the number of sessions.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from benchmarks.data_sets import DATA
from unmet.demand.from_records import PanelChoices, chosen_records

TOWNS = {"Dundee": "dundee", "Boulder": "boulder", "Caltech": "acn_caltech_2019", "Lugano": "lugano", "Paris": "belib",
         "SAP": "sap"}  # fmt: skip
MIN_SESSIONS = 400  # of a station, to measure its spread


def spread(days: pl.Series) -> float:
    """The spread s, with the sign of s^2; `days` are the dates of all sessions."""
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
    for town, prefix in TOWNS.items():
        files = tuple(sorted((DATA / "sessions").glob(f"{prefix}*")))
        station_file = DATA / "stations" / f"{prefix}_locations.csv"
        records = chosen_records(PanelChoices(files, station_file if station_file.is_file() else None))
        day = pl.col("start").dt.convert_time_zone(records.time_zone).dt.date()
        sessions = records.sessions.with_columns(day=day)
        stations_days = [p["day"] for _, p in sessions.group_by("station_id") if p.height > MIN_SESSIONS]
        squares = [math.copysign(spread(days) ** 2, spread(days)) for days in stations_days]
        mean = float(np.average(squares, weights=[len(days) for days in stations_days])) if stations_days else math.nan
        of_stations = math.copysign(math.sqrt(abs(mean)), mean) if stations_days else math.nan
        of_city, count = spread(sessions["day"]), len(stations_days)
        print(f"{town}: city-days {100 * of_city:.0f} %, station-days {100 * of_stations:.0f} % ({count} stations)")


if __name__ == "__main__":
    main()
