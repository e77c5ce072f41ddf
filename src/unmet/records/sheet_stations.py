"""Workbooks with one sheet per station: the name of the sheet is the station.

Sheets without a column of stations may also be months or parts of one export. Their station is then unknown, and the
user must give it.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace

from unmet.records.formats.base import Raw
from unmet.records.id_cells import columns_of
from unmet.records.month_names import MONTHS
from unmet.records.sources import RecordSource

__all__ = ["with_sheet_as_station"]

_GENERAL = {  # words in names of sheets that do not name a station
    "sheet", "tabelle", "feuil", "feuille", "foglio", "hoja", "blad", "ark", "table", "data", "daten",
    "donnees", "dati", "datos", "sessions", "session", "export", "report", "bericht", "all", "alle", "page",
    "part", "teil", "q", "h", "s", "quarter", "quartal", "kw", "week", "woche", "year", "jahr", "month",
    "monat", "transactions", "charging", "charges", "summary", "total", "ladevorgange", "winter", "summer",
    "spring", "autumn", "fall", "sommer", "herbst", "fruhling",
}  # fmt: skip


def with_sheet_as_station(raw: Raw, source: RecordSource) -> Raw:
    """Use the sheet's name as the station if only that column is missing, and the name may be that of a station.

    A workbook with a single sheet is left as it is: its name says nothing.
    """
    if (
        raw.sessions is None
        or source.sheet is None
        or not source.is_one_of_several
        or not _may_be_station(source.sheet)
    ):
        return raw
    mapping, present = raw.mapping, set(raw.sessions.columns)
    energies = (mapping.energy_kwh,) if mapping.meter_end is None else (mapping.meter_start, mapping.meter_end)
    needed = {*columns_of(mapping.start), *columns_of(mapping.duration or mapping.end), *energies}
    if mapping.station is not None or not needed <= present or set(columns_of(mapping.station_id)) <= present:
        return raw
    note = (
        f"the sheet has no column of stations, so its name, {source.sheet!r}, is taken as the station. If a column "
        "names stations, give --map station_id=COLUMN."
    )
    return replace(raw, mapping=mapping.model_copy(update={"station": source.sheet}), notes=(*raw.notes, note))


def _may_be_station(name: str) -> bool:
    """Whether a sheet's name has a word that is neither a month nor a general word such as `Data`."""
    folded = re.sub(r"[\u0300-\u036f]", "", unicodedata.normalize("NFKD", name.lower()))
    words = re.findall(r"[^\W\d_]+", folded)
    # A letter and a number, such as S1, is a station's name; Q1 and H2 are parts of a year.
    if re.fullmatch(r"[^\W\d_]\d+", folded):
        return folded[0] not in "qh"
    return any(word not in _GENERAL and word not in MONTHS for word in words)
