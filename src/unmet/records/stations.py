"""The gate of an operator's table of stations: only the id is needed, and what is not known stays empty."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from unmet.errors import InputError
from unmet.records.formats.base import LINE
from unmet.records.formats.files import read_head, read_table
from unmet.records.positions import in_degrees
from unmet.tables import Checked, Column, RowRule, Table, as_frame, check

__all__ = ["STATIONS", "check_stations"]

_IDS = (
    *("station id", "stationid", "station", "cp id", "cp_id", "cpid", "chargepoint_id", "charge point id"),
    *(
        "charge_point_id",
        "charging_station_id",
        "chargingstationid",
        "charger_id",
        "osm_id",
        "location_id",
        "id",
        "id borne",
        "address",
    ),
)
_PLUGS = ("plug count", "capacity", "connectors", "ports", "port_count", "outlets", "sockets", "evses", "num_plugs")

STATIONS = Table(
    "stations",
    (
        Column("station_id", "text", "", "the station, as the sessions name it", aliases=_IDS),
        Column("lat", "number", "degree", "where it is", required=False, aliases=("latitude", "y"), least=-90, most=90),
        Column(
            *("lon", "number", "degree", "where it is"),
            required=False,
            aliases=("longitude", "lng", "long", "x"),
            least=-180,
            most=180,
        ),
        Column(
            *("power_kw", "number", "kW", "power of a plug"),
            required=False,
            aliases=("max_kw", "power", "power (kw)", "max_power_kw", "kw", "rated_power_kw"),
            least=0.5,
            most=1500,
        ),
        Column("plugs", "integer", "", "plugs at the station", required=False, aliases=_PLUGS, least=1, most=1000),
        Column("operator", "text", "", "who runs it", required=False, aliases=("cpo", "network", "operator_name")),
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


def check_stations(source: Any, crs: str | None = None, mapping: Mapping[str, str] | None = None) -> Checked:
    """Stations of a file or frame, one row an id; columns that are not there are empty.

    Positions in metres are converted to degrees; `crs` says of which grid, where their range does not. `mapping` says
    which columns hold what, as {"station_id": "Site"}; an id may be made of several, "CP ID+Connector".
    """
    if isinstance(source, str | Path):
        name = str(source)
        frame, odd = read_table(read_head(Path(source)))
        lines, frame = frame[LINE], frame.drop(LINE)
    else:
        name, frame = "The table of stations", as_frame(source)
        lines, odd = pl.arange(1, frame.height + 1, dtype=pl.UInt32, eager=True), None
    frame = _mapped(frame, mapping or {}, name)
    spelled = {column.strip().lower() for column in frame.columns}
    if not spelled & {"station_id", *_IDS}:
        there = ", ".join(frame.columns)[:1000] or "none"
        raise InputError(
            f"{name} has no column station_id: say which it is with --map-stations station_id=COLUMN. Its columns "
            f"are {there}."
        )
    frame, notes = in_degrees(_with_points(frame), crs, name)
    rules = (RowRule("station_id", pl.col("station_id").is_first_distinct(), "is the id of an earlier station"),)
    checked = check(frame, STATIONS, rules)
    # A station of which another cell cannot be used is still a station: it keeps its id, and the cell is listed.
    rows = checked.rejected.filter(pl.col("column") != "station_id")["line"].cast(pl.Int64) - 1
    again = _without_odd_cells(frame[rows.to_list()])
    again = again.filter(pl.col("station_id").is_first_distinct()).join(checked.kept, on="station_id", how="anti")
    checked = Checked(pl.concat([checked.kept, again], how="diagonal"), checked.rejected)
    rejected = checked.rejected.with_columns(lines.gather(checked.rejected["line"] - 1).alias("line"))
    if odd is not None:
        rejected = pl.concat([odd, rejected]).sort("line")
    empty = [
        pl.lit(None, _TYPES[column.kind]).alias(column.name)
        for column in STATIONS.columns
        if column.name not in checked.kept.columns
    ]
    kept = checked.kept.with_columns(empty).select(column.name for column in STATIONS.columns)
    texts = pl.col("operator", "name")
    return Checked(kept.with_columns(pl.when(texts != "").then(texts)), rejected, notes=tuple(notes))


def _with_points(frame: pl.DataFrame) -> pl.DataFrame:
    """Decimal commas in columns of numbers as points."""
    names = {alias for c in STATIONS.columns if c.kind == "number" for alias in (c.name, *c.aliases)}
    texts = [c for c, dtype in frame.schema.items() if dtype == pl.String and c.strip().lower() in names]
    return frame.with_columns(pl.col(texts).str.replace(r"^\s*([+-]?\d+),(\d+)\s*$", "${1}.${2}"))


def _without_odd_cells(frame: pl.DataFrame) -> pl.DataFrame:
    """Stations without the cells that cannot be used: what else is known of them stays."""
    checked = check(frame, STATIONS)
    kept = [checked.kept]
    for (name,), odd in checked.rejected.filter(pl.col("column") != "station_id").group_by(
        "column", maintain_order=True
    ):
        about = ("lat", "lon") if name in ("lat", "lon") else (name,)  # one is worth nothing without the other
        names = {
            alias for column in STATIONS.columns if column.name in about for alias in (column.name, *column.aliases)
        }
        rows = frame[(odd["line"].cast(pl.Int64) - 1).to_list()]
        kept.append(_without_odd_cells(rows.drop(column for column in rows.columns if column.strip().lower() in names)))
    return pl.concat(kept, how="diagonal")


def _mapped(frame: pl.DataFrame, mapping: Mapping[str, str], name: str) -> pl.DataFrame:
    """The frame with columns under the names that the user gave them."""
    known = [column.name for column in STATIONS.columns]
    there = ", ".join(frame.columns)[:1000]
    for entry, value in mapping.items():
        if entry not in known:
            raise InputError(f"--map-stations {entry}={value} makes no sense: stations have {', '.join(known)}.")
        parts = [value] if value in frame.columns else [part.strip() for part in value.split("+")]
        missing = [part for part in parts if part not in frame.columns]
        if missing:
            raise InputError(
                f"{name} has no column {missing[0]!r} for {entry}: say which with --map-stations {entry}=COLUMN. "
                f"Its columns are {there}."
            )
    # A column that was mapped is no longer found by another name.
    taken = {value for value in mapping.values() if value in frame.columns}
    aliases = {
        alias for column in STATIONS.columns if column.name in mapping for alias in (column.name, *column.aliases)
    }
    hidden = [column for column in frame.columns if column.strip().lower() in aliases and column not in taken]
    new = {entry: pl.col(value) if value in frame.columns else _joined(value) for entry, value in mapping.items()}
    made = frame.select(**new)
    return pl.concat([made, frame.drop(*hidden, *taken, strict=False)], how="horizontal") if mapping else frame


def _joined(value: str) -> pl.Expr:
    parts = [pl.col(part.strip()).cast(pl.String).str.strip_chars() for part in value.split("+")]
    return pl.concat_str(parts, separator="/")
