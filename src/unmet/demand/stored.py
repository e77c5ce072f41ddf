"""Panels on disk: the folder that `unmet panel` or `unmet simulate` wrote, or a file of one's own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from unmet.demand.regions import Regions
from unmet.errors import InputError
from unmet.runs import write_json
from unmet.tables import read_frame

__all__ = ["StoredPanel", "read_panel", "write_regions"]

ABOUT = "panel.json"
STATIONS = pl.Schema({"station_id": pl.String(), "unique_id": pl.String()})
STATION_HOURS = pl.Schema(
    {
        "station_id": pl.String(),
        "ds": pl.Datetime("ms", "UTC"),
        "arrivals": pl.Int64(),
        "energy_kwh": pl.Float64(),
        "lost_arrivals": pl.Float64(),
        "lost_kwh": pl.Float64(),
    }
)


@dataclass(frozen=True, slots=True)
class StoredPanel:
    """A panel as it was stored, with the positions of its regions and its time zone where they are known."""

    source: Path  # its file, rows that have no shape included
    table: pl.DataFrame
    regions: pl.DataFrame | None  # unique_id, lat, lon
    time_zone: str | None
    station_hours: pl.DataFrame | None = None  # station_id, ds, arrivals, energy_kwh, lost_arrivals, lost_kwh
    stations: pl.DataFrame | None = None  # station_id, unique_id


def write_regions(regions: Regions, time_zone: str, folder: Path) -> None:
    """Write what a panel's table does not hold beside it: where its regions are, and its time zone."""
    regions.centres.write_parquet(folder / "regions.parquet")
    write_json(folder / ABOUT, {"time_zone": time_zone})


def read_panel(path: Path, *, with_stations: bool = False) -> StoredPanel:
    """Read a panel from a folder or from a CSV or Parquet file (`unique_id, ds, y`, perhaps `censored`).

    With `with_stations`, what is known of its stations is read too, where the folder says what each of them lost.
    """
    if not path.exists():
        raise InputError(f"There is no panel at {path}: give a folder that `unmet panel` wrote, or a file.")
    if path.is_file():
        return StoredPanel(path, read_frame(path)[0], None, None)
    source = path / "panel.parquet"
    if not source.is_file():
        raise InputError(f"{path} holds no panel.parquet: give a folder that `unmet panel` or `unmet simulate` wrote.")
    table, _ = read_frame(source)
    try:
        regions = pl.read_parquet(path / "regions.parquet") if (path / "regions.parquet").is_file() else None
        about = json.loads((path / ABOUT).read_text(encoding="utf-8")) if (path / ABOUT).is_file() else {}
        zone = about.get("time_zone")
        station_hours, stations = _stations(path) if with_stations else (None, None)
    except (OSError, ValueError, AttributeError, pl.exceptions.PolarsError) as error:
        raise InputError(
            f"The panel at {path} is damaged ({str(error).splitlines()[0][:200]}): make it anew."
        ) from None
    if regions is not None and ("lat" not in regions.columns or regions["lat"].null_count()):
        regions = None  # stations without positions: no region is near another
    return StoredPanel(source, table, regions, zone, station_hours, stations)


def _stations(path: Path) -> tuple[pl.DataFrame | None, pl.DataFrame | None]:
    """The tables of station-hours and of stations, or none of both where one is missing or does not tell of losses."""
    found = []
    for name, schema in (("station_hours", STATION_HOURS), ("stations", STATIONS)):
        file = path / f"{name}.parquet"
        if not file.is_file() or not set(schema) <= set(pl.read_parquet_schema(file)):
            return None, None
        found.append(pl.read_parquet(file, columns=list(schema)).cast(schema))
    return found[0], found[1]
