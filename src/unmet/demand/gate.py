"""Validation of sessions and stations that are passed as data frames."""

from __future__ import annotations

from typing import Any

import polars as pl

from unmet.errors import InputError
from unmet.tables import UTC, as_frame

__all__ = ["checked_sessions", "checked_stations"]

MAX_KWH = 5000.0  # highest energy of a session; the largest truck battery holds a fifth of that
OPTIONAL = {"plug_id": pl.String(), "user_id": pl.String(), "vehicle_id": pl.String(), "charged": UTC}
STATIONS = {
    "station_id": pl.String(),
    "lat": pl.Float64(),
    "lon": pl.Float64(),
    "power_kw": pl.Float64(),
    "plugs": pl.Int32(),
    "operator": pl.String(),
    "name": pl.String(),
}


def checked_sessions(sessions: Any) -> pl.DataFrame:
    """Sessions with the right types; raises `InputError` for the first invalid row."""
    frame = _require_columns(as_frame(sessions), ("station_id", "start", "end", "energy_kwh"), "The sessions")
    for name in ("start", "end"):
        if not isinstance(frame.schema[name], pl.Datetime):
            raise InputError(f"Column {name} of the sessions holds {frame.schema[name]}: give times, not text.")
    more = {name: dtype for name, dtype in OPTIONAL.items() if name in frame.columns}
    kept = frame.select(
        pl.col("station_id").cast(pl.String),
        *(_utc(frame, name) for name in ("start", "end")),
        pl.col("energy_kwh").cast(pl.Float64),
        *(_utc(frame, name) if dtype == UTC else pl.col(name).cast(dtype) for name, dtype in more.items()),
        *(name for name in frame.columns if name not in {"station_id", "start", "end", "energy_kwh", *more}),
    )
    energy = pl.col("energy_kwh")
    for wrong, what in (
        (pl.col("station_id").is_null() | pl.col("start").is_null() | pl.col("end").is_null(), "is incomplete"),
        (pl.col("end") < pl.col("start"), "ends before it starts"),
        (energy.is_null() | ~energy.is_finite() | (energy < 0), "has no valid energy"),
        (energy > MAX_KWH, f"has more than {MAX_KWH:,.0f} kWh, which no car can take (is it in Wh?)"),
    ):
        invalid = kept.with_row_index("row").filter(wrong)
        if not invalid.is_empty():
            row = invalid.row(0, named=True)
            raise InputError(
                f"Row {row['row']} of the sessions {what} (station {row['station_id']}, "
                f"{row['start']} to {row['end']}, {row['energy_kwh']} kWh), and "
                f"{invalid.height - 1} more: correct or remove such rows."
            )
    return kept


def checked_stations(stations: Any) -> pl.DataFrame:
    """Stations with all columns and the right types; missing values are null."""
    frame = _require_columns(as_frame(stations), ("station_id",), "The stations")
    given = {name: dtype for name, dtype in STATIONS.items() if name in frame.columns}
    missing = [pl.lit(None, dtype).alias(name) for name, dtype in STATIONS.items() if name not in given]
    try:
        typed = frame.with_columns(*(pl.col(name).cast(dtype) for name, dtype in given.items()), *missing)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"A value of the stations is not a number: {str(error).splitlines()[0][:200]}") from None
    if typed["station_id"].null_count() or typed["station_id"].is_duplicated().any():
        raise InputError("Every station needs a station_id of its own: some are missing or listed twice.")
    if (typed["plugs"] < 0).any():
        raise InputError("A station has fewer than 0 plugs: correct the table of stations.")
    out_of_range = (typed["lat"].abs() > 90).any() or (typed["lon"].abs() > 180).any()
    if out_of_range:
        raise InputError("A station lies beyond 90 degrees of latitude or 180 of longitude: correct its position.")
    return typed.select(*STATIONS, *(name for name in typed.columns if name not in STATIONS))


def _require_columns(frame: pl.DataFrame, names: tuple[str, ...], what: str) -> pl.DataFrame:
    """The frame itself; raises `InputError` if it lacks a column."""
    missing = [name for name in names if name not in frame.columns]
    if missing:
        raise InputError(f"{what} have no column {', '.join(missing)}. Their columns are {', '.join(frame.columns)}.")
    return frame


def _utc(frame: pl.DataFrame, name: str) -> pl.Expr:
    """A column of times in UTC; times without a zone are assumed to be UTC."""
    dtype = frame.schema[name]
    zoned = (
        pl.col(name) if isinstance(dtype, pl.Datetime) and dtype.time_zone else pl.col(name).dt.replace_time_zone("UTC")
    )
    return zoned.dt.convert_time_zone("UTC").cast(UTC)
