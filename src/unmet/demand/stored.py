"""Panels on disk: a folder that `Panel.save` or `unmet panel` wrote, or a table from another source.

A full panel is a folder of Parquet tables and `panel.json`. `unmet panel` writes the estimate of lost demand into the
same folder, as more columns of `panel.parquet`, `stations.parquet` and `sites.parquet`; `load_panel` leaves these out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from unmet.csv_files import read_frame
from unmet.demand.market import Market
from unmet.demand.panel import Panel, PanelTables
from unmet.demand.regions import Regions
from unmet.errors import InputError
from unmet.files import read_json
from unmet.parquet_files import read_parquet
from unmet.records.formats.base import OUTAGES
from unmet.runs import run_folder, write_json
from unmet.tables import UTC
from unmet.zones import checked_zone

__all__ = [
    "PANEL_FOLDER",
    "StoredPanel",
    "holds_panel",
    "load_panel",
    "read_panel",
    "save_panel",
    "with_measures",
    "write_panel",
    "write_table",
]

ABOUT = "panel.json"
PANEL_FILE = "panel.parquet"
PANEL_FOLDER = "panel"
"""Folder of the panel in a run of `unmet recover`."""
TEXT, NUMBER = pl.String(), pl.Float64()
SCHEMAS: dict[str, dict[str, Any]] = {
    "panel": {
        "unique_id": TEXT, "ds": UTC, "y": NUMBER, "arrivals": pl.Int64(), "hour": pl.Int8(), "weekday": pl.Int8(),
        "holiday": pl.Boolean(),
    },
    "sessions": {"station_id": TEXT, "start": UTC, "end": UTC, "energy_kwh": NUMBER},
    "stations": {
        "station_id": TEXT, "lat": NUMBER, "lon": NUMBER, "power_kw": NUMBER, "capacity": pl.Int64(),
        "capacity_from": TEXT, "capacity_sure": NUMBER, "site_id": TEXT, "unique_id": TEXT, "sessions": pl.UInt32(),
        "energy_kwh": NUMBER,
    },
    "sites": {
        "site_id": TEXT, "name": TEXT, "lat": NUMBER, "lon": NUMBER, "capacity": pl.Int64(), "capacity_sure": NUMBER,
        "stations": pl.Int64(),
    },
    "regions": {"unique_id": TEXT, "lat": NUMBER, "lon": NUMBER},
    "everyone": {"station_id": TEXT, "lat": NUMBER, "lon": NUMBER, "unique_id": TEXT},
    "outages": OUTAGES,
}  # fmt: skip
"""Required columns of the tables of a full panel; others are kept."""
MEASURES = frozenset(
    {"full_share", "observed_kwh", "arrivals"}
    | {
        f"{kind}_{unit}{end}"
        for kind in ("lost", "true")
        for unit in ("kwh", "arrivals")
        for end in ("", "_low", "_high")
    }
)
"""Columns of `stations.parquet` and `sites.parquet` that an estimate adds."""
LINKS = (
    ("sessions", "station_id", "stations"),
    ("stations", "unique_id", "regions"),
    ("stations", "site_id", "sites"),
    ("everyone", "unique_id", "regions"),
    ("outages", "station_id", "stations"),
    ("panel", "unique_id", "regions"),
)
"""Links between tables: table, column, and the table whose rows the column names."""


@dataclass(frozen=True, slots=True)
class StoredPanel:
    """The table of a panel, with the positions of its regions and its time zone if they are known."""

    source: Path
    """The file it was read from."""
    table: pl.DataFrame
    regions: pl.DataFrame | None
    """`unique_id, lat, lon`."""
    time_zone: str | None
    country: str | None = None
    """Country of its holidays, such as DK."""


def write_table(
    table: pl.DataFrame, folder: Path, regions: Regions | None = None, time_zone: str | None = None
) -> None:
    """Write the table of a panel without its sessions, and if known the positions of its regions and its time zone."""
    table.write_parquet(folder / PANEL_FILE)
    if regions is None or time_zone is None:
        return
    regions.centres.write_parquet(folder / "regions.parquet")
    write_json(folder / ABOUT, {"time_zone": time_zone})


def read_panel(path: Path) -> StoredPanel:
    """Read the table of a panel from a folder of `unmet panel` or `unmet recover`, or a file (`unique_id, ds, y`)."""
    if not path.exists():
        raise InputError(f"There is no panel at {path}: give a folder that `unmet panel` wrote, or a file.")
    if path.is_file():
        return StoredPanel(path, read_frame(path)[0], None, None)
    if not (path / PANEL_FILE).is_file() and (path / PANEL_FOLDER / PANEL_FILE).is_file():
        path = path / PANEL_FOLDER
    source = path / PANEL_FILE
    if not source.is_file():
        raise InputError(
            f"{path} holds no {PANEL_FILE}: give a folder that `unmet panel`, `unmet recover` or `unmet simulate` "
            "wrote."
        )
    table, _ = read_frame(source)
    try:
        regions = read_parquet(path / "regions.parquet") if (path / "regions.parquet").is_file() else None
        about = read_json(path / ABOUT) if (path / ABOUT).is_file() else {}
        zone, country = about.get("time_zone"), about.get("country")
        if not isinstance(zone, str | None) or not isinstance(country, str | None):
            _damaged(path, f"time_zone or country of {ABOUT} is not a name")
    except InputError:
        raise
    except (OSError, ValueError, AttributeError, pl.exceptions.PolarsError) as error:
        _damaged(path, str(error))
    if regions is not None:
        if "lat" not in regions.columns or regions["lat"].null_count():
            regions = None  # stations without positions: no region is near another
        else:
            _check_positions(path, regions)
    if zone is not None:
        checked_zone(zone)
    return StoredPanel(source, table, regions, zone, country)


def holds_panel(path: Path) -> bool:
    """Whether a folder holds a full panel, sessions included."""
    return all((path / name).is_file() for name in (ABOUT, *(f"{table}.parquet" for table in SCHEMAS)))


def save_panel(panel: Panel, folder: Path | str, *, overwrite: bool = False) -> None:
    """Write a panel into a folder, completely or not at all.

    Args:
        panel: the panel.
        folder: folder to write to; it must be new or empty.
        overwrite: replace a folder that `unmet` wrote.
    """
    with run_folder(Path(folder), overwrite=overwrite) as draft:
        write_panel(panel, draft)


def with_measures(stations: pl.DataFrame, estimated: pl.DataFrame) -> pl.DataFrame:
    """The stations of a panel with the columns that an estimate adds, taken from its table of stations."""
    measured = estimated.select("station_id", *(name for name in estimated.columns if name in MEASURES))
    return stations.select(pl.exclude(MEASURES)).join(
        measured, on="station_id", how="left", maintain_order="left", validate="1:1"
    )


def write_panel(
    panel: Panel,
    folder: Path,
    *,
    table: pl.DataFrame | None = None,
    stations: pl.DataFrame | None = None,
    sites: pl.DataFrame | None = None,
) -> None:
    """Write the tables of a panel and `panel.json` into an existing folder.

    `table`, `stations` and `sites` replace the panel's own: they have additional columns from an estimate.
    """
    tables = {
        "panel": panel.table if table is None else table,
        "sessions": panel.sessions,
        "stations": panel.stations if stations is None else stations,
        "sites": panel.sites if sites is None else sites,
        "regions": panel.regions.centres,
        "everyone": panel.everyone.join(
            panel.regions.of_station, on="station_id", how="left", maintain_order="left", validate="1:1"
        ),
        "outages": panel.outages,
    }
    for name, table in tables.items():
        table.write_parquet(folder / f"{name}.parquet")
    share = panel.market.share
    write_json(
        folder / ABOUT,
        {
            "time_zone": panel.time_zone,
            "country": panel.country,
            "market": {"operator": panel.market.operator, "share": list(share) if isinstance(share, tuple) else share},
            "notes": list(panel.notes),
        },
    )


def load_panel(folder: Path | str) -> Panel:
    """Read a panel from a folder that `Panel.save` or `unmet panel` wrote.

    Raises:
        InputError: the folder holds no full panel, or its files are damaged or do not belong together.
    """
    path = Path(folder)
    if not path.is_dir():
        raise InputError(f"There is no panel at {path}: give a folder that `unmet panel` or `Panel.save` wrote.")
    missing = [name for name in (ABOUT, *(f"{table}.parquet" for table in SCHEMAS)) if not (path / name).is_file()]
    if missing:
        raise InputError(
            f"{path} holds no full panel ({', '.join(missing[:3])} {'is' if len(missing) == 1 else 'are'} missing): "
            "give a folder that `unmet panel` or `Panel.save` wrote, or the session records themselves."
        )
    tables = {name: _read_table(path, name, schema) for name, schema in SCHEMAS.items()}
    _check_links(path, tables)
    try:
        about = read_json(path / ABOUT)
        zone, country, notes = about["time_zone"], about["country"], tuple(map(str, about["notes"]))
        operator, share = about["market"]["operator"], about["market"]["share"]
        if not isinstance(zone, str) or not isinstance(country, str | None):
            raise ValueError
        market = Market(operator, tuple(share) if isinstance(share, list) else share)
    except InputError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        _damaged(path, f"{ABOUT} has missing or invalid values")
    everyone = tables["everyone"]
    stored = PanelTables(
        table=tables["panel"].select(list(SCHEMAS["panel"])),
        sessions=tables["sessions"],
        stations=tables["stations"].drop(MEASURES, strict=False),
        sites=tables["sites"].drop(MEASURES, strict=False),
        regions=Regions(everyone.select("station_id", "unique_id"), tables["regions"]),
        everyone=everyone.drop("unique_id"),
        outages=tables["outages"],
        market=market,
        time_zone=checked_zone(zone),
        country=country,
        notes=notes,
    )
    return Panel.of_tables(stored)


def _read_table(path: Path, name: str, schema: dict[str, Any]) -> pl.DataFrame:
    """Read one table, and check its columns, types and empty cells."""
    file = f"{name}.parquet"
    try:
        table = read_parquet(path / file)
    except (OSError, pl.exceptions.PolarsError) as error:
        _damaged(path, f"{file} cannot be read: {error}")
    for column, dtype in schema.items():
        if column not in table.columns:
            _damaged(path, f"{file} has no column {column}")
        if table.schema[column] != dtype:
            _damaged(path, f"column {column} of {file} holds {table.schema[column]}, not {dtype}")
        if column not in ("lat", "lon", "power_kw", "plug_id", "name") and table[column].null_count():
            _damaged(path, f"column {column} of {file} has empty cells")
    return table


def _check_links(path: Path, tables: dict[str, pl.DataFrame]) -> None:
    """Check that tables belong together: links are valid, and every region has every hour once."""
    for name, key, other in LINKS:
        unknown = tables[name].join(tables[other], on=key, how="anti")
        if not unknown.is_empty():
            _damaged(path, f"{name}.parquet has {unknown[key][0]!r}, which is not in {other}.parquet")
    hours = tables["panel"].select("unique_id", "ds")
    first, last = hours.select(first=pl.col("ds").min(), last=pl.col("ds").max()).row(0)
    if first is None or tables["sessions"].is_empty():
        _damaged(path, "it is empty")
    expected = tables["regions"].height * (int((last - first).total_seconds()) // 3600 + 1)
    if hours.height != expected or hours.is_duplicated().any():
        _damaged(path, "panel.parquet does not have every hour of every region once")


def _check_positions(path: Path, regions: pl.DataFrame) -> None:
    """Check the positions of regions."""
    for column, dtype in SCHEMAS["regions"].items():
        if regions.schema.get(column) != dtype or regions[column].null_count():
            _damaged(path, f"column {column} of regions.parquet is missing, has empty cells, or holds no {dtype}")
    if regions["unique_id"].is_duplicated().any():
        _damaged(path, "regions.parquet has a region twice")
    on_earth = regions["lat"].is_between(-90, 90) & regions["lon"].is_between(-180, 180)
    if not on_earth.all():
        _damaged(path, "regions.parquet has latitudes or longitudes out of range")


def _damaged(path: Path, problem: str) -> NoReturn:
    raise InputError(f"The panel at {path} is damaged ({problem.splitlines()[0][:200].rstrip('.')}): build it again.")
