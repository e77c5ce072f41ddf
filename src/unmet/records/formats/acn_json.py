"""ACN-Data's own JSON: an array of sessions, or the answer of its API with the sessions under `_items`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from unmet.records.formats.base import Format, Head, Raw
from unmet.records.formats.json_text import (
    JsonMember,
    Reject,
    Scalar,
    flat_cells,
    json_problem,
    read_members,
    rejected_frame,
    text_frame,
)
from unmet.records.mapping import Mapping

__all__ = ["ACN_JSON"]

_MAPPING = Mapping(
    start="connectionTime",
    end="disconnectTime",
    energy_kwh="kWhDelivered",
    session_id="sessionID",
    station_id="siteID",
    plug_id="stationID",  # ACN calls a plug a station
    vehicle_id="userID",
    operator=None,
    charged="doneChargingTime",
    local_zone="America/Los_Angeles",  # all ACN-Data sites are there
)


class _Session(JsonMember):
    connectionTime: Scalar = None  # noqa: N815
    disconnectTime: Scalar = None  # noqa: N815
    doneChargingTime: Scalar = None  # noqa: N815
    kWhDelivered: Scalar = None  # noqa: N815
    sessionID: Scalar = None  # noqa: N815
    siteID: Scalar = None  # noqa: N815
    stationID: Scalar = None  # noqa: N815
    userID: Scalar = None  # noqa: N815


def _matches(head: Head) -> bool:
    return head.kind == "json" and '"connectionTime"' in head.text and '"disconnectTime"' in head.text


def _read(head: Head) -> Raw:
    rejects: list[Reject] = []
    sessions = text_frame(_rows(head.path, rejects), tuple(_Session.model_fields))
    return Raw(_MAPPING, sessions, rejected=rejected_frame(rejects))


def _rows(path: Path, rejects: list[Reject]) -> Iterator[tuple[int, dict[str, str | None]]]:
    for number, member in read_members(path, "_items"):
        try:
            _Session.model_validate(member)
        except ValidationError as error:
            rejects.append(json_problem(number, error))
        else:
            yield number, flat_cells(member)


ACN_JSON = Format("acn-json", "ACN-Data JSON", _matches, _read)
