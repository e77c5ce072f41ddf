"""Market: which part of a city's demand one operator could have seen at all."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.demand.regions import Regions
from unmet.errors import InputError

__all__ = ["Market"]


@dataclass(frozen=True, slots=True)
class Market:
    """An operator's place in the market: a share of all plugs, known by operator or simply given.

    With `operator`, the stations table holds everybody's, and the share of a region is the operator's plugs over all
    plugs there. With `share`, it is the same everywhere.
    """

    operator: str | None = None
    share: float | None = None

    def __post_init__(self) -> None:
        if self.share is not None and not 0 < self.share <= 1:
            raise InputError(f"A market share of {self.share:g} makes no sense: give one over 0 and up to 1, as 0.25.")
        if self.operator is not None and self.share is not None:
            raise InputError("Give --operator or --share, not both: either says what the market share is.")

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
        """Everybody's stations, the operator's own with their counted plugs."""
        if self.operator is None:
            return own
        others = stations.join(own.select("station_id"), on="station_id", how="anti", maintain_order="left")
        assumed = others.with_columns(pl.col("plugs").fill_null(ASSUMED_PLUGS).cast(pl.Int64))
        return pl.concat([own.select(others.columns), assumed])

    def share_of_regions(self, regions: Regions, own: pl.DataFrame) -> NDArray[np.float64]:
        """The operator's share of the market in each region."""
        if self.operator is None:
            return np.full(regions.centres.height, 1.0 if self.share is None else self.share)
        located = own.join(regions.of_station, on="station_id")
        mine = located.group_by("unique_id").agg(mine=pl.sum("plugs").cast(pl.Float64))
        both = regions.centres.join(mine, on="unique_id", how="left", maintain_order="left")
        return (both["mine"].fill_null(0) / both["plugs"]).to_numpy(writable=True)

    def notes(self, stations: pl.DataFrame, own: pl.DataFrame) -> list[str]:
        """What was assumed."""
        if self.share is not None:
            return [f"This operator is taken to serve {100 * self.share:g} % of the market everywhere."]
        if self.operator is None:
            return []
        others = stations.join(own.select("station_id"), on="station_id", how="anti")
        unknown = others["plugs"].null_count()
        said = f"{own.height} of {stations.height} stations belong to {self.operator}."
        return [said, f"{unknown} stations of others have no plugs: {ASSUMED_PLUGS} were taken."] if unknown else [said]


ASSUMED_PLUGS = 2
