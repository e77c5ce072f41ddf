"""Raw GPS points of cars, read in batches and stitched into trips."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.city.gps_points import GPS_POINTS, point_batches, source_name, usable_points
from unmet.city.stitching import AHEAD, DUPLICATE, EARLIER, JUMP, Stitcher, StitchLimits
from unmet.errors import InputError
from unmet.geo import EARTH_RADIUS_KM
from unmet.tables import UTC

__all__ = ["GPS_POINTS", "StitchRules", "Stitched", "stitch_trips"]


@dataclass(frozen=True, slots=True)
class StitchRules:
    """Thresholds that define a stop, a jump, a gap and a trip. All are 0 or more; `docs/gps.md` explains them."""

    stop_minutes: float = 5  # a trip ends if the car rests, or is silent without a sign of driving, for this long
    stop_radius_m: float = 100  # a car within this distance of where it came to rest has not moved
    max_speed_kmh: float = 220  # a point that could only be reached at a higher speed is a jump
    noise_m: float = 25  # a point closer than this to the last counted one adds no distance
    bridge_minutes: float = 30  # a shorter silence is part of the trip if the car moved on at 5 km/h or more
    cold_start_km: float = 2  # a first fix within this distance of the parking place belongs to the trip from there
    min_km: float = 0.3  # a drive that is shorter, or stays within this distance of its start, is a fragment
    min_minutes: float = 1  # a drive that takes less than this is a fragment

    def __post_init__(self) -> None:
        for rule in fields(self):
            value = getattr(self, rule.name)
            if not 0 <= value < float("inf"):
                raise InputError(f"{rule.name} is {value}: give a number that is 0 or more.")
        if not self.stop_minutes or not self.max_speed_kmh:
            raise InputError("stop_minutes and max_speed_kmh cannot be 0: give a number above 0.")

    def to_limits(self) -> StitchLimits:
        """The rules in the units of the state machine."""
        return StitchLimits(
            stop_ms=self.stop_minutes * 60e3,
            stop_km=self.stop_radius_m / 1e3,
            top_km_per_ms=self.max_speed_kmh / 3.6e6,
            noise_km=self.noise_m / 1e3,
            bridge_ms=self.bridge_minutes * 60e3,
            cold_start_km=float(self.cold_start_km),
            min_km=float(self.min_km),
            min_ms=self.min_minutes * 60e3,
        )


DEFAULT_RULES = StitchRules()
NOISE_STREAM = 0x695  # keeps the random numbers of privacy noise apart from others of the same seed


@dataclass(frozen=True, slots=True)
class Stitched:
    """Trips, and counts of points: points in = points kept + points set aside."""

    trips: pl.DataFrame  # vehicle_id, start_time, end_time, start_lat, start_lon, end_lat, end_lon, distance_km,
    # parked_minutes (until the vehicle's next trip; null after its last), points; by vehicle and time
    rejected: pl.DataFrame  # line, column, value, reason; by line
    points_in: int
    points_kept: int
    fragments: int  # drives too short to be a trip


def stitch_trips(
    source: Any,
    rules: StitchRules = DEFAULT_RULES,
    privacy_noise_m: tuple[float, float] | None = None,
    seed: int = 1,
    on_progress: Callable[[int], None] | None = None,
    batch_rows: int = 500_000,
    mapped: Mapping[str, str] | None = None,
) -> Stitched:
    """Stitch GPS points (a CSV, gzipped CSV or Parquet file, or a frame) into trips.

    A file is read in batches, whose size does not change the result. Memory holds one batch, a fixed record for every
    vehicle, the trips and the rejected points. Points of one vehicle must be in time order.

    Args:
        source: the points.
        rules: thresholds.
        privacy_noise_m: smallest and largest distance by which every stop is displaced in a random direction [m]; the
            end of a trip and the start of the next are displaced alike.
        seed: seed of the privacy noise.
        on_progress: called with the number of points read so far.
        batch_rows: points per batch.
        mapped: headings of columns, as {name: heading}.
    """
    min_m, max_m = privacy_noise_m or (0, 0)
    if not 0 <= min_m <= max_m <= 100_000:
        raise InputError(
            f"Privacy noise from {min_m} to {max_m} m: give two distances, the smaller first, up to 100 km."
        )
    if batch_rows < 1:
        raise InputError(f"A batch of {batch_rows} rows makes no sense: give 1 or more.")
    stitcher = Stitcher(rules.to_limits())
    vehicle_numbers: dict[str, int] = {}  # number of each vehicle, in order of appearance
    rejected: list[pl.DataFrame] = []
    points_in = 0
    for batch in point_batches(source, batch_rows, mapped):
        points, unusable = usable_points(batch)
        rejected += [frame for frame in (batch.malformed, unusable) if not frame.is_empty()]
        ms, lat, lon = (points[name].cast(pl.Float64).to_numpy(writable=True) for name in ("time", "lat", "lon"))
        line = points["line"].cast(pl.Int64).to_numpy(writable=True)
        stitcher.feed(_numbered(points["vehicle_id"], vehicle_numbers), ms, lat, lon, line)
        points_in += batch.frame.height + batch.malformed.height
        if on_progress:
            on_progress(points_in)
    if not points_in:
        raise InputError(f"{source_name(source)} contains no points: give at least one row below the header.")
    stitcher.finish()
    trips = _trips(stitcher.trips, list(vehicle_numbers))
    if privacy_noise_m:
        trips = _displaced(trips, min_m, max_m, np.random.default_rng([seed, NOISE_STREAM]))
    rejected.append(_rejects(stitcher.rejects, rules))
    return Stitched(trips, pl.concat(rejected).sort("line"), points_in, stitcher.kept, stitcher.fragments)


def _trips(records: NDArray[np.void], vehicles: list[str]) -> pl.DataFrame:
    """The stitcher's trips as a table, with the names of vehicles and the time parked after each trip."""
    frame = pl.DataFrame({name: records[name] for name in records.dtype.names or ()})
    frame = frame.select(
        pl.lit(pl.Series(vehicles, dtype=pl.String)).gather(pl.col("vehicle")).alias("vehicle_id"),
        pl.col("start_time", "end_time").cast(UTC),
        pl.exclude("vehicle", "start_time", "end_time"),
    ).sort("vehicle_id", "start_time")
    parked = pl.col("start_time").shift(-1).over("vehicle_id") - pl.col("end_time")
    minutes = (parked.dt.total_milliseconds() / 60_000).alias("parked_minutes")
    return frame.with_columns(minutes).select(pl.exclude("points"), "points")


def _rejects(records: NDArray[np.void], rules: StitchRules) -> pl.DataFrame:
    """The points that the stitcher set aside, as rejected rows."""
    reasons = {
        DUPLICATE: "duplicate: the vehicle's point before it has the same time",
        EARLIER: "earlier than the point before it: sort the file by time",
        JUMP: f"a jump: the car would have driven there at more than {rules.max_speed_kmh:g} km/h",
        AHEAD: "far later than the point after it: sort the file by time",
    }
    time = pl.col("ms").cast(UTC).dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
    jump = pl.col("why") == JUMP
    return pl.DataFrame({name: records[name] for name in records.dtype.names or ()}).select(
        pl.col("line").cast(pl.UInt64),
        pl.when(jump).then(pl.lit("lat")).otherwise(pl.lit("time")).alias("column"),
        pl.when(jump).then(pl.format("{}, {}", "lat", "lon")).otherwise(time).alias("value"),
        pl.col("why").replace_strict(reasons, return_dtype=pl.String).alias("reason"),
    )


def _displaced(trips: pl.DataFrame, min_m: float, max_m: float, rng: np.random.Generator) -> pl.DataFrame:
    """Trips with every stop displaced by `min_m` to `max_m` metres in any direction, along a great circle.

    With d the angular distance and b the bearing,
    sin(lat') = sin(lat) cos(d) + cos(lat) sin(d) cos(b), and
    lon' - lon = atan2(sin(b) sin(d) cos(lat), cos(d) - sin(lat) sin(lat')).
    """
    is_first = trips["vehicle_id"].is_first_distinct().to_numpy()
    # A vehicle with n trips has n + 1 stops. A trip starts at stop `start` and ends at the next.
    start = np.arange(trips.height) + np.cumsum(is_first) - 1
    stops = trips.height + int(is_first.sum())
    angle, bearing = rng.uniform(min_m, max_m, stops) / (EARTH_RADIUS_KM * 1e3), rng.uniform(0, 2 * np.pi, stops)
    columns = []
    for end, stop in (("start", start), ("end", start + 1)):
        phi, lam = np.radians(trips[f"{end}_lat"].to_numpy()), np.radians(trips[f"{end}_lon"].to_numpy())
        delta, theta = angle[stop], bearing[stop]
        sine = np.sin(phi) * np.cos(delta) + np.cos(phi) * np.sin(delta) * np.cos(theta)
        east = np.arctan2(np.sin(theta) * np.sin(delta) * np.cos(phi), np.cos(delta) - np.sin(phi) * sine)
        columns.append(pl.Series(f"{end}_lat", np.degrees(np.arcsin(np.clip(sine, -1, 1)))))
        columns.append(pl.Series(f"{end}_lon", (np.degrees(lam + east) + 180) % 360 - 180))
    return trips.with_columns(columns)


def _numbered(vehicles: pl.Series, numbers: dict[str, int]) -> NDArray[np.int64]:
    """The number of each point's vehicle; vehicles that are new in `numbers` are added to it."""
    new = vehicles.unique(maintain_order=True)
    found = [numbers.setdefault(vehicle, len(numbers)) for vehicle in new]
    return vehicles.replace_strict(new, found, return_dtype=pl.Int64).to_numpy(writable=True)
