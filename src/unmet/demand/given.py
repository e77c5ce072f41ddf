"""Inputs of a panel: records that were read or simulated, or data frames."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from unmet.demand.gate import checked_sessions, checked_stations
from unmet.errors import InputError
from unmet.frames import frame_type_of
from unmet.records.sessions import Records
from unmet.simulation.outcome import Outcome
from unmet.tables import as_frame

__all__ = ["GivenRecords", "read_given"]


@dataclass(frozen=True, slots=True)
class GivenRecords:
    """Checked sessions and stations, with outages, time zone and the data frame library that they came in."""

    sessions: pl.DataFrame
    stations: pl.DataFrame
    outages: pl.DataFrame | None
    time_zone: str
    frame_type: str


def read_given(records: Any, stations: Any, outages: Any, time_zone: str | None) -> GivenRecords:
    """Check the records of a panel; the other arguments override what the records contain."""
    known_zone, frame_type = "UTC", None
    sessions = records
    if isinstance(records, Records):
        sessions, known_zone, frame_type = records.sessions, records.time_zone, records.frame_type
        stations = records.stations if stations is None else stations
        outages = records.outages if outages is None else outages
    elif isinstance(records, Outcome):
        sessions, known_zone = records.sessions, records.time_zone
        stations = records.stations if stations is None else stations
    elif isinstance(records, str | Path):
        raise InputError(f"A panel is made from records: read {records} with unmet.read_sessions first.")
    rows = checked_sessions(sessions)
    if stations is None:
        stations = rows.select(pl.col("station_id").unique(maintain_order=True))
    return GivenRecords(
        rows,
        checked_stations(stations),
        None if outages is None else as_frame(outages),
        time_zone or known_zone,
        frame_type or frame_type_of(sessions, stations),
    )
