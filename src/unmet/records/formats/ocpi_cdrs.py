"""Conversion of OCPI charge detail records (CDRs) into sessions, and the stations that they name.

A session has a column for each field of its CDR; those of nested fields have names such as `cdr_location.id`. Two more
are derived here: `operator`, such as `BE*BEC`, and `charged`, the time at which the energy flow ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
from pydantic import ValidationError

from unmet.csv_files import LINE
from unmet.records.formats.base import Format, Head, Raw
from unmet.records.formats.json_text import (
    JsonMember,
    Reject,
    Scalar,
    flat_cells,
    json_problem,
    rejected_frame,
    text_frame,
)
from unmet.records.formats.ocpi import Coordinates, Identifier, ocpi_members, operator_code, utc_time
from unmet.records.mapping import Mapping

__all__ = ["OCPI_CDRS"]

_MAPPING = Mapping(
    start="start_date_time",
    end="end_date_time",
    energy_kwh="total_energy",
    session_id="id",
    station_id="cdr_location.id",
    plug_id="cdr_location.evse_uid",
    vehicle_id="cdr_token.uid",
    operator="operator",
    charged="charged",
)
_LATITUDE, _LONGITUDE = "cdr_location.coordinates.latitude", "cdr_location.coordinates.longitude"
_COLUMNS = (
    *("id", "country_code", "party_id", "start_date_time", "end_date_time", "total_energy", "cdr_token.uid"),
    *("cdr_location.id", "cdr_location.name", "cdr_location.evse_uid", _LATITUDE, _LONGITUDE),
    *("credit", "credit_reference_id", "operator", "charged"),
)
_NO_SESSION = "#NA"  # the EVSE of a reservation that was not used


class _Place(JsonMember):
    id: Identifier
    name: str | None = None
    coordinates: Coordinates | None = None  # not needed for a session; Locations may give them
    evse_uid: str | None = None


class _Token(JsonMember):
    uid: str | None = None


class _Cdr(JsonMember):
    id: Identifier
    country_code: str | None = None
    party_id: str | None = None
    start_date_time: Scalar = None
    end_date_time: Scalar = None
    total_energy: Scalar = None
    cdr_location: _Place
    cdr_token: _Token | None = None
    credit: bool | None = None
    credit_reference_id: str | None = None


def _matches(head: Head) -> bool:
    # A page without members could be of any OCPI module; it is read as CDRs, which gives no sessions.
    empty_page = re.search(r'^\s*(\[\s*\]|\{[^\[]*"data"\s*:\s*\[\s*\])', head.text)
    is_2_1_1 = all(f'"{name}"' in head.text for name in ("stop_date_time", "auth_id", "location"))
    return head.kind == "json" and ('"cdr_location"' in head.text or is_2_1_1 or bool(empty_page))


def _read(head: Head) -> Raw:
    rejects: list[Reject] = []
    read = text_frame(_rows(head.path, rejects), _COLUMNS)
    sessions, credited = _without_credited(read)
    return Raw(
        _MAPPING,
        sessions,
        stations=_stations(sessions),
        rejected=pl.concat([rejected_frame(rejects), credited]).sort("line"),
    )


def _rows(path: Path, rejects: list[Reject]) -> Iterator[tuple[int, dict[str, str | None]]]:
    for number, given in ocpi_members(path, []):
        member = _as_2_2(given)
        try:
            cdr = _Cdr.model_validate(member)
        except ValidationError as error:
            rejects.append(json_problem(number, error))
            continue
        if cdr.cdr_location.evse_uid == _NO_SESSION:
            reason = "is a reservation that never became a charging session"
            rejects.append((number, "cdr_location.evse_uid", _NO_SESSION, reason))
            continue
        added = {"operator": operator_code(cdr.country_code, cdr.party_id), "charged": _charged(member)}
        yield number, flat_cells(member) | added


def _as_2_2(cdr: Any) -> Any:
    """A CDR of OCPI 2.1.1 with the names of 2.2.1; its location lists the one EVSE of the session."""
    place = cdr.get("location") if isinstance(cdr, dict) else None
    if not isinstance(place, dict) or "cdr_location" in cdr:
        return cdr  # validation reports what is missing
    evses = place.get("evses")
    evse = evses[0] if isinstance(evses, list) and len(evses) == 1 and isinstance(evses[0], dict) else {}
    uid = next((evse[name] for name in ("uid", "evse_id") if isinstance(evse.get(name), str)), None)
    new = {"cdr_location": place | {"evse_uid": uid}, "cdr_token": {"uid": cdr.get("auth_id")}}
    others = {name: value for name, value in cdr.items() if name not in {"location", "stop_date_time", "auth_id"}}
    return others | new | {"end_date_time": cdr.get("stop_date_time", cdr.get("end_date_time"))}


def _charged(cdr: dict[str, Any]) -> str | None:
    """When the idle periods at the end of a session start, as written in the CDR; None if it does not say.

    If one period has no valid start, none of them is used.
    """
    periods = cdr.get("charging_periods")
    if not isinstance(periods, list):
        return None
    starts = [utc_time(period.get("start_date_time")) if isinstance(period, dict) else None for period in periods]
    in_order = sorted((start, n) for n, start in enumerate(starts) if start is not None)
    if len(in_order) < len(periods):
        return None
    charged = None
    for _, n in reversed(in_order):
        if not _is_idle(periods[n]):
            return charged
        charged = str(periods[n]["start_date_time"])
    return None  # idle from the start: the flow did not end, it never began


def _is_idle(period: dict[str, Any]) -> bool:
    """Whether a period says that no energy flowed: its energy is 0, or it gives no energy and only time parked."""
    dimensions = period.get("dimensions")
    volumes: dict[Any, float] = {}
    for dimension in dimensions if isinstance(dimensions, list) else ():
        kind, volume = (dimension.get("type"), dimension.get("volume")) if isinstance(dimension, dict) else (None, None)
        if isinstance(kind, str) and isinstance(volume, int | float):
            volumes[kind] = volume
    if "ENERGY" in volumes:
        return volumes["ENERGY"] == 0
    return volumes.get("PARKING_TIME", 0) > 0 and volumes.get("TIME", 0) == 0


def _without_credited(cdrs: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Valid CDRs, and the others: credit CDRs and those that they cancel.

    Ids are unique only within an operator, and in OCPI their case does not matter.
    """
    owner = [pl.col(name).fill_null("") for name in ("country_code", "party_id")]
    key = pl.concat_str([*owner, pl.col("id")], separator="\n").str.to_lowercase()
    reference = pl.concat_str([*owner, pl.col("credit_reference_id")], separator="\n").str.to_lowercase()
    is_credit = (pl.col("credit") == "true").fill_null(value=False)
    cancelled = cdrs.filter(is_credit).select(reference.alias("key"), pl.col("id").alias("by")).drop_nulls()
    cdrs = cdrs.with_columns(key.alias("key")).join(
        cancelled.unique("key", keep="first"), on="key", how="left", maintain_order="left"
    )
    why = (
        pl.when(is_credit)
        .then(pl.format("is a credit CDR that cancels {}", pl.col("credit_reference_id").fill_null("an unnamed CDR")))
        .when(pl.col("by").is_not_null())
        .then(pl.format("was cancelled by the credit CDR {}", "by"))
    )
    cdrs = cdrs.with_columns(why.alias("why"))
    aside = cdrs.filter(pl.col("why").is_not_null()).select(
        line=pl.col(LINE), column=pl.lit("id"), value=pl.col("id"), reason=pl.col("why")
    )
    return cdrs.filter(pl.col("why").is_null()).drop("key", "by", "why"), aside


def _stations(sessions: pl.DataFrame) -> pl.DataFrame:
    """The stations of the sessions, each as its last session describes it."""

    def last(column: str) -> pl.Expr:
        return pl.col(column).drop_nulls().last()

    return sessions.group_by(pl.col("cdr_location.id").alias("station_id"), maintain_order=True).agg(
        last(_LATITUDE).cast(pl.Float64).alias("lat"),
        last(_LONGITUDE).cast(pl.Float64).alias("lon"),
        last("operator").alias("operator"),
        last("cdr_location.name").alias("name"),
    )


OCPI_CDRS = Format("ocpi-cdrs", "OCPI 2.1.1, 2.2.1 or 2.3.0 CDRs", _matches, _read)
