"""Find the columns of a station table: by known names, and by guesses for the others."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from unmet.csv_files import LINE
from unmet.records.columns import MAX_GUESSES, candidates, quoted
from unmet.records.formats.column_names import plain_name
from unmet.tables import Table

__all__ = ["guess_station_columns", "known_columns", "looks_like_stations", "station_hints", "unused_note"]

_WORDS = {  # parts of plain names in English, German, French, Italian, Spanish and Dutch, the likeliest first
    "station_id": "stationid,saulenid,station,saule,chargepoint,charger,chargebox,borne,colonnina,estacion,laadpaal,"
    "pole,post,standort,site,evse,kennung,code,id",
    "lat": "lat,breite,coordy,ycoord,north",
    "lon": "lon,lng,lange,laenge,coordx,xcoord,east",
    "plugs": "plug,socket,connector,ports,outlet,chargepoints,ladepunkt,anzahllp,stecker,anschluss,anzahl,prises,pdc,"
    "prese,punti,conector,tomas,puntos,laadpunt,count",
    "power_kw": "kw,power,leistung,puissance,potenza,potencia,vermogen",
    "operator": "operator,betreiber,operateur,operatore,operador,cpo",
    "name": "name,bezeichnung,designation,nom,nome,nombre,label,adresse,address,indirizzo,direccion,strasse",
}
# Plausible values in degrees, plugs and kW.
_RANGES = {"lat": (-90.0, 90.0), "lon": (-180.0, 180.0), "plugs": (1.0, 1000.0), "power_kw": (0.5, 1500.0)}
_SHORT = 3  # a word of up to this many letters must begin or end a name
_SHOWN = 20  # columns in a note
_MIN_SHARE = 0.8  # share of the cells that must have the form of an entry


def known_columns(frame: pl.DataFrame, table: Table, more: Collection[str] = ()) -> dict[str, str]:
    """Columns of the table that the frame has under a known name, such as {"lat": "Latitude"}.

    Columns of the names in `more` are added under those names.
    """
    spelled = {column.strip().lower(): column for column in frame.columns}
    found = {}
    for column in table.columns:
        name = next((spelled[a.lower()] for a in (column.name, *column.aliases) if a.lower() in spelled), None)
        if name is not None:
            found[column.name] = name
    return found | {name: spelled[name] for name in more if name in spelled}


def guess_station_columns(frame: pl.DataFrame, known: dict[str, str]) -> dict[str, str]:
    """Guesses for the other columns, by names and values: {"lat": "Breite", "plugs": "Anzahl LP"}."""
    free = [
        column
        for column in frame.columns[:MAX_GUESSES]
        if column != LINE and column.strip() and column not in known.values()
    ]
    guesses: dict[str, str] = {}
    for entry, words in _WORDS.items():
        if entry in known:
            continue
        found = [
            (place, column)
            for column in free
            if column not in guesses.values()
            for place, word in enumerate(words.split(","))
            if _contains(plain_name(column), word) and _could_be(entry, frame[column])
        ]
        if found:
            guesses[entry] = min(found)[1]
    if ("lat" in guesses) != ("lon" in guesses):  # one is useless without the other
        guesses = {entry: column for entry, column in guesses.items() if entry not in {"lat", "lon"}}
    return guesses


def _contains(name: str, word: str) -> bool:
    return name.startswith(word) or name.endswith(word) if len(word) <= _SHORT else word in name


def _could_be(entry: str, cells: pl.Series) -> bool:
    """Whether cells could be values of an entry: ids that do not repeat, numbers in range, or any text."""
    cells = cells.drop_nulls()
    if cells.is_empty():
        return False
    if entry not in _RANGES:
        is_id = entry != "station_id" or (cells.n_unique() == len(cells) and not cells.dtype.is_float())
        return is_id and not cells.dtype.is_nested()
    texts = cells.cast(pl.String, strict=False).str.strip_chars().str.replace(",", ".", literal=True)
    watts = texts.str.contains(r"(?i)\d\s*w$")
    numbers = texts.str.replace(r"(?i)\s*k?w$", "").cast(pl.Float64, strict=False)
    numbers = (numbers / 1000).zip_with(watts, numbers)
    within = numbers.is_between(*_RANGES[entry]).fill_null(value=False)
    if entry == "plugs":
        within = within & (numbers == numbers.round()).fill_null(value=False)
    return int(within.sum()) > _MIN_SHARE * len(cells)


def station_hints(guesses: dict[str, str]) -> str:
    """The guesses as options of the command line."""
    return " ".join(f"--map-stations {quoted(f'{entry}={column}')}" for entry, column in guesses.items())


def unused_note(frame: pl.DataFrame, known: dict[str, str], name: str) -> str | None:
    """A sentence about unused columns, with guesses at what they hold."""
    guesses = {entry: c for entry, c in guess_station_columns(frame, known).items() if entry != "station_id"}
    wanted = {"lat", "lon", "plugs", "power_kw"}
    if not wanted & set(guesses) and wanted & set(known):
        return None
    unused = [c for c in frame.columns if c != LINE and c.strip() and c not in known.values()]
    if not unused:
        return None
    more = f" and {len(unused) - _SHOWN} others" if len(unused) > _SHOWN else ""
    hint = f" Judging by their names and values, give {station_hints(guesses)}." if guesses else ""
    unknown = f"columns that are not used: {', '.join(unused[:_SHOWN])}{more}."
    return f"{name}: {unknown}{hint or ' Say what they hold with options such as --map-stations plugs=COLUMN.'}"


def looks_like_stations(frame: pl.DataFrame, table: Table) -> bool:
    """Whether a table has one row per station: an id that hardly repeats or no times, and a position or the like."""
    known = known_columns(frame, table, ("x", "y"))
    about = known | guess_station_columns(frame, known)
    if "station_id" not in about or not {"lat", "lon", "plugs", "power_kw", "x"} & set(about):
        return False
    if not known.get("station_id") and not {"lat", "lon"} <= set(about):
        return False  # if the id is only a guess, positions are needed as evidence
    ids = frame[about["station_id"]].drop_nulls()
    return not candidates("start", frame) or (len(ids) > 1 and ids.n_unique() > 0.9 * len(ids))
