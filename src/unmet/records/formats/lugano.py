"""Lugano's public charging sessions (AIL): energy in Wh, months first in two forms, users by number.

A spreadsheet rewrote the dates that it took for its own (`01.02.17` for the second of January) and left the others
(`01/26/2017`): all of them have the month first.
"""

from __future__ import annotations

from unmet.records.formats.table import table_format
from unmet.records.mapping import Mapping

FORMAT = table_format(
    "lugano",
    "AIL Lugano open data (CSV)",
    columns=("ChargeLogId", "UserId", "BeginDate", "BeginHour", "EndDate", "EndHour", "PowerConsumption", "Plug"),
    mapping=Mapping(
        session_id="ChargeLogId",
        station_id="ChargingStationId",
        plug_id="Plug",
        start=("BeginDate", "BeginHour"),
        end=("EndDate", "EndHour"),
        energy_kwh="PowerConsumption",
        energy_factor=0.001,
        user_id="UserId",
        operator=None,
        time_zone="Europe/Zurich",
    ),
)
