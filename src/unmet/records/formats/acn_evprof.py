"""ACN-Data sessions as evprof publishes them: one site, many plugs.

Times carry no zone and are in UTC: arrivals on the workdays of this Californian workplace peak at 14 h in summer and
at 15 h in winter, which is 7 h there, and local time would not shift with the clocks.
"""

from __future__ import annotations

from unmet.records.formats.table import table_format
from unmet.records.mapping import Mapping

FORMAT = table_format(
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
