"""Trips are recovered from the points of known drives, and no trip overlaps another."""

from __future__ import annotations

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
from tests.city.drives import START_MS, STEP_S, as_points, assert_lawful, assert_recovered, city, metres_apart, spoiled
from unmet.city.gps import GPS_POINTS, StitchRules, stitch_trips
from unmet.city.stitching import Stitcher
from unmet.geo import haversine_km
from unmet.tables import UTC

QUICK = settings(deadline=None, database=None, max_examples=40)


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


def test_a_stop_needs_rest_or_silence_for_its_whole_duration() -> None:
    """A halt of four minutes is traffic and one of six a stop, with or without points during the halt."""
    for minutes, trips in ((4, 1), (6, 2)):
        for chatter in (True, False):
            leg, wait = [0.15] * 30, [0.0] * (3 * minutes)
            east = np.cumsum(leg + wait + leg)
            seconds = np.arange(len(east)) * STEP_S
            keep = np.ones(len(east), bool)
            keep[31 : 30 + len(wait)] = chatter
            track = pl.DataFrame({"vehicle_id": "a", "s": seconds, "x": east, "y": 0.0}).filter(pl.Series(keep))
            assert stitch_trips(as_points(track)).trips.height == trips


def test_very_short_drives_are_fragments() -> None:
    east = np.concatenate([np.zeros(20), [0.15, 0.2, 0.15], np.zeros(30)])
    track = pl.DataFrame({"vehicle_id": "a", "s": np.arange(len(east)) * STEP_S, "x": east, "y": 0.0})
    stitched = stitch_trips(as_points(track))
    assert (stitched.trips.height, stitched.fragments) == (0, 1)


def test_a_confirmed_jump_is_accepted() -> None:
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


def test_the_first_fix_after_a_night_is_held_until_the_next_confirms_it() -> None:
    """It is set aside if the car turns out not to have moved, and used if it is the last point."""
    minutes = [0, 1, 600, 601, 602]
    for east, wrong in (([0, 0, 1, 0, 0], [3]), ([0, 0, 1, 1.2, 1.4], []), ([0, 0, 1], [])):
        track = {"vehicle_id": "a", "s": [60 * m for m in minutes[: len(east)]], "x": np.array(east, float), "y": 0.0}
        stitched = stitch_trips(as_points(pl.DataFrame(track)))
        assert stitched.rejected["line"].to_list() == wrong
    ahead = pl.DataFrame({"vehicle_id": "a", "s": [0, 20, 86_400, 40, 60], "x": 0.0, "y": 0.0})
    rejected = stitch_trips(as_points(ahead)).rejected
    assert rejected.select("line", "column").rows() == [(3, "time")]
    assert "later than the point after it" in rejected["reason"][0]


PLAIN, PLAIN_TRUTH = city(8, cars=1, parked="silence")


@QUICK
@given(
    at=st.integers(1, PLAIN.height - 2),
    seconds=st.one_of(st.integers(-300, 300), st.integers(-(10**9), 2 * 10**9)),
    lat=st.one_of(st.none(), st.floats(-90, 90)),
    lon=st.floats(-180, 180),
)
def test_one_bad_fix_changes_little(at: int, seconds: int, lat: float | None, lon: float) -> None:
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
    """Nothing changes where the longitude wraps around."""
    points, _ = city(12, cars=1, parked="chatter")
    shifted = points.with_columns((pl.col("lon") - 12.57 + 360) % 360 - 180)
    here, there = stitch_trips(points).trips, stitch_trips(shifted).trips
    assert here.height == there.height
    np.testing.assert_allclose(here["distance_km"], there["distance_km"], rtol=1e-6)
    assert_frame_equal(here.select("start_time", "end_time"), there.select("start_time", "end_time"))


def test_the_documentation_states_the_rules_and_its_example_holds(tmp_path: Path) -> None:
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
    """The JSON that a separate Python process prints."""
    paths = os.pathsep.join([str(Path(unmet.__file__).parents[1]), str(Path(__file__).parent)])
    run = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": paths, **environment},
    )
    return json.loads(run.stdout)


def test_the_compiled_loop_equals_its_python_twin() -> None:
    code = (
        "import json, drives; from unmet.city.gps import stitch_trips\n"
        "s = stitch_trips(drives.spoiled(drives.city(13, cars=2)[0], 13))\n"
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
def test_memory_depends_on_the_batch_not_on_the_file(tmp_path: Path) -> None:
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
    # Memory is returned to the system at once and not by a timer, so that the peak does not depend on the load.
    at_once = {"_RJEM_MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0", "ARROW_DEFAULT_MEMORY_POOL": "system",
               "MALLOC_ARENA_MAX": "1", "POLARS_MAX_THREADS": "1"}  # fmt: skip
    peaks = in_a_new_process(code, **at_once)
    assert peaks[-1] - peaks[1] < 60  # MB; each of the large files, read at once, adds more than 100


def _track(seconds: list[float], east: list[float]) -> pl.DataFrame:
    frame = pl.DataFrame({"vehicle_id": "a", "s": seconds, "x": np.array(east, float), "y": 0.0})
    return as_points(frame)


def test_a_receiver_that_catches_up_does_not_end_a_trip() -> None:
    """Its position stands still for a minute while the car drives on, then leaps by 700 m within three seconds."""
    drive = list(np.arange(0, 6, 0.2))
    east = [*drive, 5.8, 5.8, 5.8, 6.5, 6.7, 6.9, 7.1, *np.arange(7.3, 12, 0.2)]
    seconds = [*(20.0 * np.arange(len(drive))), 600, 620, 640, 643, 660, 680, 700]
    seconds += list(720 + 20.0 * np.arange(len(east) - len(seconds)))
    still = [east[-1]] * 8
    stitched = stitch_trips(_track([*seconds, *(seconds[-1] + 60.0 * np.arange(1, 9))], [*east, *still]))
    assert stitched.trips.height == 1
    assert stitched.trips["distance_km"][0] == pytest.approx(11.9, abs=0.3)


def test_a_wrong_fix_that_drifts_back_is_not_a_trip() -> None:
    """The first fix of a parked car after a pause is 900 m off, an error that fades within four minutes."""
    parked = [0.0] * 20
    east = [*parked, 0.9, 0.7, 0.55, 0.4, 0.3, 0.2, 0.15, 0.05, *parked]
    assert stitch_trips(_track(list(60.0 * np.arange(len(east))), east)).trips.is_empty()
    there_and_back = [*parked, 0.3, 0.6, 0.9, 1.2, 0.9, 0.6, 0.3, *parked]
    real = stitch_trips(_track(list(60.0 * np.arange(len(there_and_back))), there_and_back)).trips
    assert real.height == 1


@QUICK
@given(
    seed=st.integers(0, 10_000),
    stop_minutes=st.sampled_from([3.0, 5.0, 10.0]),
    wrong=st.lists(st.tuples(st.integers(5, 180), st.floats(-3, 3)), max_size=12),
)
def test_no_parking_time_is_shorter_than_a_stop(seed: int, stop_minutes: float, wrong: list[tuple[int, float]]) -> None:
    """With any errors in a car's points: leaps, silences, drifts."""
    rng = np.random.default_rng(seed)
    pace = rng.choice([0.0, 0.0, 0.25], 200).repeat(rng.integers(1, 12, 200))[:200]
    seconds = np.cumsum(rng.choice([20, 20, 20, 20, 400, 900], 200))
    east = np.cumsum(pace)
    for at, by in wrong:
        east[at] += by
    trips = stitch_trips(_track(list(map(float, seconds)), list(east)), StitchRules(stop_minutes=stop_minutes)).trips
    parked = trips["parked_minutes"].drop_nulls()
    assert (parked >= stop_minutes - 1e-6).all(), parked.min()
