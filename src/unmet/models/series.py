"""Series: a panel as arrays of hours and regions, validated when it is read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.arrays import Floats
from unmet.csv_files import read_frame
from unmet.demand.calendar import hour_of_week, hours_between
from unmet.errors import InputError
from unmet.models.draws import BEFORE, DRAWS, draw_by_day, read_draws
from unmet.tables import Column, RowRule, Table, as_frame, check_table

__all__ = ["PANEL", "POSITIONS", "PanelSeries", "read_ahead", "read_positions", "read_series", "with_lost"]

HOUR = dt.timedelta(hours=1)

PANEL = Table(
    "panel",
    (
        Column("unique_id", "text", "", "region"),
        Column("ds", "time", "", "hour, UTC"),
        Column("y", "number", "kWh", "observed demand", minimum=0),
        Column(
            "censored",
            "integer",
            "",
            "1: true demand is at least `lower`; -1: at most `upper`; 0: it is `y`",
            required=False,
            default=0,
            minimum=-1,
            maximum=1,
        ),
        Column("lower", "number", "kWh", "lower bound on true demand in a censored hour, else `y`", required=False),
        Column("upper", "number", "kWh", "upper bound on true demand in a censored hour, else `y`", required=False),
    ),
)
LOST_BEFORE = Column(
    BEFORE,
    "number",
    "kWh",
    "expected lost energy, given what was known before that day",
    required=False,
    minimum=0,
)
KNOWN_AFTERWARDS = (
    "y_true", "lost", "arrivals", "exposure", "lost_arrivals", "lost_kwh", "elsewhere_kwh", BEFORE, DRAWS,
)  # fmt: skip
"""Columns that are known only after the hour, so that they cannot be features."""
POSITIONS = Table(
    "regions",
    (
        Column("unique_id", "text", "", "region"),
        Column("lat", "number", "degree", "latitude of its centre", minimum=-90, maximum=90),
        Column("lon", "number", "degree", "longitude of its centre", minimum=-180, maximum=180),
    ),
)


@dataclass(frozen=True, slots=True)
class PanelSeries:
    """A panel as arrays of shape (hours, regions), with NaN for missing hours."""

    names: tuple[str, ...]
    first: dt.datetime
    demand: Floats  # observed [kWh]
    target: Floats  # column to learn: observed demand, or another column such as true demand
    lower: Floats  # lower bound on true demand [kWh]
    upper: Floats  # upper bound on true demand [kWh]
    extras: Floats  # (hours, regions, columns)
    set_aside: pl.DataFrame  # rows that could not be used
    lost_before: Floats | None = None  # expected lost energy, given what was known before the day [kWh]
    lost_draws: NDArray[np.float32] | None = None  # (hours, regions, draws), of lost energy [kWh]

    @property
    def hours(self) -> int:
        """Number of hours from the first to the last."""
        return len(self.demand)

    def times(self, ahead: int = 0) -> pl.Series:
        """The hours, and `ahead` more after them."""
        return hours_between(self.first, self.first + (self.hours + ahead) * HOUR)

    def hour_from(self, since: dt.datetime) -> int:
        """Index of the first hour that is not before a time; a time without an offset is in UTC."""
        aware = since if since.tzinfo else since.replace(tzinfo=dt.UTC)
        return int(-((self.first - aware) // HOUR))

    def table(self) -> pl.DataFrame:
        """A long table: `unique_id, ds, demand, target`, one row per region and hour, NaN if missing."""
        return pl.DataFrame(
            {
                "unique_id": pl.Series(self.names).gather(np.repeat(np.arange(len(self.names)), self.hours)),
                "ds": pl.concat([self.times()] * len(self.names)),
                "demand": self.demand.T.ravel(),
                "target": self.target.T.ravel(),
            }
        )

    def week(self, time_zone: str, ahead: int = 0) -> NDArray[np.int64]:
        """Local hour of the week of each hour, and of `ahead` more after them."""
        return hour_of_week(self.times(ahead), time_zone).to_numpy()


def read_series(
    panel: Any,
    *,
    target: str = "y",
    extras: Sequence[str] = (),
    with_lost: bool = False,
    names: Sequence[str] | None = None,
    last_hours: int | None = None,
) -> PanelSeries:
    """Read a panel from a data frame or a CSV or Parquet file.

    Args:
        panel: `unique_id, ds, y`, and perhaps more.
        target: the column to learn.
        extras: additional columns that are known in advance.
        with_lost: whether to read `lost_kwh_before` and `lost_draws`; 0 if they are missing.
        names: the regions that the panel must have, and no others.
        last_hours: number of hours at the end to read; by default all.

    Returns:
        Arrays of hours and regions. An hour that is missing, or has no valid `y`, is NaN.
    """
    malformed = None
    if isinstance(panel, str | Path):
        frame, malformed = read_frame(Path(panel))
    else:
        frame = as_frame(panel)
    wanted = [*([target] if target != "y" else []), *extras, *([BEFORE] if with_lost else [])]
    missing = [name for name in wanted if name not in frame.columns and name != BEFORE]
    if missing:
        raise InputError(f"The panel has no column {', '.join(missing)}: its columns are {', '.join(frame.columns)}.")
    if target in ("unique_id", "ds"):
        raise InputError(f"{target} cannot be learned: name a column of energies, such as y or y_true.")
    unknown = [name for name in extras if name in {*(column.name for column in PANEL.columns), *KNOWN_AFTERWARDS}]
    if unknown:
        raise InputError(f"{', '.join(unknown)} cannot be a feature: it is not known in advance. Leave it out.")
    frame = _cleaned(frame, wanted, last_hours)
    draws = None
    if with_lost:
        draws = read_draws(frame)
        frame = frame.drop(DRAWS).with_columns(pl.int_range(pl.len()).alias(ROW))
        wanted.append(ROW)
    known = [column.name for column in PANEL.columns]
    more = tuple(
        LOST_BEFORE if name == BEFORE else Column(name, "number", "", "", required=False)
        for name in dict.fromkeys(wanted)
        if name not in known
    )
    checked = check_table(frame, Table("panel", (*PANEL.columns, *more)), _RULES, sort=("unique_id", "ds"))
    if checked.kept.is_empty():
        raise InputError("The panel has no valid row: it needs unique_id, ds (a full hour) and y (kWh).")
    rejected = checked.rejected if malformed is None else pl.concat([checked.rejected, malformed]).sort("line")
    return _arrays(checked.kept, rejected, target, list(extras), draws, names)


def _cleaned(frame: pl.DataFrame, wanted: Sequence[str], last_hours: int | None) -> pl.DataFrame:
    """Flags as numbers, NaN as missing, and only the last hours if `last_hours` is given."""
    flags = [name for name, dtype in frame.schema.items() if dtype == pl.Boolean]
    texts = [name for name in ("censored", *wanted) if frame.schema.get(name) == pl.String]
    as_digits = pl.col(texts).str.strip_chars().str.to_lowercase().replace({"true": "1", "false": "0"})
    # NaN counts as missing, and an infinite bound as none.
    bounds = [name for name in ("lower", "upper") if name in frame.columns and frame.schema[name].is_float()]
    numbers = pl.col(pl.Float32, pl.Float64).fill_nan(None)
    frame = frame.with_columns(pl.col(flags).cast(pl.Int8), as_digits, numbers).with_columns(
        pl.when(pl.col(name).is_finite()).then(name).alias(name) for name in bounds
    )
    if last_hours is not None and "unique_id" in frame.columns and isinstance(frame.schema.get("ds"), pl.Datetime):
        # A region without rows in these hours still belongs to the panel, so its last row is kept.
        last = pl.col("ds").max()
        silent = last.over("unique_id").min()
        frame = frame.filter(pl.col("ds") > pl.min_horizontal(last - last_hours * HOUR, silent - HOUR))
    return frame


ROW = "__row__"  # column with the number of the row in the panel, to look up its draws
_RULES = (
    RowRule("ds", pl.col("ds") == pl.col("ds").dt.truncate("1h"), "is not a full hour"),
    RowRule("ds", pl.struct("unique_id", "ds").is_first_distinct(), "occurs twice for its region"),
)


def _arrays(
    rows: pl.DataFrame,
    rejected: pl.DataFrame,
    target: str,
    extras: list[str],
    draws: NDArray[np.float32] | None,
    names: Sequence[str] | None,
) -> PanelSeries:
    """The checked rows of a panel as arrays; `draws` are those of lost energy, by the number in column `ROW`."""
    found = rows["unique_id"].unique().sort().to_list()
    _check_regions(found, names)
    first, hours = _checked_span(rows, len(found))
    region = rows["unique_id"].replace_strict(found, range(len(found)), return_dtype=pl.Int64).to_numpy()
    hour = ((rows["ds"] - first).dt.total_milliseconds() // 3_600_000).to_numpy()

    def grid(values: NDArray[np.float64]) -> Floats:
        cells = np.full((hours, len(found)), np.nan)
        cells[hour, region] = values
        return cells

    def column(name: str) -> NDArray[np.float64]:
        if name not in rows.columns:
            return np.full(rows.height, np.nan)
        return rows[name].cast(pl.Float64).fill_null(np.nan).to_numpy(writable=True)

    def stacked(columns: list[str]) -> Floats:
        return np.stack([grid(column(name)) for name in columns], -1) if columns else np.empty((hours, len(found), 0))

    def placed(values: NDArray[np.float32]) -> NDArray[np.float32]:
        cells = np.zeros((hours, len(found), values.shape[1]), np.float32)
        cells[hour, region] = values[rows[ROW].cast(pl.Int64).to_numpy()]
        return cells

    y, learned = column("y"), column(target)
    lower, upper = (learned, learned) if target != "y" else _bounds(rows, y)
    return PanelSeries(
        names=tuple(found),
        first=first,
        demand=grid(y),
        target=grid(learned),
        lower=grid(lower),
        upper=grid(upper),
        extras=stacked(extras),
        set_aside=rejected,
        lost_before=None if draws is None else np.nan_to_num(grid(column(BEFORE))),
        lost_draws=None if draws is None else placed(draws),
    )


MAX_CELLS = 500_000_000  # hours times regions; more do not fit into memory
MIN_FILLED = 0.01  # share of the cells of a panel; if fewer are filled, a date is wrong


def _check_regions(found: list[str], names: Sequence[str] | None) -> None:
    """Refuse a panel whose regions are not those that a model was fitted on."""
    if names is None or list(names) == found:
        return
    new, missing = (", ".join(sorted(a - b)[:5]) for a, b in ((set(found), set(names)), (set(names), set(found))))
    sides = [f"{text} {what}" for text, what in ((new, "is new"), (missing, "is missing")) if text]
    raise InputError(
        f"The regions of the panel are not those that the model was fitted on ({'; '.join(sides)}): give a panel "
        "of the same regions, or fit the model again."
    )


def _checked_span(rows: pl.DataFrame, regions: int) -> tuple[dt.datetime, int]:
    """The first hour of a panel, and its number of hours; refuses panels that a wrong date makes far too long."""
    first, last = rows.select(first=pl.col("ds").min(), last=pl.col("ds").max()).row(0)
    hours = int((last - first) / HOUR) + 1
    if hours * regions > MAX_CELLS:
        raise InputError(
            f"The panel spans {hours:,} hours of {regions:,} regions, from {first:%Y-%m-%d} to {last:%Y-%m-%d}: "
            "more than fits into memory. Check its dates."
        )
    if rows.height < MIN_FILLED * hours * regions:
        raise InputError(
            f"The panel spans {hours:,} hours, from {first:%Y-%m-%d} to {last:%Y-%m-%d}, and nearly all of them "
            "are missing: check its dates."
        )
    return first, hours


def _bounds(rows: pl.DataFrame, y: Floats) -> tuple[Floats, Floats]:
    """Bounds of true demand: [y, y] if it is known, else [lower, inf), (-inf, upper] or [lower, upper]."""
    flag = rows["censored"].to_numpy()

    def bound(name: str) -> Floats:
        missing = np.full(len(y), np.nan)
        return rows[name].cast(pl.Float64).fill_null(np.nan).to_numpy() if name in rows.columns else missing

    low, high = bound("lower"), bound("upper")
    bottom = np.where(flag == 1, np.where(np.isnan(low), y, low), np.where(np.isnan(low), -np.inf, low))
    top = np.where(flag == -1, np.where(np.isnan(high), y, high), np.where(np.isnan(high), np.inf, high))
    lower, upper = np.where(flag == 0, y, bottom), np.where(flag == 0, y, top)
    wrong = np.flatnonzero(lower > upper)
    if len(wrong):
        row = rows.row(int(wrong[0]), named=True)
        raise InputError(
            f"The bounds of region {row['unique_id']} at {row['ds']:%Y-%m-%d %H:%M} are the wrong way round "
            f"({lower[wrong[0]]:g} to {upper[wrong[0]]:g} kWh): `lower` must not exceed `upper`."
        )
    return lower, upper


def read_positions(positions: Any, names: Sequence[str]) -> Floats:
    """Latitude and longitude [degree] of the named regions, (regions, 2)."""
    kept = check_table(positions, POSITIONS).kept
    found = {name: (lat, lon) for name, lat, lon in kept.iter_rows()}
    missing = [name for name in names if name not in found]
    if missing:
        raise InputError(f"Regions without a position: {', '.join(missing[:5])}. Give unique_id, lat and lon for all.")
    return np.array([found[name] for name in names])


def read_ahead(future: Any, features: Sequence[str], past: PanelSeries, hours: int) -> Floats:
    """The additional features of the hours after a series, (hours, regions, columns)."""
    if not features:
        return np.empty((hours, len(past.names), 0))
    if future is None:
        raise InputError(
            f"The model reads {', '.join(features)}: give a table of unique_id, ds and these columns for the hours "
            "to forecast."
        )
    series = read_series(_with_y(future, features), extras=features, names=past.names)
    first = past.first + past.hours * HOUR
    begin = int((first - series.first) / HOUR)
    part = series.extras[begin : begin + hours] if begin >= 0 else series.extras[:0]
    if len(part) < hours or not np.isfinite(part).all():
        raise InputError(
            f"The features {', '.join(features)} are needed for every region and hour from "
            f"{first:%Y-%m-%d %H:%M} to {first + hours * HOUR:%Y-%m-%d %H:%M}: complete the table."
        )
    return part


def _with_y(future: Any, features: Sequence[str]) -> pl.DataFrame:
    """Features of future hours as a panel; other columns are not read."""
    frame = read_frame(Path(future))[0] if isinstance(future, str | Path) else as_frame(future)
    kept = [name for name in frame.columns if name in features or name.lower() in ("unique_id", "ds")]
    return frame.select(kept).with_columns(y=pl.lit(0.0))


def with_lost(series: PanelSeries) -> PanelSeries:
    """The series with lost energy added, if it was read.

    The loss that was expected before each day is added to demand, which is read as lags. One draw of the loss is added
    to the target of training and calibration.
    """
    if series.lost_before is None or series.lost_draws is None:
        return series
    drawn = series.target + draw_by_day(series.lost_draws, int(series.first.timestamp()) // 3600)
    return replace(series, demand=series.demand + series.lost_before, target=drawn, lower=drawn, upper=drawn)
