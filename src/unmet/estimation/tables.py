"""Tables of lost demand: by station, site, region, week and hour, with intervals, all from the same draws."""

from __future__ import annotations

import numpy as np
import polars as pl

from unmet.arrays import Floats
from unmet.demand.calendar import hours_between
from unmet.demand.panel import Panel
from unmet.estimation.exposed import FullHours
from unmet.estimation.occupancy import Network
from unmet.estimation.sums import Recovered, estimate

__all__ = ["ALL", "hour_table", "region_table", "site_table", "station_hour_table", "station_table", "week_table"]

ALL = "all"
"""The name of all regions together in the table of weeks."""


def measures(
    observed_kwh: Floats, observed_arrivals: Floats, kwh: Floats, arrivals: Floats, interval: float
) -> dict[str, Floats]:
    """Observed, lost and true energy and arrivals as columns, from values (rows,) and draws (draws, rows)."""
    columns = {}
    for name, observed, draws in (("kwh", observed_kwh, kwh), ("arrivals", observed_arrivals, arrivals)):
        columns["observed_kwh" if name == "kwh" else "arrivals"] = observed
        lost = list(zip(("", "_low", "_high"), estimate(draws, interval), strict=True))
        columns |= {f"lost_{name}{end}": value for end, value in lost}
        columns |= {f"true_{name}{end}": value + observed for end, value in lost}
    return columns


def station_table(
    panel: Panel, network: Network, rows: FullHours, recovered: Recovered, interval: float
) -> pl.DataFrame:
    """One row per station, in the order of the panel."""
    known = panel.stations
    full = _full_share(network, rows)[network.site_of_station]
    observed = known["energy_kwh"].to_numpy().astype(float), known["sessions"].to_numpy().astype(float)
    kept = ("station_id", "name", "site_id", "unique_id", "lat", "lon", "capacity", "capacity_from")
    return known.select(kept).with_columns(
        full_share=pl.Series(full),
        **{
            name: pl.Series(values)
            for name, values in measures(*observed, recovered.station_kwh, recovered.station_arrivals, interval).items()
        },
    )


def site_table(panel: Panel, network: Network, rows: FullHours, recovered: Recovered, interval: float) -> pl.DataFrame:
    """One row per site."""
    order = np.argsort(network.site_of_station, kind="stable")
    first = np.searchsorted(network.site_of_station[order], np.arange(network.sites))

    def of_sites(values: Floats) -> Floats:
        return np.asarray(np.add.reduceat(values[..., order], first, axis=-1))

    energy, sessions = (of_sites(panel.stations[name].to_numpy().astype(float)) for name in ("energy_kwh", "sessions"))
    columns = measures(
        energy, sessions, of_sites(recovered.station_kwh), of_sites(recovered.station_arrivals), interval
    )
    full = pl.Series("full_share", _full_share(network, rows))
    return panel.sites.with_columns(full, *(pl.Series(name, values) for name, values in columns.items()))


def region_table(panel: Panel, recovered: Recovered, interval: float) -> pl.DataFrame:
    """One row per region."""
    names = panel.regions.centres["unique_id"]
    observed = _observed_by(panel, pl.lit(0).alias("week"), names, pl.Series([0]))
    kwh, arrivals = recovered.week_kwh.sum(axis=2), recovered.week_arrivals.sum(axis=2)
    columns = measures(observed[0][:, 0], observed[1][:, 0], kwh, arrivals, interval)
    return pl.DataFrame({"unique_id": names, **columns})


def week_table(panel: Panel, recovered: Recovered, interval: float) -> pl.DataFrame:
    """One row per region and local week, and per week of all regions together."""
    names = panel.regions.centres["unique_id"]
    monday = pl.col("ds").dt.convert_time_zone(panel.time_zone).dt.truncate("1w").dt.date().alias("week")
    observed_kwh, observed = (_with_all(values, 0) for values in _observed_by(panel, monday, names, recovered.weeks))
    kwh, arrivals = (_with_all(values, 1) for values in (recovered.week_kwh, recovered.week_arrivals))
    draws = len(kwh)
    lost = kwh.reshape(draws, -1), arrivals.reshape(draws, -1)
    columns = measures(observed_kwh.ravel(), observed.ravel(), *lost, interval)
    rows = [*names, ALL]
    return pl.DataFrame(
        {
            "unique_id": np.repeat(rows, len(recovered.weeks)),
            "week": pl.concat([recovered.weeks] * len(rows)),
            **columns,
        }
    )


def hour_table(panel: Panel, recovered: Recovered) -> pl.DataFrame:
    """One row per region and hour."""
    lost = [name for name in recovered.hours.columns if name.startswith("lost_") and name != "lost_draws"]
    joined = panel.table.select("unique_id", "ds", "arrivals", observed_kwh="y").join(
        recovered.hours.select("unique_id", "ds", *lost), on=["unique_id", "ds"], how="left", maintain_order="left"
    )
    filled = joined.with_columns(pl.col(lost).fill_null(0.0))
    true = [
        (pl.col(name) + pl.col("observed_kwh" if "kwh" in name else "arrivals")).alias(name.replace("lost", "true"))
        for name in lost
    ]
    return filled.with_columns(true)


def station_hour_table(panel: Panel, network: Network, rows: FullHours, recovered: Recovered) -> pl.DataFrame:
    """Station-hours with an arrival, or in which the station's site was full for some time."""
    first, last = panel.period
    observed = panel.sessions.group_by("station_id", ds=pl.col("start").dt.truncate("1h"), maintain_order=True).agg(
        arrivals=pl.len().cast(pl.Int64), energy_kwh=pl.sum("energy_kwh")
    )
    site = panel.sites["site_id"].gather(rows.site)
    full = (
        pl.DataFrame({"site_id": site, "ds": hours_between(first, last).gather(rows.hour), "full": rows.full})
        .join(panel.stations.select("station_id", "site_id"), on="site_id")
        .select("station_id", "ds", "full")
    )
    keys = ["station_id", "ds"]
    joined = observed.join(full, on=keys, how="full", coalesce=True).join(recovered.station_hours, on=keys, how="left")
    columns = ("arrivals", "energy_kwh", "full", "lost_arrivals", "lost_kwh")
    return joined.select(*keys, pl.col(columns).fill_null(0)).sort(keys)


def _full_share(network: Network, rows: FullHours) -> Floats:
    """Share of its open time for which each site was full."""
    hours = np.maximum((network.closed_ms - network.opened_ms) / 3_600_000, 1e-9)
    return np.asarray(np.bincount(rows.site, rows.full, minlength=network.sites) / hours)


def _observed_by(panel: Panel, week: pl.Expr, names: pl.Series, weeks: pl.Series) -> tuple[Floats, Floats]:
    """Recorded energy and arrivals by region and week, (regions, weeks)."""
    sums = panel.table.group_by("unique_id", week, maintain_order=True).agg(pl.sum("y"), pl.sum("arrivals"))
    grid = pl.DataFrame({"unique_id": names}).join(pl.DataFrame({"week": weeks}), how="cross")
    sums = sums.with_columns(pl.col("week").cast(weeks.dtype))
    joined = grid.join(sums, on=["unique_id", "week"], how="left", maintain_order="left").fill_null(0)
    shape = len(names), len(weeks)
    return joined["y"].to_numpy().reshape(shape), joined["arrivals"].to_numpy().astype(float).reshape(shape)


def _with_all(values: Floats, axis: int) -> Floats:
    """Values by region with one more entry along `axis`, their sum over all regions."""
    return np.concatenate([values, values.sum(axis=axis, keepdims=True)], axis=axis)
