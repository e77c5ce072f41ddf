"""Recover: the true and the lost demand of past hours, weeks and stations as tables."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.errors import InputError
from unmet.models.forecaster import Forecaster
from unmet.models.imputation import records_of
from unmet.models.recovery import DRAWS, Estimate, Recovered, Stations, estimate, recover_hours
from unmet.models.series import Series

__all__ = ["ALL", "Recovery", "recover"]

Floats = NDArray[np.float64]

ALL = "all"
"""The name of all regions together in the table of weeks."""


@dataclass(frozen=True, slots=True)
class Recovery:
    """True and lost demand of the past. Columns `X_low` and `X_high` hold X with a probability of `interval`."""

    hours: pl.DataFrame
    """`unique_id, ds, observed_kwh, lost_kwh, true_kwh, arrivals, lost_arrivals, true_arrivals` and intervals;
    `from_data, from_calendar, from_neighbours`: what true_kwh rests on, which sum to 1."""
    weeks: pl.DataFrame  # unique_id (and all together), week (its Monday, local), the same sums
    regions: pl.DataFrame  # unique_id, the same over all hours
    stations: pl.DataFrame  # station_id, unique_id, the same over all hours; empty where the panel has no stations
    total_kwh: Estimate  # lost in all hours and regions
    total_arrivals: Estimate
    interval: float


def recover(
    model: Forecaster,
    panel: Any,
    *,
    station_hours: pl.DataFrame | None = None,
    stations: pl.DataFrame | None = None,
    since: dt.datetime | None = None,
    interval: float = 0.9,
    draws: int = DRAWS,
    seed: int = 1,
    on_progress: Callable[[float], None] | None = None,
) -> Recovery:
    """Recover the demand of every hour of a panel from `since` on.

    `station_hours` (`station_id, ds, arrivals, energy_kwh, lost_arrivals, lost_kwh`) and `stations` (`station_id,
    unique_id`) of the panel tell what was lost at which station.
    """
    if not 0 < interval < 1:
        raise InputError(f"An interval of {interval:g} makes no sense: give one between 0 and 1, as 0.9.")
    if draws < 20:
        raise InputError(f"{draws} draws are too few for an interval: ask for at least 20.")
    unseen, series = model.unseen(), model.series(panel)
    first = 0 if since is None else max(0, series.hour_from(since))
    if first >= series.hours:
        raise InputError(f"The panel has no hour from {since:%Y-%m-%d %H:%M} on: give a longer one.")
    week = series.week(model.time_zone)
    mondays, group = _weeks(series, model.time_zone, first)
    groups = np.concatenate([np.full(first, len(mondays)), group])  # earlier hours tell levels, and are not told
    placed = None if station_hours is None or stations is None else _placed(series, first, station_hours, stations)
    made = recover_hours(
        unseen,
        records_of(series.reads),
        week,
        groups,
        placed,
        interval=interval,
        draws=draws,
        seed=seed,
        on_progress=on_progress,
    )
    kept = slice(0, len(mondays))
    arrivals, kwh = made.drawn_arrivals[:, kept], made.drawn_kwh[:, kept]
    return Recovery(
        _hours(series, made, first),
        _week_table(series, first, mondays, group, arrivals, kwh, interval),
        _region_table(series, first, arrivals, kwh, interval),
        pl.DataFrame() if placed is None else _station_table(made, station_hours, stations, series, first, interval),
        estimate(kwh.sum(axis=(1, 2)), interval),
        estimate(arrivals.sum(axis=(1, 2)), interval),
        interval,
    )


def _weeks(series: Series, time_zone: str, first: int) -> tuple[pl.Series, NDArray[np.int64]]:
    """The local Mondays of the hours from `first` on, and the number of each hour's."""
    monday = series.times()[first:].dt.convert_time_zone(time_zone).dt.truncate("1w").dt.date()
    mondays = monday.unique().sort()
    return mondays, monday.replace_strict(mondays, np.arange(len(mondays)), return_dtype=pl.Int64).to_numpy()


def _columns(name: str, values: Estimate, seen: Floats) -> dict[str, Floats]:
    """Lost and true as columns, each with its interval."""
    parts = (("", values.mean), ("_low", values.low), ("_high", values.high))
    lost = {f"lost_{name}{end}": value.T.ravel() for end, value in parts}
    return lost | {f"true_{name}{end}": (value + seen).T.ravel() for end, value in parts}


def _hours(series: Series, made: Recovered, first: int) -> pl.DataFrame:
    part = slice(first, None)
    energy, arrivals = np.nan_to_num(series.demand[part]), np.nan_to_num(series.reads[part, :, 0])
    lost_kwh, lost_arrivals = (Estimate(*(v[part] for v in kind)) for kind in (made.lost_kwh, made.lost_arrivals))
    whole = np.maximum(energy + lost_kwh.mean, 1e-12)
    lent = {name: share[part] * lost_kwh.mean / whole for name, share in _borrowed(made).items()}
    names = pl.Series(series.names)
    times = series.times()[first:]
    return pl.DataFrame(
        {
            "unique_id": names.gather(np.repeat(np.arange(len(names)), len(times))),
            "ds": pl.concat([times] * len(names)),
            "observed_kwh": energy.T.ravel(),
            **_columns("kwh", lost_kwh, energy),
            "arrivals": arrivals.T.ravel(),
            **_columns("arrivals", lost_arrivals, arrivals),
            "from_data": (1 - lent["from_calendar"] - lent["from_neighbours"]).T.ravel(),
            **{name: share.T.ravel() for name, share in lent.items()},
        }
    )


def _borrowed(made: Recovered) -> dict[str, Floats]:
    return {"from_calendar": made.calendar, "from_neighbours": made.nearby}


def _week_table(
    series: Series,
    first: int,
    mondays: pl.Series,
    group: NDArray[np.int64],
    arrivals: Floats,
    kwh: Floats,
    interval: float,
) -> pl.DataFrame:
    names = [*series.names, ALL]

    def whole(values: Floats) -> Floats:
        return np.concatenate([values, values.sum(axis=-1, keepdims=True)], axis=-1)

    seen = []
    for values in (series.demand[first:], series.reads[first:, :, 0]):
        total = np.zeros((len(mondays), len(series.names)))
        np.add.at(total, group, np.nan_to_num(values))
        seen.append(whole(total))
    return pl.DataFrame(
        {
            "unique_id": np.repeat(names, len(mondays)),
            "week": pl.concat([mondays] * len(names)),
            "observed_kwh": seen[0].T.ravel(),
            **_columns("kwh", estimate(whole(kwh), interval), seen[0]),
            "arrivals": seen[1].T.ravel(),
            **_columns("arrivals", estimate(whole(arrivals), interval), seen[1]),
        }
    )


def _region_table(series: Series, first: int, arrivals: Floats, kwh: Floats, interval: float) -> pl.DataFrame:
    energy, seen = (np.nan_to_num(values[first:]).sum(axis=0) for values in (series.demand, series.reads[..., 0]))
    return pl.DataFrame(
        {
            "unique_id": list(series.names),
            "observed_kwh": energy,
            **_columns("kwh", estimate(kwh.sum(axis=1), interval), energy),
            "arrivals": seen,
            **_columns("arrivals", estimate(arrivals.sum(axis=1), interval), seen),
        }
    )


def _placed(series: Series, first: int, station_hours: pl.DataFrame, stations: pl.DataFrame) -> Stations:
    """The station-hours in which something was lost, and their shares of what their region-hours lost."""
    names = stations["station_id"]
    rows = (
        station_hours.join(stations.select("station_id", "unique_id"), on="station_id")
        .filter((pl.col("lost_arrivals") > 0) & pl.col("unique_id").is_in(list(series.names)))
        .with_columns(
            hour=(pl.col("ds") - series.first).dt.total_hours(),
            node=pl.col("unique_id").replace_strict(
                list(series.names), range(len(series.names)), return_dtype=pl.Int64
            ),
            at=pl.col("station_id").replace_strict(names, range(len(names)), return_dtype=pl.Int64),
        )
        .filter((pl.col("hour") >= first) & (pl.col("hour") < series.hours))
    )
    hour, node, station = (rows[name].to_numpy() for name in ("hour", "node", "at"))
    lost = rows["lost_arrivals"].to_numpy()
    total = np.zeros((series.hours, len(series.names)))
    np.add.at(total, (hour, node), lost)
    # Of a region in a market with others, only the part that its own stations lost is at them.
    records = records_of(series.reads)
    most = np.nanmax(np.where(np.isfinite(records.exposure), records.exposure, 0.0), axis=0, initial=1e-9)
    at_own = np.clip(1 - (1 - most) / np.maximum(records.unseen, 1e-9), 0.0, 1.0)
    seen = station_hours.group_by("station_id").agg(pl.col("arrivals").sum())
    number = names.to_frame().join(seen, on="station_id", how="left", maintain_order="left")["arrivals"].fill_null(0)
    return Stations(
        station,
        hour,
        node,
        lost / total[hour, node] * np.nan_to_num(at_own[hour, node]),
        (rows["lost_kwh"] / rows["lost_arrivals"]).to_numpy(),
        1 / np.sqrt(number.to_numpy() + 2.0),
        len(names),
    )


def _station_table(
    made: Recovered,
    station_hours: pl.DataFrame | None,
    stations: pl.DataFrame | None,
    series: Series,
    first: int,
    interval: float,
) -> pl.DataFrame:
    if station_hours is None or stations is None:
        return pl.DataFrame()
    begin = series.times()[first]
    seen = (
        station_hours.filter(pl.col("ds") >= begin)
        .group_by("station_id")
        .agg(pl.col("energy_kwh").sum(), pl.col("arrivals").sum())
    )
    table = stations.select("station_id", "unique_id").join(seen, on="station_id", how="left", maintain_order="left")
    energy, arrivals = (table[name].fill_null(0).to_numpy().astype(float) for name in ("energy_kwh", "arrivals"))
    return pl.DataFrame(
        {
            "station_id": table["station_id"],
            "unique_id": table["unique_id"],
            "observed_kwh": energy,
            **_columns("kwh", estimate(made.drawn_at_stations[1], interval), energy),
            "arrivals": arrivals,
            **_columns("arrivals", estimate(made.drawn_at_stations[0], interval), arrivals),
        }
    )
