"""Trips come back from the points of known drives; whatever the points, none is lost and no trip overlaps."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import unmet
from unmet.city.gates import check_trips
from unmet.city.gps import GPS_POINTS, Stitched, StitchRules, stitch_trips
from unmet.city.stitching import Stitcher
from unmet.errors import InputError
from unmet.geo import Projection, haversine_km
from unmet.tables import UTC, parse_time

QUICK = settings(deadline=None, database=None, max_examples=40)
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

    A point next to a silence stays as it is: nothing else tells where the car came to rest.
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
    """What holds for any points at all."""
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


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("parked", ["chatter", "silence", "cold start"])
def test_known_trips_are_recovered(seed: int, parked: str) -> None:
    points, truth = city(seed, parked=parked)
    clean = stitch_trips(points)
    assert_recovered(clean, truth)
    assert clean.rejected.is_empty()
    assert_recovered(stitch_trips(spoiled(points, seed)), truth)


@pytest.mark.parametrize("seed", [4, 5])
def test_a_tunnel_does_not_cut_a_trip(seed: int) -> None:
    points, truth = city(seed, parked="silence", tunnel=True)
    assert_recovered(stitch_trips(points), truth)
    short_bridge = stitch_trips(points, StitchRules(bridge_minutes=6))
    assert short_bridge.trips.height == 2 * truth.height


def test_rejects_name_line_column_and_reason() -> None:
    points, _ = city(6, cars=1, parked="silence")
    rows = points.rows()
    vehicle, _, lat, lon = rows[10]
    jump, copy, late = (vehicle, rows[15][1], lat + 1, lon), rows[20], rows[2]
    rows = [*rows[:15], jump, *rows[16:21], copy, *rows[21:30], late, *rows[30:]]
    rejected = stitch_trips(pl.DataFrame(rows, schema=points.schema, orient="row")).rejected
    assert rejected.select("line", "column").rows() == [(16, "lat"), (22, "time"), (32, "time")]
    assert rejected["value"][0] == f"{lat + 1}, {lon}"
    assert rejected["value"][2] == late[1].strftime("%Y-%m-%dT%H:%M:%S.000Z")
    for reason, start in zip(rejected["reason"], ["a jump", "duplicate", "earlier than the point"], strict=True):
        assert reason.startswith(start)


def test_a_stop_needs_rest_or_silence_for_its_whole_time() -> None:
    """A halt of four minutes is traffic, one of six a stop, with or without points during the halt."""
    for minutes, trips in ((4, 1), (6, 2)):
        for chatter in (True, False):
            leg, wait = [0.15] * 30, [0.0] * (3 * minutes)
            east = np.cumsum(leg + wait + leg)
            seconds = np.arange(len(east)) * STEP_S
            keep = np.ones(len(east), bool)
            keep[31 : 30 + len(wait)] = chatter
            track = pl.DataFrame({"vehicle_id": "a", "s": seconds, "x": east, "y": 0.0}).filter(pl.Series(keep))
            assert stitch_trips(as_points(track)).trips.height == trips


def test_drives_round_the_yard_are_fragments() -> None:
    east = np.concatenate([np.zeros(20), [0.15, 0.2, 0.15], np.zeros(30)])
    track = pl.DataFrame({"vehicle_id": "a", "s": np.arange(len(east)) * STEP_S, "x": east, "y": 0.0})
    stitched = stitch_trips(as_points(track))
    assert (stitched.trips.height, stitched.fragments) == (0, 1)


def test_after_a_teleport_the_car_really_is_there() -> None:
    """Points that agree among themselves overrule an older position; they are one gap, and no distance."""
    points, truth = city(7, cars=1, parked="chatter")
    moved = points.with_columns(pl.when(pl.int_range(pl.len()) >= 40).then(pl.col("lat") + 1).otherwise("lat"))
    stitched = stitch_trips(moved)
    assert stitched.rejected.is_empty()
    assert stitched.trips["distance_km"].sum() < truth["distance_km"].sum() * 1.05
    for jumps in (1, 2):  # fewer than three in a row never overrule it
        at = pl.int_range(pl.len()).is_between(40, 39 + jumps)
        spoiled = stitch_trips(points.with_columns(pl.when(at).then(pl.col("lat") + 1).otherwise("lat")))
        assert spoiled.rejected["line"].to_list() == list(range(41, 41 + jumps))
        assert_recovered(spoiled, truth)


def test_the_first_fix_after_a_night_waits_for_the_next_to_confirm_it() -> None:
    """It is set aside if the car turns out not to have moved, and used where the record ends with it."""
    minutes = [0, 1, 600, 601, 602]
    for east, wrong in (([0, 0, 1, 0, 0], [3]), ([0, 0, 1, 1.2, 1.4], []), ([0, 0, 1], [])):
        track = {"vehicle_id": "a", "s": [60 * m for m in minutes[: len(east)]], "x": np.array(east, float), "y": 0.0}
        stitched = stitch_trips(as_points(pl.DataFrame(track)))
        assert stitched.rejected["line"].to_list() == wrong
    ahead = pl.DataFrame({"vehicle_id": "a", "s": [0, 20, 86_400, 40, 60], "x": 0.0, "y": 0.0})
    rejected = stitch_trips(as_points(ahead)).rejected
    assert rejected.select("line", "column").rows() == [(3, "time")]
    assert "later than the point after it" in rejected["reason"][0]


def test_points_without_a_position_or_a_sensible_time_are_set_aside() -> None:
    time = pl.Series([START_MS, START_MS + 20_000, 2**62, 0]).cast(UTC)
    points = pl.DataFrame({"id": ["a", "a", "b", " "], "t": time, "lat": [55.0, 0, 1, 1], "lng": [12.0, 0, 1, 1]})
    rejected = stitch_trips(points).rejected
    assert rejected.select("line", "column").rows() == [(2, "lat"), (3, "time"), (4, "vehicle_id")]
    assert "no position" in rejected["reason"][0]


PLAIN, PLAIN_TRUTH = city(8, cars=1, parked="silence")


@QUICK
@given(
    at=st.integers(1, PLAIN.height - 2),
    seconds=st.one_of(st.integers(-300, 300), st.integers(-(10**9), 2 * 10**9)),
    lat=st.one_of(st.none(), st.floats(-90, 90)),
    lon=st.floats(-180, 180),
)
def test_one_bad_fix_spoils_little(at: int, seconds: int, lat: float | None, lon: float) -> None:
    """A fix that is wrong in time, place or both costs at most the points of one stop time."""
    vehicle, time, old_lat, old_lon = PLAIN.row(at)
    bad = pl.DataFrame({"vehicle_id": vehicle, "time": time, "lat": old_lat, "lon": old_lon}).select(
        "vehicle_id",
        (pl.col("time") + pl.duration(seconds=seconds)).cast(UTC),
        pl.col("lat") if lat is None else pl.lit(lat).alias("lat"),
        pl.col("lon") if lat is None else pl.lit(lon).alias("lon"),
    )
    stitched = stitch_trips(pl.concat([PLAIN[:at], bad, PLAIN[at:]]))
    assert_lawful(stitched)
    assert stitched.rejected.height <= 300 // STEP_S + 2
    if lat is not None and haversine_km(lat, lon, old_lat, old_lon) > 50 and abs(seconds) <= 300:
        assert_recovered(stitched, PLAIN_TRUTH)


cells = {
    "vehicle_id": st.sampled_from(["a", "b", "c", " a", "", None]),
    "time": st.one_of(
        st.integers(0, 3 * 3600).map(str),
        st.integers(0, 200).map(lambda k: f"2019-09-01 {k // 60:02}:{k % 60:02}:00"),
        st.sampled_from(["2019-09-01T00:10Z", "soon", "", "-1e300", "nan", "9e18", "1e12", "0001-01-01T00:00:00Z"]),
    ),
    "lat": st.one_of(st.floats(55, 55.1).map(str), st.floats().map(str), st.sampled_from(["", "x", "0", "90", "-90"])),
    "lon": st.one_of(st.floats(12, 12.1).map(str), st.floats().map(str), st.sampled_from(["", "0", "180", "-180"])),
}
mild = {**cells, "vehicle_id": st.just("a"), "lat": st.floats(55, 55.05).map(str), "lon": st.just("12")}
mild["time"] = st.integers(0, 3 * 3600).map(str)
garbage = st.lists(st.one_of(st.fixed_dictionaries(cells), st.fixed_dictionaries(mild)), min_size=1, max_size=60)


@QUICK
@given(rows=garbage, ordered=st.booleans(), batch=st.integers(1, 9), minutes=st.sampled_from([0.5, 5, 60]))
def test_any_garbage_is_kept_or_set_aside(rows: list[Any], ordered: bool, batch: int, minutes: float) -> None:
    frame = pl.DataFrame(rows, schema=dict.fromkeys(cells, pl.String))
    if ordered:
        frame = frame.sort(pl.col("time").cast(pl.Float64, strict=False))
    rules = StitchRules(stop_minutes=minutes, min_km=0.01, min_minutes=0)
    stitched = stitch_trips(frame, rules)
    assert stitched.points_in == frame.height
    assert_lawful(stitched)
    assert_same(stitched, stitch_trips(frame, rules, batch_rows=batch))


@pytest.mark.parametrize("batch", [3, 7, 1000])
def test_batches_do_not_matter(batch: int) -> None:
    points = spoiled(city(9)[0], 9)
    told: list[int] = []
    whole = stitch_trips(points, privacy_noise_m=(50, 500), seed=3)
    assert_same(
        whole, stitch_trips(points, privacy_noise_m=(50, 500), seed=3, batch_rows=batch, on_progress=told.append)
    )
    assert told == [min(n, points.height) for n in range(batch, points.height + batch, batch)]
    assert whole.rejected["reason"].n_unique() >= 2


LINES = [
    b"a,2019-09-01T00:00:00Z,55.1,12.1,x",
    b'"a",2019-09-01 00:01:00,"55.2",12.1,',
    b"b,1567296000,55.1,12.1,\r",
    b"a,2019-09-01T00:02:00Z,55.1,12.1,x,extra",
    b"a,2019-09-01T00:02:00Z,55.1",
    b'a,2019-09-01T00:02:00Z,55.1,"12.1,x',
    b"",
    b"  ",
    b"caf\xe9,2019-09-01T00:02:00Z,55.1,12.1,x",
    b"caf\xc3\xa9,2019-09-01T00:02:00Z,55.1,12.1,x",
    b"a\rb,2019-09-01T00:02:00Z,55.1,12.1,x",
    b",,,,",
]


@QUICK
@given(lines=st.lists(st.sampled_from(LINES), max_size=20), batch=st.integers(1, 6))
def test_a_line_of_a_csv_is_judged_by_itself(lines: list[bytes], batch: int, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("csv") / "points.csv"
    path.write_bytes(b"\n".join([b"\xef\xbb\xbfID,Timestamp,latitude,lng,note", *lines, LINES[0]]) + b"\n")
    whole = stitch_trips(path)
    assert whole.points_in == sum(bool(line.strip()) for line in lines) + 1
    assert_lawful(whole)
    assert_same(whole, stitch_trips(path, batch_rows=batch))
    shapeless = {i + 2 for i, line in enumerate(lines) if line in (LINES[3], LINES[4], LINES[5], LINES[8], LINES[10])}
    assert set(whole.rejected.filter(pl.col("column") == "")["line"]) == shapeless


def test_files_and_frames_of_any_kind_give_the_same_trips(tmp_path: Path) -> None:
    points = spoiled(city(10)[0], 10).with_columns(pl.col("lat", "lon").round(6))
    expected = stitch_trips(points)
    points.write_parquet(tmp_path / "points.parquet", row_group_size=100)
    points.with_columns(pl.col("vehicle_id").cast(pl.Categorical)).write_parquet(tmp_path / "coded.parquet")
    assert_same(stitch_trips(tmp_path / "points.parquet", batch_rows=64), expected)
    assert_same(stitch_trips(str(tmp_path / "coded.parquet")), expected)
    assert_same(stitch_trips(points.to_arrow()), expected)
    texts = [
        points.write_csv(datetime_format="%Y-%m-%dT%H:%M:%SZ"),
        points.write_csv(datetime_format="%Y-%m-%d %H:%M:%S", quote_style="always"),
        points.with_columns(pl.col("time").dt.epoch("s")).write_csv(separator=";"),
        points.select("lon", pl.lit("?").alias("lat2"), "time", "vehicle_id", "lat").write_csv(line_terminator="\r\n"),
    ]
    for i, text in enumerate(texts):
        (tmp_path / f"{i}.csv").write_bytes(text.encode())
        with gzip.open(tmp_path / f"{i}.csv.gz", "wb") as file:
            file.write(text.encode())
        for path in (tmp_path / f"{i}.csv", tmp_path / f"{i}.csv.gz"):
            read = stitch_trips(path, batch_rows=500)
            assert_frame_equal(read.trips, expected.trips, check_exact=True)
            assert (read.rejected["line"] - 1).to_list() == expected.rejected["line"].to_list()


@pytest.mark.parametrize(
    "text",
    ["2019-09-01T00:00:00Z", "2019-09-01 00:00", "2019-09-01 00:00:00.25", "2019-09-01T02:00:00+02:00", "1567296000",
     "1567296000123", "2019-09-01", " 2019-09-01 00:00:00 ", "20190901", "2019-09-01 00:00:00Z", "1567296000.5"],
)  # fmt: skip
def test_times_are_read_as_in_every_table(text: str) -> None:
    at = pl.DataFrame({"t": [text]}).select(parse_time(pl.col("t").str.strip_chars(), pl.String())).item()
    rows = {"vehicle_id": "a", "time": text, "lat": [55.0], "lon": [12.0]}
    later = {"vehicle_id": "a", "time": "100000000", "lat": [55.0], "lon": [12.0]}
    rejected = stitch_trips(pl.concat([pl.DataFrame(rows), pl.DataFrame(later), pl.DataFrame(rows)])).rejected
    if at is None:
        assert rejected["line"].to_list() == [1, 3]
    else:
        assert rejected.row(1)[2] == at.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def test_privacy_noise_moves_every_stop_once_within_its_bounds() -> None:
    points, _ = city(11)
    plain = stitch_trips(points).trips
    noisy = stitch_trips(points, privacy_noise_m=(50, 500), seed=5).trips
    moved = {}
    for end in ("start", "end"):
        metres = metres_apart(plain, noisy, end)
        assert metres.min() >= 49.999
        assert metres.max() <= 500.001
        moved[end] = np.column_stack([noisy[f"{end}_{c}"] - plain[f"{end}_{c}"] for c in ("lat", "lon")])
    chained = (plain["vehicle_id"].shift(-1) == plain["vehicle_id"]).fill_null(value=False).to_numpy()
    following = np.flatnonzero(chained) + 1
    assert len(following) == 9
    np.testing.assert_allclose(moved["end"][chained], moved["start"][following], atol=1e-6)
    assert len(np.unique(moved["end"].round(9), axis=0)) == plain.height
    assert_frame_equal(noisy.drop(pl.selectors.matches("lat|lon")), plain.drop(pl.selectors.matches("lat|lon")))
    assert_frame_equal(noisy, stitch_trips(points, privacy_noise_m=(50, 500), seed=5).trips)
    assert not noisy.equals(stitch_trips(points, privacy_noise_m=(50, 500), seed=6).trips)


def test_trips_across_the_date_line() -> None:
    """Nothing changes where the longitude does."""
    points, _ = city(12, cars=1, parked="chatter")
    shifted = points.with_columns((pl.col("lon") - 12.57 + 360) % 360 - 180)
    here, there = stitch_trips(points).trips, stitch_trips(shifted).trips
    assert here.height == there.height
    np.testing.assert_allclose(here["distance_km"], there["distance_km"], rtol=1e-6)
    assert_frame_equal(here.select("start_time", "end_time"), there.select("start_time", "end_time"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"vehicle_id,time,lat,lon\n", "holds no points"),
        (b"vehicle_id,time,lat\na,0,55\n", "has no column lon"),
        (b"\x00\x01\x02\x03" * 100, "binary file"),
        (b"vehicle_id,time,lat,l\xf8n\n", "UTF-8"),
        (b"PAR1 and then nothing of the kind", "Check that the file is whole"),
        (b"\x1f\x8b and no more", "Check that the file is whole"),
        (gzip.compress(b"vehicle_id,time,lat,lon\n" + os.urandom(9999).hex().encode())[:-999], "the file is whole"),
    ],
)
def test_files_that_cannot_be_read_say_so(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "points"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        stitch_trips(path)
    assert str(path) in str(error.value)


def test_wrong_arguments_say_what_is_wrong(tmp_path: Path) -> None:
    points = {"id": ["a"], "t": [1_567_296_000], "lat": [55.0], "lon": [12.0]}
    for bad in (
        lambda: stitch_trips(tmp_path / "none.csv"),
        lambda: stitch_trips({"lat": [1.0]}),
        lambda: stitch_trips({**points, "lat": [[55.0]]}),
        lambda: stitch_trips({**points, "t": [dt.date(2019, 9, 1)]}),
        lambda: stitch_trips(3),
        lambda: stitch_trips(points, privacy_noise_m=(500, 50)),
        lambda: stitch_trips(points, batch_rows=0),
        lambda: StitchRules(stop_minutes=0),
        lambda: StitchRules(min_km=float("nan")),
    ):
        with pytest.raises(InputError):
            bad()
    assert stitch_trips(points).points_kept == 1


def test_the_document_states_the_rules_and_its_example_is_true(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "gps.md").read_text(encoding="utf-8")
    for rule in fields(StitchRules):
        assert f"| `{rule.name}` | {rule.default:g} |" in text
    for row in GPS_POINTS.to_markdown().splitlines():
        assert row in text
    (tmp_path / "points.csv").write_text(text.split("```csv\n")[1].split("```")[0])
    trip = stitch_trips(tmp_path / "points.csv").trips.row(0, named=True)
    assert f"from {trip['start_time']:%H:%M:%S} to {trip['end_time']:%H:%M:%S}" in text
    assert f"of {trip['distance_km']:.2f} km" in text


def in_a_new_process(code: str, **environment: str) -> Any:
    """What a Python process of its own prints, as JSON."""
    paths = os.pathsep.join([str(Path(unmet.__file__).parents[1]), str(Path(__file__).parent)])
    run = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": paths, **environment},
    )
    return json.loads(run.stdout)


def test_the_compiled_loop_does_what_its_python_says() -> None:
    code = (
        "import json, test_gps as t; s = t.stitch_trips(t.spoiled(t.city(13, cars=2)[0], 13))\n"
        "numbers = s.trips.cast({'start_time': int, 'end_time': int}).rows()\n"
        "print(json.dumps([numbers, s.rejected.rows(), s.points_kept, s.fragments]))"
    )
    python, compiled = in_a_new_process(code, NUMBA_DISABLE_JIT="1"), in_a_new_process(code)
    assert len(python[0]) == 8
    assert len(python[1]) > 10
    assert python[1:] == compiled[1:]
    for a, b in zip(python[0], compiled[0], strict=True):
        assert a[:3] == b[:3]
        assert a[3:8] == pytest.approx(b[3:8], rel=1e-12)


def test_state_does_not_grow_with_the_points() -> None:
    rng = np.random.default_rng(0)
    sizes = []
    for n in (1_000, 100_000):
        stitcher = Stitcher(StitchRules().to_limits())
        for start in range(0, n, 500):
            time = START_MS + 20_000.0 * (np.arange(start, start + 500) // 50)
            lat, lon = 55 + rng.normal(0, 1e-4, 500), 12 + rng.normal(0, 1e-4, 500)
            stitcher.feed(np.arange(500) % 50, time, lat, lon, np.arange(500))
        assert stitcher.kept == n
        sizes.append(stitcher.cars.nbytes + stitcher.trips.nbytes + stitcher.rejects.nbytes)
    assert sizes[0] == sizes[1] <= 50 * 2 * 300


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from Linux")
def test_memory_is_that_of_a_batch_not_of_the_file(tmp_path: Path) -> None:
    """The peak of a process hardly rises from a file of 20 thousand points to one of 1.2 million."""
    for name, n in (("small", 20_000), ("large", 1_200_000)):
        at = pl.int_range(n, eager=True)
        frame = pl.DataFrame({"vehicle_id": at % 50, "time": 1_567_296_000 + at // 50 * 20})
        frame = frame.with_columns(lat=55 + (at * 7919 % 1000) * 1e-7, lon=12 + (at * 104729 % 1000) * 1e-7)
        frame.write_csv(tmp_path / f"{name}.csv")
        frame.write_parquet(tmp_path / f"{name}.parquet")
    code = (
        "import json, pathlib, re; from unmet.city.gps import stitch_trips as go\n"
        "peaks = []\n"
        "for name in ('small.csv', 'small.parquet', 'large.csv', 'large.parquet'):\n"
        f"    go({str(tmp_path)!r} + '/' + name, batch_rows=20_000)\n"
        "    status = pathlib.Path('/proc/self/status').read_text()\n"
        "    peaks.append(int(re.search(r'VmHWM:\\s+(\\d+)', status)[1]) / 1024)\n"
        "print(json.dumps(peaks))"
    )
    peaks = in_a_new_process(code)
    assert peaks[-1] - peaks[1] < 60  # MB; each of the large files, read at once, adds more than 100
