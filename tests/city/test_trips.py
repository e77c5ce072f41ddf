"""The built-in city agrees with the known facts about the paper's data."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest

from unmet.city.build import built_in_trips
from unmet.city.places import LAND, ORIGIN, PLACES
from unmet.city.trips import VEHICLES, synthetic_trips
from unmet.geo import haversine_km


@pytest.fixture(scope="module")
def trips() -> pl.DataFrame:
    return built_in_trips(1)


@pytest.fixture(scope="module")
def local(trips) -> pl.DataFrame:
    return trips.with_columns(at=pl.col("start_time").dt.convert_time_zone("Europe/Copenhagen"))


def test_the_numbers_of_vehicles_and_trips_are_those_of_the_paper(trips):
    per_car = trips.group_by("vehicle_id").len()["len"]
    assert len(per_car) == VEHICLES == 32_664
    assert abs(trips.height / 1_550_509 - 1) < 0.03
    assert 9 <= per_car.median() <= 11


def test_trips_are_from_september_to_november(trips):
    assert trips["start_time"].min() >= dt.datetime(2019, 9, 1, tzinfo=dt.UTC)
    assert trips["end_time"].max() < dt.datetime(2019, 12, 1, tzinfo=dt.UTC)
    assert trips["start_time"].dt.date().n_unique() == 91


def test_a_trip_starts_where_the_last_one_ended(trips):
    last = pl.col("end_lat", "end_lon", "end_time").shift().over("vehicle_id").name.prefix("last_")
    chained = trips.with_columns(last).drop_nulls("last_end_lat")
    assert (chained["start_lat"] == chained["last_end_lat"]).all()
    assert (chained["start_lon"] == chained["last_end_lon"]).all()
    assert (chained["start_time"] > chained["last_end_time"]).all()
    assert (trips["end_time"] > trips["start_time"]).all()


def test_weekdays_have_a_morning_and_an_afternoon_peak(local):
    hours = local.filter(pl.col("at").dt.weekday() <= 5).group_by(pl.col("at").dt.hour()).len().sort("at")
    count = np.zeros(24)
    count[hours["at"]] = hours["len"]
    morning, noon, afternoon = count[6:9].max(), count[9:12].min(), count[14:18].max()
    assert morning > 1.3 * noon
    assert afternoon > 1.3 * noon
    assert count[0:5].sum() < 0.01 * count.sum()


def test_weekends_are_quieter_and_the_autumn_holiday_dips(local):
    daily = local.group_by(pl.col("at").dt.date()).len().with_columns(weekday=pl.col("at").dt.weekday())
    holiday = pl.col("at").is_between(dt.date(2019, 10, 14), dt.date(2019, 10, 20))
    mean = daily.group_by(weekend=pl.col("weekday") >= 6, holiday=holiday).agg(pl.col("len").mean())
    trips_a_day = {(weekend, off): n for weekend, off, n in mean.iter_rows()}
    assert trips_a_day[True, False] < 0.95 * trips_a_day[False, False]
    assert trips_a_day[False, True] < 0.85 * trips_a_day[False, False]
    assert trips_a_day[True, True] < 0.85 * trips_a_day[True, False]


def test_cars_park_for_hours_by_day_and_overnight_at_home(local):
    parked = local.with_columns(
        hours=(pl.col("start_time").shift(-1).over("vehicle_id") - pl.col("end_time")).dt.total_minutes() / 60,
        ends=pl.col("end_time").dt.convert_time_zone("Europe/Copenhagen").dt.hour(),
    ).drop_nulls("hours")
    by_day = parked.filter(pl.col("ends").is_between(9, 15))["hours"]
    evening = parked.filter(pl.col("ends").is_between(20, 23))["hours"]
    assert 0.5 < by_day.median() < 4
    assert evening.median() > 8
    # At night a car is where it was in earlier nights: at home, up to noise.
    home = parked.filter((pl.col("hours") > 6) & (pl.col("ends") >= 19))
    spread = home.group_by("vehicle_id").agg(pl.len(), pl.col("end_lat", "end_lon").median().name.prefix("home_"))
    nights = home.join(spread.filter(pl.col("len") >= 10), on="vehicle_id")
    away = haversine_km(nights["end_lat"], nights["end_lon"], nights["home_end_lat"], nights["home_end_lon"])
    assert np.mean(away < 1.1) > 0.97


def test_driven_distances_exceed_straight_lines(trips):
    crow = haversine_km(trips["start_lat"], trips["start_lon"], trips["end_lat"], trips["end_lon"])
    driven = trips["distance_km"].to_numpy()
    far = crow > 5  # so that the noise of up to 500 m at both ends matters little
    assert 1.2 < np.median(driven[far] / crow[far]) < 1.4
    assert 3 < driven.mean() < 20


def test_every_stop_has_50_to_500_metres_of_noise():
    from unmet.city.trips import _with_noise

    rng = np.random.default_rng(1)
    away = np.array([np.hypot(*_with_noise(rng, 0.0, 0.0)) for _ in range(2000)])
    assert away.min() >= 0.05
    assert away.max() <= 0.5
    assert np.mean(away) == pytest.approx(0.275, abs=0.01)


def test_trips_depend_on_the_seed_only():
    few = synthetic_trips(5, vehicles=300)
    assert few.equals(synthetic_trips(5, vehicles=300))
    assert not few.equals(synthetic_trips(6, vehicles=300))


def test_the_clock_change_shifts_trips_by_an_hour_of_utc(trips):
    # The first commuters leave between 06 and 07 on the clock: 04 and 05 UTC in summer, an hour later in winter.
    summer, winter = dt.date(2019, 10, 24), dt.date(2019, 10, 31)
    by_summer = trips.filter(pl.col("start_time").dt.date() == summer)["start_time"].dt.hour().value_counts()
    by_winter = trips.filter(pl.col("start_time").dt.date() == winter)["start_time"].dt.hour().value_counts()
    at = {"summer": dict(by_summer.iter_rows()), "winter": dict(by_winter.iter_rows())}
    assert at["summer"][4] == pytest.approx(at["winter"][5], rel=0.15)
    assert at["summer"][4] > 1.5 * at["winter"][4]


def test_places_are_on_land_and_close_to_each_other():
    assert len(PLACES) == 35
    assert sum(p.population for p in PLACES) == pytest.approx(1_750_000, rel=0.05)
    cars = sum(p.population * p.cars_per_person for p in PLACES)
    assert cars == pytest.approx(571_627, rel=0.1)
    for outline in LAND:
        assert (haversine_km(*np.array(outline).T, ORIGIN.lat, ORIGIN.lon) < 60).all()


def small(seed):
    return synthetic_trips(seed, vehicles=200)


def test_trips_are_cached_and_a_damaged_cache_is_replaced(tmp_path, monkeypatch):
    monkeypatch.setenv("UNMET_CACHE", str(tmp_path))
    monkeypatch.setattr("unmet.city.trips.synthetic_trips", small)
    made = built_in_trips(3)
    (file,) = tmp_path.iterdir()
    monkeypatch.setattr("unmet.city.trips.synthetic_trips", lambda seed: pytest.fail("the cache was not used"))
    assert built_in_trips(3).equals(made)
    file.write_bytes(b"PAR1 damaged")
    monkeypatch.setattr("unmet.city.trips.synthetic_trips", small)
    assert built_in_trips(3).equals(made)


def test_a_read_only_cache_is_not_an_error(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("UNMET_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr("unmet.city.trips.synthetic_trips", small)
    assert built_in_trips(3).height > 0
