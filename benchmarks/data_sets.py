"""The public data sets that benchmarks read. Their files are not part of the project: they are in ../shared/data."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unmet.records.sessions import Records, read_sessions

__all__ = ["BOULDER", "DATA", "DUNDEE", "JPL", "LUGANO", "SAP", "Source", "chosen_sources", "read_records"]

DATA = Path(__file__).parents[2] / "shared" / "data"


@dataclass(frozen=True, slots=True)
class Source:
    """Records of one town or car park."""

    name: str
    files: str  # pattern of the session files
    stations: str | None = None  # table of stations
    part: str = ""  # which of its records, if they are used in parts
    until: dt.datetime | None = None  # later sessions are left out


DUNDEE = Source("Dundee", "dundee_*", "dundee_locations.csv")
BOULDER = Source("Boulder", "boulder_*", "boulder_locations.csv")
JPL = Source("JPL", "acn_jpl_*")
LUGANO = Source("Lugano", "lugano_*", "lugano_colonnine.csv")
SAP = Source("SAP", "sap_france_*")


def read_records(source: Source) -> Records:
    """All records of a source; exits with a sentence if its files are missing."""
    files = sorted((DATA / "sessions").glob(source.files))
    if not files:
        sys.exit(f"There are no records of {source.name} in {DATA}.")
    return read_sessions(files, stations=None if source.stations is None else DATA / "stations" / source.stations)


def chosen_sources(sources: Sequence[Source], name: str | None) -> list[Source]:
    """The sources with a name, in any case, or all without one; exits with a sentence if there are none."""
    chosen = [source for source in sources if name in (None, source.name, source.name.lower())]
    if not chosen:
        sys.exit(f"There is no {name}: choose among {', '.join(dict.fromkeys(source.name for source in sources))}.")
    return chosen
