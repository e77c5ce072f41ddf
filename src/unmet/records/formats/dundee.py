"""Dundee City Council's open charging sessions: days first, local time, open sessions without an end."""

from __future__ import annotations

from unmet.records.formats.table import table_format
from unmet.records.mapping import Mapping

FORMAT = table_format(
    "dundee",
    "Dundee City Council open data (CSV)",
    columns=("Charging event", "CP ID", "Connector", "Start Date", "Start Time", "End Date", "End Time", "Total kWh"),
    mapping=Mapping(
        session_id="Charging event",
        station_id="CP ID",
        plug_id="Connector",
        start=("Start Date", "Start Time"),
        end=("End Date", "End Time"),
        energy_kwh="Total kWh",
        vehicle_id="User ID",  # only some files have it
        time_zone="Europe/London",
        day_first=True,
    ),
)
