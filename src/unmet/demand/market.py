"""Market share: the part of a city's demand that one operator could have observed.

Drivers do not choose stations by their plugs alone, so an operator's share of the plugs is only a rough guess at its
share of the drivers. If positions are known, the arrival rates of competitors' stations are estimated from the
operator's own stations around them (`unmet.demand.kriging`); the share in a region is the operator's own arrival rate
divided by that of all stations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.arrays import Floats
from unmet.demand.kriging import krige
from unmet.demand.regions import Regions
from unmet.errors import InputError
from unmet.geo import haversine_km

__all__ = ["Market", "Shares", "parse_share"]


MIN_KNOWN = 8  # own stations needed to estimate the rates of others
DRAWS = 400  # draws of the rates of other stations
ASSUMED_PLUGS = 2  # plugs of a station that lists none
Z_95 = 1.6449  # 95 % quantile of the standard normal distribution
BY_PLUGS_SPREAD = 0.4  # standard deviation of the logarithm of a small share that is estimated from plugs alone
COUNTING_VARIANCE = 0.005  # variance of the logarithm of a known rate that is due to counting noise
MIN_SHARE = 1e-9  # floor of a share whose logarithm is taken; a region without own arrivals has it in every draw


class Shares(NamedTuple):
    """An operator's share of the market in each region, and its uncertainty."""

    share: Floats
    spread: Floats  # standard deviation of the logarithm of the share


def parse_share(text: str) -> tuple[float, float]:
    """A share, such as 0.25, or a range that contains it with 90 % probability, such as 0.2-0.3."""
    parts = text.split("-")
    try:
        low, high = float(parts[0]), float(parts[-1])
    except ValueError:
        low, high = 0.0, 0.0
    if len(parts) > 2 or not 0 < low <= high <= 1:
        raise InputError(
            f"A market share of {text} makes no sense: give one above 0 and up to 1, such as 0.25 or 0.2-0.3."
        )
    return low, high


@dataclass(frozen=True, slots=True)
class Market:
    """An operator's share of the market, estimated from the stations of all operators or given.

    If `operator` is given, the table of stations must list those of all operators. If `share` is given, it holds in
    every region; a range contains it with a probability of 90 %.
    """

    operator: str | None = None
    share: float | tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.share is not None:
            parse_share("-".join(f"{part:g}" for part in self._range))
        if self.operator is not None and self.share is not None:
            raise InputError("Give --operator or --share, not both: each of them determines the market share.")

    @property
    def _range(self) -> tuple[float, float]:
        if self.share is None:
            return 1.0, 1.0
        return self.share if isinstance(self.share, tuple) else (self.share, self.share)

    def own_stations(self, stations: pl.DataFrame) -> pl.DataFrame:
        """The operator's own stations."""
        if self.operator is None:
            return stations
        if "operator" not in stations.columns or stations["operator"].null_count() == stations.height:
            raise InputError("--operator needs a column `operator` in the table of stations: give it with --stations.")
        own = stations.filter(pl.col("operator") == self.operator)
        if own.is_empty():
            known = ", ".join(sorted(str(o) for o in stations["operator"].drop_nulls().unique())[:10])
            raise InputError(f"No station belongs to {self.operator!r}: the operators are {known}.")
        return own

    def all_stations(self, stations: pl.DataFrame, own: pl.DataFrame) -> pl.DataFrame:
        """The stations of all operators; for the operator's own stations, `plugs` is their capacity."""
        if self.operator is None:
            return own
        others = stations.join(own.select("station_id"), on="station_id", how="anti", maintain_order="left")
        assumed = others.with_columns(pl.col("plugs").fill_null(ASSUMED_PLUGS).cast(pl.Int64))
        counted = own.with_columns(plugs=pl.col("capacity").cast(pl.Int64))
        return pl.concat([counted.select(others.columns), assumed])

    def share_of_regions(self, regions: Regions, everyone: pl.DataFrame, own: pl.DataFrame, rate: Floats) -> Shares:
        """The operator's share of the market in each region.

        Without positions, or with few own stations, it is the share of the plugs.

        Args:
            regions: regions of all stations.
            everyone: stations of all operators, as in `Panel.everyone`.
            own: the operator's own stations.
            rate: arrivals per hour at the operator's own stations.
        """
        n_regions = regions.centres.height
        if self.operator is None:
            # The logarithm of the share is normal, and the range is its central 90 % interval.
            low, high = np.log(self._range)
            return Shares(np.full(n_regions, np.exp((low + high) / 2)), np.full(n_regions, (high - low) / (2 * Z_95)))
        codes = pl.Series(regions.codes())
        region = (
            everyone["station_id"]
            .replace_strict(regions.of_station["station_id"], codes, return_dtype=pl.Int64)
            .to_numpy()
        )
        is_own = everyone["station_id"].is_in(own["station_id"].implode()).to_numpy()
        rates = np.zeros(everyone.height)
        row_of = {name: i for i, name in enumerate(own["station_id"].to_list())}
        rates[is_own] = [rate[row_of[name]] for name in everyone.filter(is_own)["station_id"]]
        plugs = everyone["plugs"].to_numpy().astype(float)
        known = is_own & (rates > 0)
        placed = everyone["lat"].null_count() == 0 and everyone["lon"].null_count() == 0
        if not placed or known.sum() < MIN_KNOWN:
            share = _ratio(np.where(is_own, plugs, 0.0), plugs, region, n_regions)
            # The uncertainty vanishes as the share approaches 1: there are no competitors to misjudge.
            return Shares(share, np.where(share < 1, BY_PLUGS_SPREAD * np.sqrt(1 - share), 0.0))
        return self._kriged(everyone, rates, known, is_own, region, n_regions, plugs)

    def _kriged(
        self,
        everyone: pl.DataFrame,
        rates: Floats,
        known: NDArray[np.bool_],
        is_own: NDArray[np.bool_],
        region: NDArray[np.int64],
        n_regions: int,
        plugs: Floats,
    ) -> Shares:
        """Shares from arrival rates; the rates of competitors are drawn from the kriged distribution."""
        lat, lon = everyone["lat"].to_numpy(), everyone["lon"].to_numpy()
        km = haversine_km(lat[:, None], lon[:, None], lat, lon)
        fitted = krige(np.where(known, rates, 1.0), np.full(len(rates), COUNTING_VARIANCE), known, km, plugs)
        drawn = fitted.draws(DRAWS, np.random.default_rng(0))
        logs = np.empty((DRAWS, n_regions))
        for i, row in enumerate(drawn):
            all_rates = np.where(is_own, rates, row)
            logs[i] = np.log(np.maximum(_ratio(np.where(is_own, rates, 0.0), all_rates, region, n_regions), MIN_SHARE))
        # Lost demand is proportional to 1 / share, so the inverse of the share must be unbiased.
        share = 1 / np.exp(-logs).mean(axis=0)
        return Shares(np.where(share < 10 * MIN_SHARE, 0.0, share), logs.std(axis=0))

    def notes(self, stations: pl.DataFrame, own: pl.DataFrame) -> list[str]:
        """Sentences about the assumptions made."""
        if self.share is not None:
            low, high = (f"{100 * part:g}" for part in self._range)
            percent = low if low == high else f"{low} to {high}"
            return [f"This operator is assumed to serve {percent} % of the market everywhere."]
        if self.operator is None:
            return []
        others = stations.join(own.select("station_id"), on="station_id", how="anti")
        unknown = others["plugs"].null_count()
        owned = f"{own.height} of {stations.height} stations belong to {self.operator}."
        assumed = f"{unknown} stations of other operators list no plugs: {ASSUMED_PLUGS} plugs are assumed at each."
        return [owned, assumed] if unknown else [owned]


def _ratio(own: Floats, every: Floats, region: NDArray[np.int64], n_regions: int) -> Floats:
    """Sum of `own` over sum of `every` in each region; both have one value per station."""
    total = np.bincount(region, every, minlength=n_regions)
    return np.asarray(np.bincount(region, own, minlength=n_regions) / np.maximum(total, 1e-12))
