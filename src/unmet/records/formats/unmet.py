"""Our own table of sessions, as a simulation writes it."""

from __future__ import annotations

from unmet.records.formats.table import table_format
from unmet.records.mapping import Mapping

FORMAT = table_format(
    "unmet",
    "sessions.parquet of a run (Parquet or CSV)",
    columns=("session_id", "station_id", "start", "end", "energy_kwh"),
    mapping=Mapping(),
)
