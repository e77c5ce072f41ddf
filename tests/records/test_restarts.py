"""Sessions that a driver breaks off and starts again are one arrival."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmet.records.restarts import join_restarts

DAY = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)


def sessions(*rows: tuple[str | None, str, str | None, float, float, float], **more: list[str | None]) -> pl.DataFrame:
    """Rows of user, station, plug, start and end in minutes, and energy."""
    users, stations, plugs, starts, ends, energies = zip(*rows, strict=True)
    frame = pl.DataFrame(
        {
            "session_id": [str(number) for number in range(len(rows))],
            "station_id": stations,
            "start": [DAY + dt.timedelta(minutes=start) for start in starts],
            "end": [DAY + dt.timedelta(minutes=end) for end in ends],
            "energy_kwh": [float(energy) for energy in energies],
            "plug_id": pl.Series(plugs, dtype=pl.String),
            "user_id": pl.Series(users, dtype=pl.String),
        }
    )
    return frame.with_columns(pl.Series(name, values, dtype=pl.String) for name, values in more.items())


def test_a_restart_is_joined_to_its_session():
    frame = sessions(("me", "A", "1", 0, 10, 1), ("me", "A", "1", 12, 60, 7), ("me", "A", "1", 300, 310, 2))
    joined, count = join_restarts(frame, 15)
    assert count == 1
    assert joined["session_id"].to_list() == ["0", "2"]
    assert joined["energy_kwh"].to_list() == [8, 2]
    assert joined["end"][0] == frame["end"][1]


def test_restarts_follow_in_chains_and_later_ones_are_new_arrivals():
    chain = sessions(*(("me", "A", "1", 20 * n, 20 * n + 10, 1) for n in range(5)))
    assert join_restarts(chain, 10)[1] == 4
    assert join_restarts(chain, 9.9)[1] == 0
    assert join_restarts(chain, 0)[1] == 0


@pytest.mark.parametrize(
    "user", [None, "", " ", "Sconosciuto", "UNKNOWN", "unknown user"[:7], "N/A", "-", "0000000000", "Ad-hoc"]
)
def test_nobody_does_not_restart(user):
    frame = sessions((user, "A", "1", 0, 10, 1), (user, "A", "1", 12, 60, 7))
    joined, count = join_restarts(frame, 15)
    assert count == 0
    assert joined.equals(frame)


def test_other_users_stations_and_times_stay_apart():
    assert join_restarts(sessions(("me", "A", "1", 0, 10, 1), ("you", "A", "1", 12, 60, 7)), 15)[1] == 0
    assert join_restarts(sessions(("me", "A", "1", 0, 10, 1), ("me", "B", "1", 12, 60, 7)), 15)[1] == 0


def test_a_car_that_moves_to_another_plug_is_the_same_car():
    moved = sessions(("me", "A", "1", 0, 10, 1), ("me", "A", "2", 12, 60, 7))
    joined, count = join_restarts(moved, 15)
    assert count == 1
    assert joined["plug_id"].to_list() == ["1"]


def test_a_user_with_two_cars_is_followed_plug_by_plug():
    two = sessions(
        ("me", "A", "1", 0, 100, 1),
        ("me", "A", "2", 50, 120, 1),
        ("me", "A", "1", 105, 150, 1),
        ("me", "A", "2", 130, 140, 1),
    )
    for frame in (two, two.with_columns(pl.lit(None, pl.String).alias("post_id"))):
        joined, count = join_restarts(frame, 15)
        assert count == 2
    assert joined["end"].to_list() == [two["end"][2], two["end"][3]]


def test_an_id_of_many_cars_at_once_is_nobody():
    fleet = sessions(*(("card", station, "1", 0, 10, 1) for station in "ABCD"), ("card", "A", "1", 12, 20, 1))
    assert join_restarts(fleet, 15)[1] == 0
    assert join_restarts(fleet.filter(pl.col("station_id") != "D"), 15)[1] == 1


def test_sockets_of_one_post_are_one_place():
    rows = ("me", "A", "1", 0, 100, 1), ("me", "A", "2", 50, 120, 1), ("me", "A", "1", 125, 150, 1)
    assert join_restarts(sessions(*rows, post_id=["P", "P", "P"]), 15)[1] == 2
    assert join_restarts(sessions(*rows, post_id=[None, None, None]), 15)[1] == 0


def test_only_the_needed_columns_are_needed():
    frame = sessions(("7", "A", "1", 12, 60, 7), ("7", "A", "1", 0, 10, 1)).drop("session_id", "plug_id")
    frame = frame.with_columns(pl.col("user_id").cast(pl.Int64), pl.col("start", "end").dt.replace_time_zone(None))
    for table in (frame, frame.to_pandas()):
        joined, count = join_restarts(table, 15)
        assert count == 1
        assert joined["energy_kwh"].to_list() == [8]
        assert joined["end"].max() == frame["end"].max()
    assert join_restarts(frame.clear(), 15)[1] == 0


starts = st.integers(0, 300)
row = st.tuples(st.sampled_from(["me", "you", None]), st.sampled_from("AB"), st.sampled_from(["1", "2", None]), starts)


@given(st.lists(st.tuples(row, st.integers(0, 60), st.integers(0, 9)), min_size=1, max_size=30), st.integers(0, 30))
def test_energy_and_time_are_kept(drawn, minutes):
    frame = sessions(*((*who, who[3] + length, energy) for who, length, energy in drawn)).sort(
        "start", maintain_order=True
    )
    joined, count = join_restarts(frame, minutes)
    assert joined.height + count == frame.height
    assert joined["energy_kwh"].sum() == pytest.approx(frame["energy_kwh"].sum())
    assert joined["session_id"].is_in(frame["session_id"].implode()).all()
    assert (joined["end"] >= joined["start"]).all()
    assert joined["end"].max() == frame["end"].max()
    assert joined["start"].is_sorted()
    unnamed = frame.filter(pl.col("user_id").is_null())
    assert joined.filter(pl.col("user_id").is_null()).equals(unnamed)
