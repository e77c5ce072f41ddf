"""Conversion of OCPI Locations into stations, and of the status history of their EVSEs into outages.

A file holds one or more snapshots of each location, in any order. An EVSE (electric vehicle supply equipment, the part
that serves one car at a time) is read as a plug.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import polars as pl
from pydantic import Field, ValidationError

from unmet.errors import InputError
from unmet.records.formats.base import OUTAGES, Format, Head, Raw
from unmet.records.formats.json_text import JsonMember, Reject, json_problem, rejected_frame
from unmet.records.formats.ocpi import Coordinates, Identifier, Time, ocpi_members, operator_code, utc_time
from unmet.records.mapping import Mapping
from unmet.records.outages import merge_outages
from unmet.zones import checked_zone

__all__ = ["OCPI_LOCATIONS", "OUT", "location_changes"]

# Statuses of EVSEs that are not installed, and of all that cannot serve a car.
_NOT_INSTALLED = frozenset({"REMOVED", "PLANNED"})
OUT = frozenset({"OUTOFORDER", "INOPERATIVE", "BLOCKED"}) | _NOT_INSTALLED
_PHASES = {"AC_2_PHASE": 2, "AC_3_PHASE": 3}  # OCPI gives the voltage of one phase, line to neutral
_COORDINATES = re.compile(r'"coordinates"\s*:\s*\{')
_STATIONS = {
    "station_id": pl.String,
    "lat": pl.Float64,
    "lon": pl.Float64,
    "power_kw": pl.Float64,
    "plugs": pl.Int32,
    "operator": pl.String,
    "name": pl.String,
}

_OUTAGES = pl.Schema(OUTAGES)

_Number = Annotated[float, Field(allow_inf_nan=False)]


class _Connector(JsonMember):
    power_type: str | None = None
    max_voltage: _Number | None = None  # V
    max_amperage: _Number | None = None  # A
    max_electric_power: _Number | None = None  # W

    def power_kw(self) -> float:
        """The stated power, or the product of voltage and current [kW]; 0 if neither is known."""
        watts = self.max_electric_power or 0.0
        if watts <= 0:
            phases = _PHASES.get(self.power_type or "", 1)
            watts = phases * (self.max_voltage or 0.0) * (self.max_amperage or 0.0)
        return watts / 1000 if math.isfinite(watts) else 0.0


class _Period(JsonMember):
    period_begin: Time
    period_end: Time | None = None
    status: str


class _Evse(JsonMember):
    uid: Identifier
    status: str
    status_schedule: list[_Period] | None = None
    connectors: list[_Connector] | None = None
    last_updated: Time | None = None


class _Operator(JsonMember):
    name: str | None = None


class _Location(JsonMember):
    id: Identifier
    name: str | None = None
    coordinates: Coordinates
    operator: _Operator | None = None
    country_code: str | None = None
    party_id: str | None = None
    time_zone: str | None = None
    evses: list[_Evse] | None = None
    last_updated: Time | None = None


@dataclass(slots=True)
class _Plug:
    """What all snapshots together say about one EVSE."""

    was_installed: bool = False
    power_kw: float = 0.0
    power_at: dt.datetime | None = None
    snapshots: list[tuple[dt.datetime, str, list[_Period]]] = field(default_factory=list)  # time, status, schedule

    def add(self, evse: _Evse, time: dt.datetime | None) -> None:
        """Add a snapshot; without a time, it shows only that the plug exists, and its power."""
        status = evse.status.upper()
        self.was_installed |= status not in _NOT_INSTALLED
        power_kw = max((connector.power_kw() for connector in evse.connectors or ()), default=0.0)
        if power_kw > 0 and _is_newer(time, self.power_at):
            self.power_kw, self.power_at = power_kw, time
        if time is not None:
            self.snapshots.append((time, status, evse.status_schedule or []))

    def outages(self, until: dt.datetime) -> list[tuple[dt.datetime, dt.datetime]]:
        """Periods out of order. A status or schedule holds until the next snapshot, and the last one until `until`."""
        found = []
        snapshots = sorted(self.snapshots, key=lambda snapshot: snapshot[0])
        following = [time for time, _, _ in snapshots[1:]]
        for (time, status, schedule), superseded in zip_longest(snapshots, following):
            if status in OUT:
                found.append((time, superseded or until))
            for period in schedule:
                if period.status.upper() in OUT:
                    end = period.period_end or until
                    found.append((period.period_begin, min(end, superseded) if superseded else end))
        return [(start, end) for start, end in found if start < end]


def _is_newer(time: dt.datetime | None, than: dt.datetime | None) -> bool:
    return than is None or (time is not None and time >= than)


def _matches(head: Head) -> bool:
    # CDRs and sessions contain coordinates too.
    is_record = '"start_date_time"' in head.text or '"total_energy"' in head.text
    return head.kind == "json" and bool(_COORDINATES.search(head.text)) and not is_record


def _read(head: Head) -> Raw:
    rejects: list[Reject] = []
    envelopes: list[dict[str, Any]] = []
    latest: dict[str, _Location] = {}
    plugs: dict[str, dict[str, _Plug]] = defaultdict(lambda: defaultdict(_Plug))
    last = None  # latest time in the file, until which its last statuses hold
    for number, member in ocpi_members(head.path, envelopes):
        try:
            location = _Location.model_validate(member)
        except ValidationError as error:
            rejects.append(json_problem(number, error))
            continue
        known = latest.get(location.id)
        if known is None or _is_newer(location.last_updated, known.last_updated):
            latest[location.id] = location.model_copy(update={"evses": None})
        for evse in location.evses or ():
            time = evse.last_updated or location.last_updated
            plugs[location.id][evse.uid].add(evse, time)
            last = _later(last, time)
        last = _later(last, location.last_updated)
    for envelope in envelopes:
        last = _later(last, utc_time(envelope.get("timestamp")))
    stations = [_station(location, plugs[location.id]) for location in latest.values()]
    outages = [
        (station, uid, start, end)
        for station, members in plugs.items()
        for uid, plug in members.items()
        if plug.was_installed and last is not None
        for start, end in plug.outages(last)
    ]
    return Raw(
        Mapping(local_zone=_common_zone(latest.values())),
        stations=pl.DataFrame(stations, schema=_STATIONS, orient="row"),
        outages=merge_outages(pl.DataFrame(outages, schema=_OUTAGES, orient="row")),
        rejected=rejected_frame(rejects),
    )


def _common_zone(locations: Iterable[_Location]) -> str | None:
    """The time zone of all locations that name one; None if they name several."""
    names = {location.time_zone for location in locations if location.time_zone}
    try:
        return checked_zone(names.pop()) if len(names) == 1 else None
    except InputError:
        return None


def location_changes(path: Path) -> Iterator[tuple[int, str, str, str, dt.datetime]]:
    """Number of the member, location, EVSE, status and its time, for every valid snapshot with a time."""
    for number, member in ocpi_members(path, []):
        try:
            location = _Location.model_validate(member)
        except ValidationError:
            continue  # rejected when locations are read
        for evse in location.evses or ():
            time = evse.last_updated or location.last_updated
            if time is not None:
                yield number, location.id, evse.uid, evse.status, time


def _later(one: dt.datetime | None, other: dt.datetime | None) -> dt.datetime | None:
    return max((time for time in (one, other) if time is not None), default=None)


def _station(location: _Location, plugs: dict[str, _Plug]) -> tuple[Any, ...]:
    """A row of stations: as many plugs as ever existed, and their mean power, so that the total power is right."""
    powers = [plug.power_kw for plug in plugs.values() if plug.was_installed and plug.power_kw > 0]
    return (
        location.id,
        float(location.coordinates.latitude),
        float(location.coordinates.longitude),
        fmean(powers) if powers else None,
        sum(plug.was_installed for plug in plugs.values()) if plugs else None,
        (location.operator and location.operator.name) or operator_code(location.country_code, location.party_id),
        location.name,
    )


OCPI_LOCATIONS = Format("ocpi-locations", "OCPI 2.2.1 or 2.3.0 Locations", _matches, _read)
