"""Known drives as GPS points, and properties of the trips that are stitched from points."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from polars.testing import assert_frame_equal

from unmet.city.gates import check_trips
from unmet.city.gps import Stitched
from unmet.geo import Projection, haversine_km
from unmet.tables import UTC

START_MS = 1_567_296_000_000  # 2019-09-01
CENTRE = Projection(55.68, 12.57)
STEP_S = 20


def known_drives(
    rng: np.random.Generator, vehicle: str, drives: int, *, parked: str = "chatter", tunnel: bool = False
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Points without error of a car on winding roads, one every 20 s, and its trips.

    Where it is parked, it sends a point a minute ("chatter"), none ("silence"), or none and then no fix in the first
    minute of the next drive ("cold start"). A tunnel hides seven minutes in the middle of every drive.
    """
    x, y, second = rng.uniform(-5, 5), rng.uniform(-5, 5), 0
    points, trips = [(second, x, y)], []
    for _ in range(drives):
        stay = int(rng.integers(12, 90)) * 60
        if parked == "chatter":
            points += [(second + s, x, y) for s in range(60, stay, 60)]
        second += stay
        trip = {"vehicle_id": vehicle, "start_s": second, "start_x": x, "start_y": y}
        path = [(second, x, y)]
        heading, km = rng.uniform(0, 2 * np.pi), 0.0
        for step in range(steps := int(rng.integers(30, 90)) + 40 * tunnel):
            second += STEP_S
            leg = rng.uniform(30, 80) / 3600 * STEP_S
            x, y, km = x + leg * np.cos(heading), y + leg * np.sin(heading), km + leg
            path.append((second, x, y))
            hidden = tunnel and 10 <= step < 31
            heading += 0 if hidden else rng.normal(0, 0.3)
        if tunnel:
            path = path[:11] + path[31:]
        if parked == "cold start":
            path = path[3:]
        points += path
        trips.append({**trip, "end_s": second, "end_x": x, "end_y": y, "distance_km": km, "steps": steps})
    points += [(second + 60 * minute, x, y) for minute in range(1, 10)]
    frame = pl.DataFrame(points, schema=["s", "x", "y"], orient="row").unique("s").sort("s")
    return frame.select(pl.lit(vehicle).alias("vehicle_id"), "s", "x", "y"), pl.DataFrame(trips)


def as_points(frame: pl.DataFrame, rng: np.random.Generator | None = None, noise_m: float = 6) -> pl.DataFrame:
    """Points in degrees and UTC, with noise in both directions."""
    shake = np.zeros((2, frame.height)) if rng is None else rng.normal(0, noise_m / 1e3, (2, frame.height))
    lat, lon = CENTRE.to_degrees(frame["x"].to_numpy() + shake[0], frame["y"].to_numpy() + shake[1])
    time = (frame["s"] * 1000 + START_MS).cast(UTC)
    return pl.DataFrame({"vehicle_id": frame["vehicle_id"], "time": time, "lat": lat, "lon": lon})


def city(seed: int, cars: int = 3, **kind: Any) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Noisy points of some cars, interleaved by time, and their trips."""
    rng = np.random.default_rng(seed)
    pairs = [known_drives(rng, f"car{i}", 4, **kind) for i in range(cars)]
    points = pl.concat(as_points(frame, rng) for frame, _ in pairs).sort("time", maintain_order=True)
    return points, pl.concat(trips for _, trips in pairs)


def spoiled(points: pl.DataFrame, seed: int) -> pl.DataFrame:
    """The points with 10 % dropped, 2 % sent twice and 1 % of them far away.

    A point next to a silence is unchanged: nothing else shows where the car came to rest.
    """
    rng = np.random.default_rng(seed)
    step = pl.col("time").diff().over("vehicle_id").dt.total_seconds().fill_null(999)
    amid = points.select((step <= 60) & (step.shift(-1, fill_value=999).over("vehicle_id") <= 60)).to_series()
    far = pl.Series(rng.choice([0.0, 0.3, -0.2], points.height, p=[0.99, 0.005, 0.005])) * amid
    points = points.with_columns(pl.col("lat") + far, pl.col("lon") - far)
    dropped = pl.Series(rng.random(points.height) < 0.1) & amid
    times = (1 - dropped.cast(pl.Int64).to_numpy()) * (1 + (rng.random(points.height) < 0.02))
    return points[np.repeat(np.arange(points.height), times)]


def metres_apart(a: pl.DataFrame, b: pl.DataFrame, end: str) -> np.ndarray:
    """Distance between the starts or ends of the same trips."""
    return 1e3 * haversine_km(a[f"{end}_lat"], a[f"{end}_lon"], b[f"{end}_lat"], b[f"{end}_lon"])


def assert_recovered(stitched: Stitched, truth: pl.DataFrame) -> None:
    trips = stitched.trips
    assert trips["vehicle_id"].to_list() == truth["vehicle_id"].to_list()
    for end in ("start", "end"):
        seconds = (trips[f"{end}_time"].dt.epoch("ms") - START_MS) / 1000 - truth[f"{end}_s"]
        assert seconds.abs().max() <= 120
        lat, lon = CENTRE.to_degrees(truth[f"{end}_x"], truth[f"{end}_y"])
        assert metres_apart(trips, pl.DataFrame({f"{end}_lat": lat, f"{end}_lon": lon}), end).max() <= 60
    assert ((trips["distance_km"] / truth["distance_km"]) - 1).abs().max() <= 0.05
    parked = truth.select((pl.col("start_s").shift(-1).over("vehicle_id") - pl.col("end_s")) / 60).to_series()
    assert trips["parked_minutes"].is_null().to_list() == parked.is_null().to_list()
    assert (trips["parked_minutes"] - parked).abs().max() <= 3
    assert_lawful(stitched)


def assert_lawful(stitched: Stitched) -> None:
    """Properties that hold for any points."""
    trips = stitched.trips
    assert stitched.points_in == stitched.points_kept + stitched.rejected.height
    assert stitched.rejected["line"].is_unique().all()
    assert stitched.rejected.select("column", "reason").null_count().sum_horizontal().item() == 0
    numbers = trips.select(pl.col(pl.Float64).exclude("parked_minutes"))
    assert numbers.select(pl.all().is_finite().all()).row(0) == (True,) * 5
    assert trips.select((pl.col("distance_km") >= 0).all() & (pl.col("end_time") > pl.col("start_time")).all()).item()
    assert (trips["parked_minutes"].drop_nulls() >= 0).all()
    assert trips["points"].sum() <= 2 * stitched.points_kept  # a stop is the end of one trip and the start of the next
    assert check_trips(trips).rejected.is_empty()


def assert_same(a: Stitched, b: Stitched) -> None:
    assert_frame_equal(a.trips, b.trips, check_exact=True)
    assert_frame_equal(a.rejected, b.rejected)
    assert (a.points_in, a.points_kept, a.fragments) == (b.points_in, b.points_kept, b.fragments)
