"""The package's own table of sessions, as a simulation writes it."""

from __future__ import annotations

from unmet.records.formats.base import Format, Head, Raw
from unmet.records.formats.files import read_table
from unmet.records.mapping import Mapping

_COLUMNS = {"session_id", "station_id", "start", "end", "energy_kwh"}


def _matches(head: Head) -> bool:
    return head.kind != "json" and set(head.columns) >= _COLUMNS


def _read(head: Head) -> Raw:
    sessions, rejected = read_table(head)
    # A simulation writes Parquet; a CSV with these columns has another source.
    return Raw(Mapping(), sessions=sessions, rejected=rejected, are_arrivals=head.kind == "parquet")


UNMET = Format("unmet", "sessions.parquet of a run (Parquet or CSV)", _matches, _read)
