"""Points from files and frames: each is kept or set aside, whatever it holds, and batches do not matter."""

from __future__ import annotations

import datetime as dt
import gzip
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from tests.city.drives import START_MS, assert_lawful, assert_same, city, spoiled
from unmet.city.gps import StitchRules, stitch_trips
from unmet.city.gps_points import point_batches, usable_points
from unmet.errors import InputError
from unmet.tables import UTC, parse_time

QUICK = settings(deadline=None, database=None, max_examples=40)


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


def test_points_without_a_position_or_a_plausible_time_are_set_aside() -> None:
    time = pl.Series([START_MS, START_MS + 20_000, 2**62, 0]).cast(UTC)
    points = pl.DataFrame({"id": ["a", "a", "b", " "], "t": time, "lat": [55.0, 0, 1, 1], "lng": [12.0, 0, 1, 1]})
    rejected = stitch_trips(points).rejected
    assert rejected.select("line", "column").rows() == [(2, "lat"), (3, "time"), (4, "vehicle_id")]
    assert "no position" in rejected["reason"][0]


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
def test_every_row_is_kept_or_set_aside(rows: list[Any], ordered: bool, batch: int, minutes: float) -> None:
    frame = pl.DataFrame(rows, schema=dict.fromkeys(cells, pl.String))
    if ordered:
        frame = frame.sort(pl.col("time").cast(pl.Float64, strict=False))
    rules = StitchRules(stop_minutes=minutes, min_km=0.01, min_minutes=0)
    stitched = stitch_trips(frame, rules)
    assert stitched.points_in == frame.height
    assert_lawful(stitched)
    assert_same(stitched, stitch_trips(frame, rules, batch_rows=batch))


@pytest.mark.parametrize("batch", [3, 7, 1000])
def test_the_size_of_batches_does_not_matter(batch: int) -> None:
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
def test_each_line_of_a_csv_is_parsed_on_its_own(lines: list[bytes], batch: int, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("csv") / "points.csv"
    path.write_bytes(b"\n".join([b"\xef\xbb\xbfID,Timestamp,latitude,lng,note", *lines, LINES[0]]) + b"\n")
    whole = stitch_trips(path)
    assert whole.points_in == sum(bool(line.strip()) for line in lines) + 1
    assert_lawful(whole)
    assert_same(whole, stitch_trips(path, batch_rows=batch))
    shapeless = {i + 2 for i, line in enumerate(lines) if line in (LINES[3], LINES[4], LINES[5], LINES[8], LINES[10])}
    assert set(whole.rejected.filter(pl.col("column") == "")["line"]) == shapeless


def test_files_and_frames_give_the_same_trips(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"vehicle_id,time,lat,lon\n", "contains no points"),
        (b"vehicle_id,time,lat\na,0,55\n", "has no column lon"),
        (b"\x00\x01\x02\x03" * 100, "binary file"),
        (b"vehicle_id,time,lat,l\xf8n\n", "UTF-8"),
        (b"PAR1 and then nothing of the kind", "Check that the file is whole"),
        (b"\x1f\x8b and no more", "Check that the file is whole"),
        (gzip.compress(b"vehicle_id,time,lat,lon\n" + os.urandom(9999).hex().encode())[:-999], "the file is whole"),
    ],
)
def test_unreadable_files_give_one_sentence(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "points"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as error:
        stitch_trips(path)
    assert str(path) in str(error.value)


def test_wrong_arguments_are_explained(tmp_path: Path) -> None:
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


def test_lines_may_end_in_carriage_returns(tmp_path):
    rows = [f"v,2019-09-01T00:00:{i:02d}Z,55.{i:02d},12.5" for i in range(60)]
    lines = ["vehicle_id,time,lat,lon", *rows]
    frames = []
    for name, end in (("cr", "\r"), ("lf", "\n"), ("crlf", "\r\n")):
        path = tmp_path / name
        path.write_bytes(end.join(lines).encode())
        batches = list(point_batches(path, 7))
        assert all(batch.frame.height <= 7 for batch in batches)
        frames.append(pl.concat(usable_points(batch)[0] for batch in batches))
    assert frames[0].height == 60
    assert frames[0].equals(frames[1])
    assert frames[1].equals(frames[2])


def test_an_endless_line_does_not_exhaust_memory(tmp_path):
    path = tmp_path / "points.csv.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"vehicle_id,time,lat,lon\n" + bytes(5 << 20))
    batches = list(point_batches(path, 100))
    assert sum(batch.malformed.height for batch in batches) == 5
    assert all(batch.frame.is_empty() for batch in batches)
