"""Write trips to a file: those stitched from GPS points, those of a MATSim scenario, or those of the built-in city."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from unmet.city.build import built_in_trips
from unmet.city.gps import StitchRules, stitch_trips
from unmet.city.matsim import MatsimDay, read_chargers, read_matsim_trips
from unmet.city.matsim.network import read_road_network
from unmet.errors import InputError
from unmet.runs import atomic_file

__all__ = ["MatsimSource", "write_matsim", "write_trips"]


def write_trips(
    out: Path,
    gps: Path | None,
    *,
    mapped: Mapping[str, str] | None = None,
    stop_minutes: float,
    privacy_noise_m: tuple[float, float] | None,
    seed: int,
    overwrite: bool,
    on_progress: Callable[[int], None] | None = None,
) -> tuple[dict[str, Any], pl.DataFrame]:
    """Write trips to a Parquet or CSV file, and rejected points next to it. Returns the summary and rejected points.

    Args:
        out: file to write; its ending chooses the format.
        gps: file of GPS points to stitch; None for the trips of the built-in city.
        mapped: headings of the columns of `gps`, by the names that unmet gives them.
        stop_minutes: a trip ends if the car rests or is silent for this long.
        privacy_noise_m: shortest and longest distance by which stops are moved; None to leave them in place.
        seed: seed of the noise, or of the built-in city.
        overwrite: whether existing files may be replaced.
        on_progress: called with the number of points read so far.
    """
    rejected_path = out.with_name(f"{out.stem}.rejected.parquet")
    _check_paths(overwrite, out, rejected_path)
    rejected = pl.DataFrame()
    summary: dict[str, Any]
    if gps is None:
        if privacy_noise_m:
            raise InputError("The built-in trips already have privacy noise: give --privacy-noise only with --gps.")
        trips, summary = built_in_trips(seed), {"source": "the built-in city"}
    else:
        stitched = stitch_trips(
            gps, StitchRules(stop_minutes=stop_minutes), privacy_noise_m, seed, on_progress, mapped=mapped
        )
        trips, rejected = stitched.trips, stitched.rejected
        summary = {
            "source": str(gps),
            "points_in": stitched.points_in,
            "points_kept": stitched.points_kept,
            "points_set_aside": rejected.height,
            "stretches_too_short_for_a_trip": stitched.fragments,
        }
    summary |= {
        "vehicles": trips["vehicle_id"].n_unique(),
        "trips": trips.height,
        "distance_km": round(float(trips["distance_km"].sum()), 1),
        "out": str(out),
    }
    _write(trips, out, overwrite)
    return summary | _write_rejected(rejected, rejected_path), rejected


class MatsimSource(NamedTuple):
    """The files of a MATSim scenario."""

    drives: Path  # plans or events
    network: Path | None  # needed for chargers, which are located on its links
    chargers: Path | None
    crs: str | None  # coordinate system of the positions, such as EPSG:25832; None if they are in degrees
    mode: str  # transport mode of the cars, usually "car"


def write_matsim(
    out: Path, source: MatsimSource, day: MatsimDay, *, overwrite: bool
) -> tuple[dict[str, Any], pl.DataFrame]:
    """Write the trips of a MATSim scenario, and its chargers as stations. Returns the summary and rejected legs."""
    rejected_path = out.with_name(f"{out.stem}.rejected.parquet")
    stations_path = out.with_name(f"{out.stem}.stations{out.suffix}")
    _check_paths(overwrite, out, rejected_path, *((stations_path,) if source.chargers else ()))
    if source.chargers and not source.network:
        raise InputError("Chargers are located on links: give the scenario's network with --network.")
    network = read_road_network(source.network) if source.network else None
    found = read_matsim_trips(source.drives, source.crs, day, network, source.mode)
    stations = read_chargers(source.chargers, network, source.crs) if source.chargers and network else None
    _write(found.trips, out, overwrite)
    summary = {
        "source": str(source.drives),
        "legs_of_the_day": found.legs,
        "days": day.days,
        "vehicles": found.trips["vehicle_id"].n_unique(),
        "trips": found.trips.height,
        "trips_set_aside": found.rejected.height,
        "distance_km": round(float(found.trips["distance_km"].sum()), 1),
        "out": str(out),
    }
    if stations is not None:
        _write(stations, stations_path, overwrite)
        summary |= {"stations": str(stations_path), "plugs": int(stations["plugs"].sum())}
    return summary | _write_rejected(found.rejected, rejected_path), found.rejected


def _check_paths(overwrite: bool, *paths: Path) -> None:
    """Raise `InputError` if the first path is not a .parquet or .csv file, or if any exists and `overwrite` is not set.

    The first path is the one that the user named; the others are derived from it.
    """
    if paths[0].suffix not in (".parquet", ".csv"):
        raise InputError(f"{paths[0]} must end in .parquet or .csv, which determines the format.")
    if (existing := [path for path in paths if path.exists()]) and not overwrite:
        raise InputError(f"{existing[0]} already exists: name another file with --out, or replace it with --overwrite.")


def _write(table: pl.DataFrame, path: Path, overwrite: bool = True) -> None:
    with atomic_file(path, overwrite=overwrite) as draft:
        table.write_parquet(draft) if path.suffix == ".parquet" else table.write_csv(draft)


def _write_rejected(rejected: pl.DataFrame, path: Path) -> dict[str, str]:
    """Write the rejected rows if there are any; otherwise remove the file of an earlier run."""
    if rejected.is_empty():
        path.unlink(missing_ok=True)
        return {}
    _write(rejected, path)
    return {"rejected": str(path)}
