"""Trips as a file: stitched from GPS points, or those of the built-in city."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from unmet.city.build import built_in_trips
from unmet.city.gps import StitchRules, stitch_trips
from unmet.errors import InputError
from unmet.runs import atomic_file

__all__ = ["write_trips"]


def write_trips(
    out: Path,
    gps: Path | None,
    *,
    stop_minutes: float,
    privacy_noise_m: tuple[float, float] | None,
    seed: int,
    overwrite: bool,
    on_progress: Callable[[int], None] | None = None,
) -> tuple[dict[str, Any], pl.DataFrame]:
    """Write trips to a Parquet or CSV file, and points that could not be used beside it; give summary and those.

    `on_progress` is told the number of points read so far.
    """
    if out.suffix not in (".parquet", ".csv"):
        raise InputError(f"{out} must end in .parquet or .csv, which says what to write.")
    if out.exists() and not overwrite:
        raise InputError(f"{out} is there already: name another file with --out, or allow --overwrite.")
    rejected = pl.DataFrame()
    summary: dict[str, Any]
    if gps is None:
        if privacy_noise_m:
            raise InputError("The built-in trips have their privacy noise already: --privacy-noise goes with --gps.")
        trips, summary = built_in_trips(seed), {"source": "the built-in city"}
    else:
        stitched = stitch_trips(gps, StitchRules(stop_minutes=stop_minutes), privacy_noise_m, seed, on_progress)
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
    aside = out.with_name(f"{out.stem}.rejected.parquet")
    with atomic_file(out, overwrite=overwrite) as draft:
        trips.write_parquet(draft) if out.suffix == ".parquet" else trips.write_csv(draft)
    if rejected.is_empty():
        aside.unlink(missing_ok=True)  # of an earlier run
    else:
        with atomic_file(aside) as draft:
            rejected.write_parquet(draft)
        summary["rejected"] = str(aside)
    return summary, rejected
