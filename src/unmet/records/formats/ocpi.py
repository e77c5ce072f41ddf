"""Parts that OCPI 2.2.1 and 2.3.0 objects share: identifiers, places, times and the envelope of a page."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from unmet.errors import InputError
from unmet.records.formats.json_text import JsonMember, read_members

__all__ = ["Coordinates", "Identifier", "Time", "ocpi_members", "operator_code", "utc_time"]

Identifier = Annotated[str, Field(min_length=1)]
_DECIMAL = re.compile(r"-?[0-9]{1,3}(\.[0-9]{1,20})?")


def utc_time(value: Any) -> dt.datetime | None:
    """An RFC 3339 time in UTC, which is also assumed if the time has no zone; None if it cannot be read."""
    try:
        time = dt.datetime.fromisoformat(value)
        time = time.replace(tzinfo=dt.UTC) if time.tzinfo is None else time.astimezone(dt.UTC)
    except (TypeError, ValueError, OverflowError):
        return None
    return time if 1900 <= time.year < 2200 else None  # other years are errors, and may not fit into tables


def _time(value: Any) -> dt.datetime:
    time = utc_time(value)
    if time is None:
        raise PydanticCustomError("time", "is not a time such as 2015-06-29T21:39:09Z")
    return time


def _degrees(limit: float) -> AfterValidator:
    def check(value: str) -> str:
        if not _DECIMAL.fullmatch(value):
            raise PydanticCustomError("degrees", "is not a number of degrees such as 51.047599")
        if abs(float(value)) > limit:
            raise PydanticCustomError("degrees", "is not between -{limit} and {limit}", {"limit": f"{limit:g}"})
        return value

    return AfterValidator(check)


Time = Annotated[dt.datetime, BeforeValidator(_time)]


class Coordinates(JsonMember):
    """A place in decimal degrees, which OCPI writes as text."""

    latitude: Annotated[str, _degrees(90)]
    longitude: Annotated[str, _degrees(180)]


def operator_code(country_code: str | None, party_id: str | None) -> str | None:
    """The operator as in an EVSE id, `BE*BEC`."""
    return "*".join(part for part in (country_code, party_id) if part) or None


def ocpi_members(path: Path, envelopes: list[dict[str, Any]]) -> Iterator[tuple[int, Any]]:
    """The objects of an OCPI file with their numbers; raises `InputError` if it contains a server error."""
    yield from read_members(path, "data", envelopes)
    for envelope in envelopes:
        code = envelope.get("status_code")
        if isinstance(code, int) and code >= 2000:  # OCPI: 1xxx is success, 2xxx to 4xxx are errors
            status = f"{code} {envelope.get('status_message') or ''}".strip()[:200]
            raise InputError(f"{path} contains a server error ({status}) instead of all its data: fetch it again.")
