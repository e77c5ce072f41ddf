"""Belib, the City of Paris's open charging sessions: JavaScript dates, energy in Wh, posts with several sockets.

The number of a socket (`Prise de courant`) starts with the number of its post at the station: 31 to 36 are the sockets
of the third post. A post has up to six sockets and charges one or two cars at a time. `Borne` repeats the station.
Times are also given in parts, which are not used.
"""

from __future__ import annotations

import polars as pl

from unmet.records.formats.base import Format, Head, Raw
from unmet.records.formats.files import read_table
from unmet.records.mapping import Mapping

_COLUMNS = {"Station", "Borne", "Prise de courant", "Date de début", "Date de fin", "L'énergie (Wh)", "UUID Badge"}
_POST = "Prise de courant: post"
_MAPPING = Mapping(
    session_id=None,
    station_id="Station",
    post_id=("Borne", _POST),
    plug_id=("Borne", "Prise de courant"),
    start="Date de début",
    end="Date de fin",
    energy_kwh="L'énergie (Wh)",
    energy_factor=0.001,
    user_id="UUID Badge",
    time_zone="Europe/Paris",
)


def _matches(head: Head) -> bool:
    return head.kind != "json" and set(head.columns) >= _COLUMNS


def _read(head: Head) -> Raw:
    sessions, rejected = read_table(head)
    post = pl.col("Prise de courant").cast(pl.String).str.extract(r"^\s*(\d)\d\s*$")
    return Raw(_MAPPING, sessions=sessions.with_columns(post.alias(_POST)), rejected=rejected)


BELIB = Format("belib", "City of Paris open data, Belib (CSV)", _matches, _read)
