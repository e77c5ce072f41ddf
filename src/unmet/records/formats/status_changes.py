"""Availability feeds: status changes of EVSEs, from which stays and outages are derived.

Status changes give no energies, but they show when each plug was taken and when it was out of order, so arrivals,
occupancy and exposure are known. Stays have an energy of 0.

`status-changes` is a table with a row for every change: EVSE, status, time, and perhaps the location. `ocpi-status`,
which must be requested by name, reads the status of EVSEs in OCPI Locations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import polars as pl

from unmet.csv_files import LINE
from unmet.records.formats.base import OUTAGES, Format, Head, Raw
from unmet.records.formats.files import read_table
from unmet.records.formats.generic import read_json_table
from unmet.records.formats.ocpi_locations import OCPI_LOCATIONS, OUT, location_changes
from unmet.records.mapping import Mapping
from unmet.records.outages import merge_outages
from unmet.records.times import read_times, to_utc
from unmet.tables import UTC

__all__ = ["OCPI_STATUS", "STATUS_CHANGES"]

OCCUPIED = frozenset({"CHARGING", "OCCUPIED", "PREPARING", "SUSPENDEDEV", "SUSPENDEDEVSE", "FINISHING", "INUSE"})
_OUT = OUT | {"FAULTED", "UNAVAILABLE", "OFFLINE"}
_NAMES = {
    "evse": ("evseuid", "evseid", "evse", "plugid", "connectorid", "connector", "uid"),
    "status": ("status", "evsestatus", "newstatus", "state", "availability"),
    "time": ("timestamp", "time", "lastupdated", "changedat", "updatedat", "datetime", "since"),
    "location": ("locationid", "location", "stationid", "station", "siteid", "site", "chargepointid"),
}
# Stays already have the default columns of a mapping, except these, which feeds do not contain.
_MAPPING = Mapping(session_id=None, operator=None, vehicle_id=None, user_id=None)
_FREE, _TAKEN, _OUT_OF_ORDER = 0, 1, 2  # what a status says about its plug
_NOTE = "status changes give no energies: stays have 0 kWh; arrivals, occupancy and exposure are known."


def _columns(names: list[str] | tuple[str, ...]) -> dict[str, str]:
    """The column of a feed that holds each kind of value: evse, status, time, location."""
    plain = {re.sub(r"[^a-z]", "", name.lower()): name for name in reversed(names)}
    found = {}
    for what, words in _NAMES.items():
        name = next((plain[word] for word in words if word in plain), None)
        if name is not None:
            found[what] = name
    return found


def _matches(head: Head) -> bool:
    names = list(head.columns) or re.findall(r'"([^"\\]{1,60})"\s*:', head.text[:20_000])
    found = _columns(tuple(names))
    # A session has a start and an end, a change has one time; a location has coordinates.
    others = {"start", "end", "energy_kwh", "coordinates", "cdr_location", "evses"} & {name.lower() for name in names}
    return {"evse", "status", "time"} <= set(found) and not others and not _has_energy(names)


def _has_energy(names: list[str]) -> bool:
    return any(re.search(r"kwh|energy|energie", name.lower()) for name in names)


def _read(head: Head) -> Raw:
    frame, rejected = read_json_table(head) if head.kind == "json" else read_table(head)
    found = _columns(frame.columns)
    (clock,), _, _ = read_times([frame[found["time"]]])
    changes = frame.select(
        pl.col(LINE),
        pl.col(found.get("location", found["evse"])).cast(pl.String).str.strip_chars().alias("station_id"),
        pl.col(found["evse"]).cast(pl.String).str.strip_chars().alias("plug_id"),
        pl.col(found["status"]).cast(pl.String).str.to_uppercase().str.replace_all(r"[^A-Z]", "").alias("status"),
        to_utc(clock, "UTC").cast(UTC).alias("at"),
        pl.col(found["time"]).cast(pl.String).alias("written"),
    )
    incomplete = changes.filter(pl.any_horizontal(pl.col("station_id", "plug_id", "status", "at").is_null()))
    reason = pl.lit("is not a status change: it needs an EVSE, a status and a time")
    unusable = incomplete.select(
        pl.col(LINE).alias("line"), column=pl.lit(found["time"]), value="written", reason=reason
    )
    stays, outages = stays_and_outages(changes.drop("written").drop_nulls())
    return Raw(
        _MAPPING, stays, outages=outages, rejected=pl.concat([rejected, unusable.cast(rejected.schema)]), notes=(_NOTE,)
    )


def stays_and_outages(changes: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Stays and outages implied by status changes (LINE, station_id, plug_id, status, at).

    A status holds until the next change of its EVSE. A stay lasts as long as the status says that the plug is taken; if
    the feed does not show its end, it has none. An outage without an end lasts until the last change in the feed.
    """
    plug = ["station_id", "plug_id"]
    kind = (
        pl.when(pl.col("status").is_in(list(OCCUPIED)))
        .then(_TAKEN)
        .when(pl.col("status").is_in(list(_OUT)))
        .then(_OUT_OF_ORDER)
        .otherwise(_FREE)
    )
    runs = (
        changes.sort(*plug, "at", LINE)
        .with_columns(kind.alias("kind"))
        .with_columns(
            (pl.col("kind") != pl.col("kind").shift()).fill_null(value=True).cum_sum().over(plug).alias("run")
        )
        .group_by(*plug, "run", "kind", maintain_order=True)
        .agg(pl.col(LINE).first(), pl.col("at").first().alias("start"))
        .with_columns(pl.col("start").shift(-1).over(plug).alias("end"))
    )
    stays = (
        runs.filter(pl.col("kind") == _TAKEN)
        .select(LINE, *plug, "start", "end", pl.lit(0.0).alias("energy_kwh"))
        .sort(LINE)
    )
    last = pl.lit(changes["at"].max(), UTC)
    outages = runs.filter(pl.col("kind") == _OUT_OF_ORDER).with_columns(pl.col("end").fill_null(last))
    return stays, merge_outages(outages.select(*OUTAGES))


def _never(_: Head) -> bool:
    """OCPI Locations are recognised as `ocpi-locations`; `ocpi-status` must be requested by name."""
    return False


def _read_locations(head: Head) -> Raw:
    raw = OCPI_LOCATIONS.read(head)
    changes = pl.DataFrame(
        list(_rows(head)),
        schema={LINE: pl.UInt32, "station_id": pl.String, "plug_id": pl.String, "status": pl.String, "at": UTC},
        orient="row",
    )
    stays, _ = stays_and_outages(changes)  # `raw` already has the outages
    return replace(raw, mapping=_MAPPING, sessions=stays, notes=(_NOTE,))


def _rows(head: Head) -> Iterator[tuple[object, ...]]:
    for number, location, evse, status, at in location_changes(head.path):
        yield number, location, evse, re.sub(r"[^A-Z]", "", status.upper()), at


STATUS_CHANGES = Format("status-changes", "status changes of EVSEs (CSV, Excel, Parquet or JSON)", _matches, _read)
OCPI_STATUS = Format("ocpi-status", "OCPI Locations, for the status of their EVSEs", _never, _read_locations)
