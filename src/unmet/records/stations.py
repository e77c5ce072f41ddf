"""Validation of an operator's table of stations. Only the id is required; unknown values stay empty."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from unmet.csv_files import LINE
from unmet.errors import InputError
from unmet.records.formats.files import read_head, read_table
from unmet.records.odd_times import with_printable_times
from unmet.records.positions import X_NAMES, Y_NAMES, in_degrees
from unmet.records.station_columns import guess_station_columns, known_columns, station_hints, unused_note
from unmet.tables import Checked, Column, RowRule, Table, as_frame, check_table

__all__ = ["KEPT_WITHOUT", "STATIONS", "check_stations", "no_stations"]

KEPT_WITHOUT = ": the station is kept without it"  # ends the reason if only a cell is unusable

_IDS = (
    *("station id", "stationid", "station", "cp id", "cp_id", "cpid", "chargepoint_id", "charge point id"),
    *(
        "charge_point_id",
        "charging_station_id",
        "chargingstationid",
        "charger_id",
        "charger id",
        "chargerid",
        "charging station id",
        "ladestation id",
        "ladestations-id",
        "ladesäulen-id",
        "osm_id",
        "location_id",
        "id",
        "id borne",
        "charger",  # may hold a type or a name, so an id comes first
        "charging station",
        "ladestation",
        "ladesäule",
        "ladesaeule",
        "address",
    ),
)
_LAT = ("breitengrad", "hochwert", "latitudine", "latitud")
_LON = ("längengrad", "laengengrad", "rechtswert", "longitudine", "longitud")
_PLUGS = ("plug count", "capacity", "connectors", "ports", "port_count", "outlets", "sockets", "evses", "num_plugs")

STATIONS = Table(
    "stations",
    (
        Column("station_id", "text", "", "the station, as the sessions name it", aliases=_IDS),
        Column(
            "lat",
            "number",
            "degree",
            "latitude",
            required=False,
            aliases=("latitude", "y", *_LAT),
            minimum=-90,
            maximum=90,
        ),
        Column(
            *("lon", "number", "degree", "longitude"),
            required=False,
            aliases=("longitude", "lng", "long", "x", *_LON),
            minimum=-180,
            maximum=180,
        ),
        Column(
            *("power_kw", "number", "kW", "power of a plug"),
            required=False,
            aliases=("max_kw", "power", "power (kw)", "max_power_kw", "kw", "rated_power_kw"),
            minimum=0.5,
            maximum=1500,
        ),
        Column("plugs", "integer", "", "number of plugs", required=False, aliases=_PLUGS, minimum=1, maximum=1000),
        Column("operator", "text", "", "its operator", required=False, aliases=("cpo", "network", "operator_name")),
        Column(
            "name",
            "text",
            "",
            "its name",
            required=False,
            aliases=("station name", "station_name", "chargingstationname", "location", "site"),
        ),
    ),
)
_ONLY_ID = Table("stations", STATIONS.columns[:1])
_TYPES = {"text": pl.String, "number": pl.Float64, "integer": pl.Int32, "time": pl.String}


def no_stations() -> pl.DataFrame:
    """A table of stations without rows, as `check_stations` gives it."""
    return pl.DataFrame(schema={column.name: _TYPES[column.kind] for column in STATIONS.columns})


def check_stations(
    source: Any, crs: str | None = None, mapping: Mapping[str, str] | None = None, name: str | None = None
) -> Checked:
    """Stations of a file or frame, one row per id; missing columns are empty.

    Args:
        source: path of a file, or a data frame.
        crs: grid of positions in metres, such as EPSG:2056, which are converted to degrees; inferred if one grid fits.
        mapping: columns by entry, such as {"station_id": "Site"}; an id may join several, "CP ID+Connector".
        name: of a frame, for notes.
    """
    if isinstance(source, str | Path):
        name = str(source)
        frame, malformed = read_table(read_head(Path(source)))
        lines, frame = frame[LINE], frame.drop(LINE)
    else:
        name, frame = name or "The table of stations", as_frame(source)
        lines, malformed = pl.arange(1, frame.height + 1, dtype=pl.UInt32, eager=True), None
    frame = _mapped(with_printable_times(frame), mapping or {}, name)
    known = known_columns(frame, STATIONS, (*X_NAMES, *Y_NAMES))
    if "station_id" not in known:
        raise InputError(_no_id_message(frame, known, name))
    unused = unused_note(frame, known, name) if frame.height else None
    frame, notes = in_degrees(_with_decimal_points(frame), crs, name)
    notes += [unused] if unused else []
    rules = (RowRule("station_id", pl.col("station_id").is_first_distinct(), "is the id of an earlier station"),)
    checked = check_table(frame, STATIONS, rules)
    if checked.rejected.height:
        checked = _with_partly_usable(checked, frame)
    about_cell = pl.col("column") != "station_id"
    rejected = checked.rejected.with_columns(
        lines.gather(checked.rejected["line"] - 1).alias("line"),
        reason=pl.when(about_cell).then(pl.col("reason") + KEPT_WITHOUT).otherwise("reason"),
    )
    if malformed is not None:
        rejected = pl.concat([malformed, rejected]).sort("line")
    empty = [
        pl.lit(None, _TYPES[column.kind]).alias(column.name)
        for column in STATIONS.columns
        if column.name not in checked.kept.columns
    ]
    kept = checked.kept.with_columns(empty).select(column.name for column in STATIONS.columns)
    texts = pl.col("operator", "name")
    return Checked(kept.with_columns(pl.when(texts != "").then(texts)), rejected, notes=tuple(notes))


def _with_partly_usable(checked: Checked, frame: pl.DataFrame) -> Checked:
    """A station with an unusable cell is still a station: it keeps its id, and the cell is listed."""
    rows = checked.rejected.filter(pl.col("column") != "station_id")["line"].cast(pl.Int64) - 1
    again = _without_unusable_cells(frame[rows.to_list()])
    again = again.filter(pl.col("station_id").is_first_distinct()).join(checked.kept, on="station_id", how="anti")
    return Checked(pl.concat([checked.kept, again], how="diagonal"), checked.rejected)


def _no_id_message(frame: pl.DataFrame, known: dict[str, str], name: str) -> str:
    guesses = guess_station_columns(frame, known)
    present = ", ".join(frame.columns)[:1000] or "none"
    if "station_id" not in guesses:
        hint = "--map-stations station_id=COLUMN"
    else:
        hint = f"{station_hints(guesses)} (a guess by names and values)"
    return f"{name} has no column station_id: say which with {hint}. Its columns are {present}."


def _with_decimal_points(frame: pl.DataFrame) -> pl.DataFrame:
    """Decimal commas replaced by points, and powers such as `22 kW` or `7400 W` converted to kW."""
    names = {alias for c in STATIONS.columns if c.kind == "number" for alias in (c.name, *c.aliases)}
    texts = [c for c, dtype in frame.schema.items() if dtype == pl.String and c.strip().lower() in names]
    powers = {"power_kw", *next(c.aliases for c in STATIONS.columns if c.name == "power_kw")}
    units = [column for column in texts if column.strip().lower() in powers]
    frame = frame.with_columns(pl.col(units).str.replace(r"(?i)(\d)\s*kw\s*$", "${1}"))
    frame = frame.with_columns(pl.col(texts).str.replace(r"^\s*([+-]?\d+),(\d+)\s*(w?)\s*$", "${1}.${2}${3}"))
    watts = [pl.col(column).str.extract(r"(?i)^\s*(\d+(?:\.\d+)?)\s*w\s*$").cast(pl.Float64) for column in units]
    in_kw = [(watt / 1000).cast(pl.String) for watt in watts]
    return frame.with_columns(
        pl.coalesce(kw, pl.col(column)).alias(column) for kw, column in zip(in_kw, units, strict=True)
    )


def _without_unusable_cells(frame: pl.DataFrame) -> pl.DataFrame:
    """Stations without their unusable cells, which are dropped column by column until the other cells are valid."""
    checked = check_table(frame, STATIONS)
    kept = [checked.kept]
    for (name,), unusable in checked.rejected.filter(pl.col("column") != "station_id").group_by(
        "column", maintain_order=True
    ):
        about = ("lat", "lon") if name in ("lat", "lon") else (name,)  # one is useless without the other
        names = {
            alias for column in STATIONS.columns if column.name in about for alias in (column.name, *column.aliases)
        }
        rows = frame[(unusable["line"].cast(pl.Int64) - 1).to_list()]
        unusable_columns = [column for column in rows.columns if column.strip().lower() in names]
        kept.append(_without_unusable_cells(rows.drop(unusable_columns)))
    return pl.concat(kept, how="diagonal")


def _mapped(frame: pl.DataFrame, mapping: Mapping[str, str], name: str) -> pl.DataFrame:
    """The frame with columns renamed as the user's mapping says."""
    known = [column.name for column in STATIONS.columns]
    present = ", ".join(frame.columns)[:1000]
    for entry, value in mapping.items():
        if entry not in known:
            raise InputError(f"--map-stations {entry}={value} makes no sense: stations have {', '.join(known)}.")
        parts = [value] if value in frame.columns else [part.strip() for part in value.split("+")]
        missing = [part for part in parts if part not in frame.columns]
        if missing:
            raise InputError(
                f"{name} has no column {missing[0]!r} for {entry}: say which with --map-stations {entry}=COLUMN. "
                f"Its columns are {present}."
            )
    # Columns that would also be recognised as a mapped entry are dropped.
    taken = {value for value in mapping.values() if value in frame.columns}
    aliases = {
        alias for column in STATIONS.columns if column.name in mapping for alias in (column.name, *column.aliases)
    }
    hidden = [column for column in frame.columns if column.strip().lower() in aliases and column not in taken]
    new = {entry: pl.col(value) if value in frame.columns else _joined(value) for entry, value in mapping.items()}
    mapped = frame.select(**new)
    return pl.concat([mapped, frame.drop(*hidden, *taken, strict=False)], how="horizontal") if mapping else frame


def _joined(value: str) -> pl.Expr:
    parts = [pl.col(part.strip()).cast(pl.String).str.strip_chars() for part in value.split("+")]
    return pl.concat_str(parts, separator="/")
