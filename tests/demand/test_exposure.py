"""Exposure and intensity against counts by brute force and against simulated truth."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.demand.records import sessions, stations, visits
from unmet.city.build import build_city
from unmet.demand.exposure import region_exposure
from unmet.demand.intensity import fit_intensity
from unmet.demand.occupancy import HOUR_MS, full_hours, peak_cars, stays_by_station
from unmet.demand.panel import build_panel
from unmet.demand.unserved import Unserved
from unmet.simulation.scenario import Scenario
from unmet.simulation.simulate import prepare, simulate

MINUTE = 60_000

stays = st.lists(st.tuples(st.integers(0, 2), st.integers(-120, 600), st.integers(0, 300)), max_size=40)
plug_counts = st.lists(st.integers(0, 3), min_size=3, max_size=3)


def arrays(rows):
    station, start, length = np.array(rows, np.int64).reshape(-1, 3).T
    return station.copy(), start * MINUTE, (start + length) * MINUTE


@given(stays, plug_counts, st.integers(1, 9))
def test_full_time_equals_a_count_minute_by_minute(rows, plugs, hours):
    station, start, end = arrays(rows)
    full = full_hours(stays_by_station(station, start, end, 3), np.array(plugs), 0, hours)
    minutes = np.arange(hours * 60) * MINUTE
    for s in range(3):
        here = station == s
        cars = ((start[here, None] <= minutes) & (end[here, None] > minutes)).sum(axis=0)
        expected = (cars >= plugs[s]).reshape(hours, 60).mean(axis=1)
        ours = np.zeros(hours)
        ours[full.hour[full.station == s]] = full.full_ms[full.station == s] / HOUR_MS
        assert np.abs(ours - expected).max() < 1e-9
    assert len(set(zip(full.station.tolist(), full.hour.tolist(), strict=True))) == len(full.station)


@given(stays)
def test_the_most_cars_at_once_equals_a_count_at_every_start(rows):
    station, start, end = arrays([(s, a, max(length, 1)) for s, a, length in rows])
    peaks = peak_cars(stays_by_station(station, start, end, 3))
    for s in range(3):
        here = station == s
        at_once = [int(((start[here] <= t) & (end[here] > t)).sum()) for t in start[here]]
        assert peaks.cars[s] == max(at_once, default=0)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 3), st.sampled_from([0.0, 0.3]))
def test_a_regions_exposure_is_the_mean_of_its_stations_weighted_by_arrivals(seed, number, regions, share):
    rng = np.random.default_rng(seed)
    rows = []
    for s in range(number):
        first, last = rng.choice([0, 20]), rng.choice([30, 45])
        rows += visits(f"s{s}", rng.gamma(1, 0.5), 1 + s % 2, first, last, seed=seed).rows
    if not rows:
        return
    plugs = 1 + np.arange(number) % 2
    known = stations(*(f"s{s}" for s in range(number)), plugs=plugs)
    unserved = Unserved(share, share)
    panel = build_panel(sessions(*rows), known, regions=str(regions), unserved=unserved)
    fitted, full = panel.exposure, panel.exposure.full
    hours = len(fitted.hour_of_week)
    there = np.repeat(fitted.open, 24, axis=1)
    rate = fitted.rate(*np.indices((number, hours)))
    assert (rate[~there] == 0).all()
    assert fitted.mean_rate() == pytest.approx(rate.sum(axis=1) / np.maximum(there.sum(axis=1), 1))
    assert (fitted.hidden <= (1 - share) ** 2 * full.full_ms / HOUR_MS + 1e-9).all()
    hidden, come = np.zeros((number, hours)), np.ones((number, hours))
    hidden[full.station, full.hour] = fitted.hidden
    come[full.station, full.hour] -= full.full_ms / HOUR_MS * (1 - fitted.crowding[full.station])
    codes = panel.regions.codes()
    ours, turnout, lost, _ = region_exposure(fitted, codes, codes.max() + 1, plugs)
    assert ours.ravel() == pytest.approx(panel.table["exposure"].to_numpy())
    assert fitted.lost.sum() == pytest.approx(lost.sum())
    for r in range(codes.max() + 1):
        here = codes == r
        weight = np.where(rate[here].sum(axis=0) > 0, rate[here], plugs[here, None])
        usual, coming, unseen = ((weight * part).sum(axis=0) for part in (1, come[here], hidden[here]))
        nobody = rate[here].sum(axis=0) == 0
        assert np.allclose(turnout[r], np.where(nobody, 1, coming / usual))
        assert np.allclose(ours[r], 1 - unseen / np.where(nobody, usual, coming))
        assert np.allclose(lost[r], (rate * hidden)[here].sum(axis=0))


def test_intensity_is_recovered_where_most_hours_are_hidden():
    rng = np.random.default_rng(5)
    shape = 1 + np.sin(np.arange(168) / 24 * 2 * np.pi)
    true = rng.gamma(2, 0.3, (60, 1)) * shape
    exposed = np.where(rng.random(true.shape) < 0.7, 13 * 0.2, 13.0)
    fitted = fit_intensity(rng.poisson(true * exposed).astype(float), exposed)
    assert fitted.per_hour.sum() == pytest.approx(true.sum(), rel=0.03)
    raw = rng.poisson(true * exposed) / exposed
    assert np.abs(fitted.per_hour - true).mean() < 0.5 * np.abs(raw - true).mean()
    assert fitted.prior > 20  # all stations have one shape here


def test_stations_that_differ_are_shrunk_less():
    rng = np.random.default_rng(6)
    true = rng.gamma(0.5, 4, (60, 168))
    fitted = fit_intensity(rng.poisson(true * 50).astype(float), np.full(true.shape, 50.0))
    assert fitted.prior < 2
    assert np.abs(fitted.per_hour - true).mean() < 0.25


def test_arrivals_on_the_hour_do_not_explode():
    # A car every weekday from 08:00 to 10:00 at one plug: there is hardly a free moment when it comes.
    seen, exposed = np.zeros((1, 168)), np.full((1, 168), 10.0)
    seen[0, 8:120:24], exposed[0, 8:120:24], exposed[0, 9:120:24] = 10, 0, 0
    lost = fit_intensity(seen, exposed).per_hour * (10 - exposed)
    assert lost.sum() < 5 * seen.sum()


def test_nobody_and_no_exposure_at_all_give_numbers():
    fitted = fit_intensity(np.zeros((3, 168)), np.zeros((3, 168)))
    assert (fitted.per_hour == 0).all()
    assert np.isfinite(fitted.prior)
    one = np.zeros((3, 168))
    one[0, 5] = 1
    assert np.isfinite(fit_intensity(one, one * 2).per_hour).all()


@pytest.fixture(scope="module")
def itinerary():
    return prepare(build_city())


@pytest.mark.parametrize(
    ("queue", "penetration"),
    [("first-come", 0.05), ("first-come", 0.03), ("three-hour", 0.05), ("gas-station", 0.05)],
)
def test_counts_weighted_by_exposure_give_the_true_arrivals_of_a_simulated_city(itinerary, queue, penetration):
    outcome = simulate(itinerary, Scenario(queue=queue, penetration=penetration))
    panel = build_panel(outcome.sessions, outcome.stations, time_zone="Europe/Copenhagen")
    lost = (outcome.arrivals["outcome"] == "lost").sum()
    estimated = panel.exposure.lost.sum()
    assert (outcome.sessions.height + estimated) / outcome.arrivals.height == pytest.approx(1, abs=0.02)
    found_none = lost + (outcome.arrivals.filter(pl.col("outcome") == "served")["waited_minutes"] > 0).sum()
    assert abs(estimated - lost) < 0.1 * found_none  # where most wait, what is lost is a small rest
    # and in the panel itself: what was seen is what would have come, times exposure
    wanted = panel.exposure.region_rate(panel.regions.codes(), 10).ravel()
    assert (wanted * panel.table["exposure"]).sum() == pytest.approx(panel.table["arrivals"].sum(), rel=0.02)
    assert wanted.sum() == pytest.approx(outcome.arrivals.height, rel=0.02)


def test_the_flag_says_what_was_lost_better_than_any_full_station_does(itinerary):
    outcome = simulate(itinerary, Scenario(queue="first-come", penetration=0.05))
    panel = build_panel(outcome.sessions, outcome.stations, time_zone="Europe/Copenhagen")
    of_station = dict(panel.regions.of_station.iter_rows())
    lost = outcome.arrivals.filter(pl.col("outcome") == "lost").with_columns(
        unique_id=pl.col("station_id").replace_strict(of_station), ds=pl.col("arrival").dt.truncate("1h")
    )
    truth = panel.table.join(lost.select("unique_id", "ds", really=True).unique(), on=["unique_id", "ds"], how="left")
    really = truth["really"].fill_null(value=False)

    def agreement(flag):
        return float((flag == really).mean())

    ours, any_full = agreement(truth["censored"]), agreement(truth["exposure"] < 1)
    assert ours > 0.85
    assert ours > any_full + 0.1
