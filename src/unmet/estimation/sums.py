"""Sums of posterior draws: lost demand by station, site, region, week and hour, all from the same draws.

Every site has random numbers of its own, so that results depend neither on the regions nor on the order of computation.
The lost drivers of a site are divided among its stations at random, in proportion to their sessions.

Assumption: a lost driver would have used a station of the site as often as recorded drivers do.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.arrays import Floats, Integers
from unmet.compiled import compiled
from unmet.demand.calendar import hours_between
from unmet.demand.panel import Panel
from unmet.estimation.exposed import FullHours
from unmet.estimation.hours import HourEffects
from unmet.estimation.occupancy import Network
from unmet.estimation.posterior import NetworkDraws, SiteDraws, draw_site
from unmet.estimation.rates import Rates
from unmet.runs import available_cores

__all__ = [
    "KEPT_DRAWS",
    "Estimate",
    "Ingredients",
    "Recovered",
    "RegionDraws",
    "estimate",
    "region_hour_table",
    "sum_draws",
]

KEPT_DRAWS = 32
"""Number of draws of every region-hour that are kept for training models."""
MAX_KEPT = 200_000_000  # highest number of kept values: draws by region and hour
MAX_DRIVERS = 500_000_000  # highest number of kept values: lost drivers by full hour and draw, a gigabyte
NO_DRAWS = np.empty((0, 0))
SITE_STREAM = 2  # keeps the sites' random numbers apart from others of the same seed


class Estimate(NamedTuple):
    """Posterior mean, and an interval."""

    mean: Floats
    low: Floats
    high: Floats


class RegionDraws(NamedTuple):
    """Draws of the lost demand of one region in the hours with any chance of a loss."""

    region: str
    hour: Integers  # (hours,)
    arrivals: Floats  # (hours, draws)
    kwh: Floats  # (hours, draws)


@dataclass(frozen=True, slots=True)
class Recovered:
    """Sums of the draws of lost demand; draws are on the first axis."""

    station_arrivals: Floats  # (draws, stations)
    station_kwh: Floats  # (draws, stations)
    week_arrivals: Floats  # (draws, regions, weeks)
    week_kwh: Floats  # (draws, regions, weeks)
    weeks: pl.Series  # local Mondays
    hours: pl.DataFrame
    """Region-hours with any chance of a loss: `unique_id, ds, lost_arrivals, lost_kwh` with `_low` and `_high`,
    `any_lost` (probability of a loss), `lost_draws` (the first draws of lost_kwh)."""
    station_hours: pl.DataFrame  # station_id, ds, lost_arrivals, lost_kwh: posterior means
    drivers: NDArray[np.uint16] | None  # (full hours, draws), lost drivers of sites; None if there are too many
    region_draws: tuple[RegionDraws, ...] = ()  # all draws of region-hours, if they are added to those of other areas


def estimate(draws: Floats, interval: float) -> Estimate:
    """Mean and central interval over the first axis."""
    low, high = np.quantile(draws, [(1 - interval) / 2, (1 + interval) / 2], axis=0)
    return Estimate(draws.mean(axis=0), low, high)


@dataclass(frozen=True, slots=True)
class Ingredients:
    """All inputs of the draws of a site."""

    panel: Panel
    network: Network  # sites as the estimator sees them
    rates: Rates  # the fitted intensity
    rows: FullHours  # hours in which sites were full
    usual: Floats  # arrivals predicted for these hours by each resampled profile, (rows, profiles)
    bursts: HourEffects  # effects of these hours
    common: NetworkDraws  # draws of the factors that all sites share
    session_kwh: Floats  # mean energy of a lost driver, (stations, blocks of the day)
    variation: float  # coefficient of variation of a session's energy
    seed: int  # seed of the sites' random numbers

    def rows_of(self, site: int) -> slice:
        """The full hours of a site, which are sorted by site."""
        first, last = np.searchsorted(self.rows.site, [site, site + 1])
        return slice(int(first), int(last))

    def station_weights(self) -> Floats:
        """Weight of each station among the drivers of its site; even an unused station has some weight."""
        return self.panel.stations["sessions"].to_numpy() + 0.5

    def draw(self, site: int) -> tuple[Integers, Integers, list[tuple[Floats, Floats]]]:
        """Stations of a site, its full hours, and the draws of each station's arrivals and energy."""
        part, rows, share = self.rows_of(site), self.rows, self.station_weights()
        stations = np.flatnonzero(self.network.site_of_station == site)
        rng = np.random.default_rng([self.seed, SITE_STREAM, site])
        drawn = draw_site(
            site,
            FullHours(rows.site[part], rows.hour[part], rows.full[part], rows.usual[part]),
            usual=self.usual[part],
            network=self.common,
            rates=self.rates,
            bursts=HourEffects(self.bursts.shape, self.bursts.arrivals[part], self.bursts.expected[part]),
            clock=self.network.clock,
            capacity=int(self.network.capacity[site]),
            capacity_sure=float(self.panel.sites["capacity_sure"][site]),
            session_kwh=np.average(self.session_kwh[stations], axis=0, weights=share[stations]),
            variation=self.variation,
            rng=rng,
        )
        return stations, drawn.hour, _split(drawn, share[stations], rng)


class _StationSums(NamedTuple):
    """Lost demand of one station: sums over hours by draw, and means over draws by hour."""

    station: int
    arrivals: Floats  # (draws,)
    kwh: Floats  # (draws,)
    hour: Integers
    mean_arrivals: Floats  # (hours,)
    mean_kwh: Floats  # (hours,)


def sum_draws(given: Ingredients, interval: float, *, keep_regions: bool = False) -> Recovered:
    """Draw every site, and add up by station, week and region-hour; `keep_regions` keeps all draws of region-hours."""
    panel, draws = given.panel, given.common.draws
    times = hours_between(*panel.period)
    monday = times.dt.convert_time_zone(panel.time_zone).dt.truncate("1w").dt.date()
    weeks = monday.unique().sort()
    week = monday.replace_strict(weeks, np.arange(len(weeks)), return_dtype=pl.Int64).to_numpy()
    names, stations = panel.regions.centres["unique_id"], panel.stations.height
    regions = len(names)
    region = panel.stations["unique_id"].replace_strict(names, np.arange(regions), return_dtype=pl.Int64).to_numpy()
    kept = min(KEPT_DRAWS, draws) if regions * len(times) * KEPT_DRAWS <= MAX_KEPT else 0
    station_arrivals, station_kwh = np.zeros((draws, stations)), np.zeros((draws, stations))
    week_arrivals, week_kwh = np.zeros((draws, regions, len(weeks))), np.zeros((draws, regions, len(weeks)))
    rows = len(given.rows.site)
    drivers = np.zeros((rows, draws), np.uint16) if rows * draws <= MAX_DRIVERS else None

    def of_region(r: int) -> tuple[list[_StationSums], pl.DataFrame, RegionDraws]:
        hours, arrivals, kwh, parts = _region_draws(given, region == r, drivers)
        starts = np.flatnonzero(np.diff(week[hours], prepend=-1))  # position of the first hour of each week
        if len(starts):
            of_week = week[hours][starts]
            week_arrivals[:, r, of_week] = np.add.reduceat(arrivals, starts, axis=0).T
            week_kwh[:, r, of_week] = np.add.reduceat(kwh, starts, axis=0).T
        for part in parts:
            station_arrivals[:, part.station], station_kwh[:, part.station] = part.arrivals, part.kwh
        table = region_hour_table(str(names[r]), times.gather(hours), arrivals, kwh, interval, kept)
        return parts, table, RegionDraws(str(names[r]), hours, *((arrivals, kwh) if keep_regions else (NO_DRAWS,) * 2))

    with ThreadPoolExecutor(available_cores()) as pool:  # drawing random numbers releases the interpreter lock
        parts_of_regions = list(pool.map(of_region, range(regions)))
    return Recovered(
        station_arrivals,
        station_kwh,
        week_arrivals,
        week_kwh,
        weeks,
        pl.concat(table for _, table, _ in parts_of_regions),
        _station_table(panel, times, [part for parts, _, _ in parts_of_regions for part in parts]),
        drivers,
        tuple(drawn for _, _, drawn in parts_of_regions) if keep_regions else (),
    )


def _region_draws(
    given: Ingredients, member: NDArray[np.bool_], drivers: NDArray[np.uint16] | None
) -> tuple[Integers, Floats, Floats, list[_StationSums]]:
    """Hours with a chance of a loss, draws of arrivals and energy in them, (hours, draws), and sums of the stations.

    A site with stations in several regions is drawn once for each, from the same random numbers. The lost drivers of
    the sites are written to `drivers`, if it is given.
    """
    parts = {s: given.rows_of(s) for s in np.unique(given.network.site_of_station[member])}
    sites = [s for s, part in parts.items() if part.stop > part.start]
    hours = np.unique(np.concatenate([given.rows.hour[parts[s]] for s in sites] or [np.empty(0, np.int64)]))
    arrivals, kwh = np.zeros((len(hours), given.common.draws)), np.zeros((len(hours), given.common.draws))
    sums = []
    for s in sites:
        stations, hour, drawn = given.draw(int(s))
        if drivers is not None:
            drivers[parts[s]] = sum(arrivals for arrivals, _ in drawn)
        at = np.searchsorted(hours, hour)
        for station, (part_arrivals, part_kwh) in zip(stations, drawn, strict=True):
            if member[station]:
                by_draw, by_hour = _add(arrivals, part_arrivals, at)
                kwh_by_draw, kwh_by_hour = _add(kwh, part_kwh, at)
                sums.append(_StationSums(int(station), by_draw, kwh_by_draw, hour, by_hour, kwh_by_hour))
    return hours, arrivals, kwh, sums


@compiled()
def _add(total: Floats, part: Floats, at: Integers) -> tuple[Floats, Floats]:
    """Add the draws of a station to those of its region; return its sums over hours and its means over draws."""
    hours, draws = part.shape
    by_draw, by_hour = np.zeros(draws), np.zeros(hours)
    for h in range(hours):
        for i in range(draws):
            total[at[h], i] += part[h, i]
            by_draw[i] += part[h, i]
            by_hour[h] += part[h, i]
    return by_draw, by_hour / draws


def _split(drawn: SiteDraws, share: Floats, rng: np.random.Generator) -> list[tuple[Floats, Floats]]:
    """Arrivals and energy of each station of a site, (hours, draws); in every draw they add up to the site's.

    Drivers are multinomial with the shares of the stations, drawn station by station from binomials.
    """
    if len(share) == 1:
        return [(drawn.arrivals, drawn.kwh)]
    parts, left, rest = [], drawn.arrivals, float(share.sum())
    kwh_per_driver = np.divide(drawn.kwh, drawn.arrivals, out=np.zeros_like(drawn.kwh), where=drawn.arrivals > 0)
    for value in share[:-1]:
        part = rng.binomial(left.astype(np.int64), min(value / rest, 1.0)).astype(float)
        parts.append((part, part * kwh_per_driver))
        left, rest = left - part, rest - value
    return [*parts, (left, left * kwh_per_driver)]


def region_hour_table(
    name: str, times: pl.Series, arrivals: Floats, kwh: Floats, interval: float, kept: int
) -> pl.DataFrame:
    """Region-hours as in `Recovered.hours`, from draws (hours, draws), with the first `kept` draws of energy."""
    columns: dict[str, pl.Series | Floats] = {"unique_id": pl.Series([name] * len(times), dtype=pl.String), "ds": times}
    for what, values in (("arrivals", arrivals), ("kwh", kwh)):
        ends = estimate(values.T, interval)
        columns |= {f"lost_{what}{end}": value for end, value in zip(("", "_low", "_high"), ends, strict=True)}
    columns["any_lost"] = (arrivals > 0).mean(axis=1)
    table = pl.DataFrame(columns)
    if kept:
        draws = np.ascontiguousarray(kwh[:, :kept].astype(np.float32))
        table = table.with_columns(pl.Series("lost_draws", draws, dtype=pl.Array(pl.Float32, kept)))
    return table


def _station_table(panel: Panel, times: pl.Series, parts: list[_StationSums]) -> pl.DataFrame:
    """Posterior means of every station-hour with a chance of a loss."""
    hours = [len(part.hour) for part in parts]
    station = np.repeat(np.array([part.station for part in parts], np.int64), hours)
    hour = np.concatenate([part.hour for part in parts] or [np.empty(0, np.int64)])
    table = pl.DataFrame(
        {
            "station_id": panel.stations["station_id"].gather(station),
            "ds": times.gather(hour),
            "lost_arrivals": np.concatenate([part.mean_arrivals for part in parts] or [np.empty(0)]),
            "lost_kwh": np.concatenate([part.mean_kwh for part in parts] or [np.empty(0)]),
        }
    )
    return table.sort("station_id", "ds")
