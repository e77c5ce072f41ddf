"""City of Boulder's open charging sessions: a station is an address.

The columns of time zones (MST, MDT) are not used: the times are in UTC. In all 13 sessions across a change of the
clocks the recorded duration is the plain difference of the times, and arrivals jump at 14 h in summer and at 15 h in
winter, which is 8 h in Boulder. To read them as labelled all the same: `--map zone=Start_Time_Zone`.
"""

from __future__ import annotations

from unmet.records.formats.table import table_format
from unmet.records.mapping import Mapping

FORMAT = table_format(
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
