"""The outcome of a simulation, in a separate module, so that reading records does not load the simulator."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from unmet.frames import POLARS, Frame, to_frame_type

__all__ = ["SESSION_COLUMNS", "Outcome"]

SESSION_COLUMNS = ("session_id", "station_id", "start", "charged", "end", "energy_kwh", "plug_id", "vehicle_id")


@dataclass(frozen=True, slots=True, repr=False)
class Outcome:
    """The outcome of a simulation: every arrival, served or lost, and the electric cars."""

    arrivals: pl.DataFrame
    vehicles: pl.DataFrame
    stations: pl.DataFrame
    trips: int  # number of trips by electric cars
    time_zone: str  # local time zone of the city
    frame_type: str = POLARS  # library of the data frames that came in

    def __repr__(self) -> str:
        lost = int((self.arrivals["outcome"] == "lost").sum())
        return (
            f"Outcome({self.arrivals.height:,} arrivals, {lost:,} lost, {self.vehicles.height:,} electric cars, "
            f"{self.stations.height:,} stations)"
        )

    def to_frame(self, table: str = "arrivals") -> Frame:
        """A table as a data frame of the library that the trips came in.

        Args:
            table: `arrivals`, `sessions` (as operators would have recorded them), `stations` or `vehicles`.
        """
        return to_frame_type(getattr(self, table), self.frame_type)

    @property
    def sessions(self) -> pl.DataFrame:
        """The sessions that operators would have recorded: the served arrivals."""
        served = self.arrivals.filter(pl.col("outcome") == "served").sort("start", "station_id", "session_id")
        return served.select(SESSION_COLUMNS)
