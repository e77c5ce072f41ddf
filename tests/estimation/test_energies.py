"""Energies of lost drivers, inferred from recorded sessions."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from statsmodels.duration.survfunc import SurvfuncRight

from tests.demand.records import MONDAY
from unmet.errors import InputError
from unmet.estimation.energies import (
    BLOCK,
    MAX_SURVIVAL,
    POOL,
    _restricted_mean,
    energy_variation,
    station_energies,
)
from unmet.simulation.battery import energy_to_taper_kwh, hours_to_full, soc_after_charging

BLOCKS = 24 // BLOCK
CAPACITY = 60.0


def energies_of(station, energy, power, hours=None, kind="seen", hour_of_day=None, **columns):
    """Energies of stations with these powers, from sessions at them."""
    station, energy = np.asarray(station, np.int64), np.asarray(energy, float)
    start = pl.Series([MONDAY] * len(station), dtype=pl.Datetime("ms", "UTC"))
    length = pl.Series(3_600_000 * np.asarray(np.ones(len(station)) if hours is None else hours))
    sessions = pl.DataFrame(
        {"start": start, "end": start + length.round().cast(pl.Int64).cast(pl.Duration("ms")), "energy_kwh": energy}
        | columns
    )
    stations = pl.DataFrame({"station_id": [f"s{i}" for i in range(len(power))], "power_kw": power})
    at = np.zeros(len(station), np.int64) if hour_of_day is None else np.asarray(hour_of_day, np.int64)
    return station_energies(station, at, sessions, stations, kind)


def test_energies_differ_by_power_and_time_of_day():
    rng = np.random.default_rng(1)
    station, hour = rng.integers(0, 2, 4000), rng.integers(0, 24, 4000)
    mean = np.where(station == 0, 10.0, 40.0) * np.where(hour < 6, 2.0, 1.0)
    result = energies_of(station, mean * rng.gamma(4, 0.25, 4000), [11.0, 50.0], hour_of_day=hour)
    by_hour = np.where(np.arange(0, 24, BLOCK) < 6, 2.0, 1.0)
    assert result == pytest.approx(np.array([10 * by_hour, 40 * by_hour]), rel=0.1)


def test_a_station_without_sessions_has_the_energies_of_its_power():
    station = np.repeat([0, 1], 300)
    result = energies_of(station, np.repeat([10.0, 40.0], 300), [11.0, 50.0, 11.0, 50.0, 50.0, None])
    assert result[:, 0] == pytest.approx([10, 40, 10, 40, 40, 25], rel=0.05)
    few = energies_of([*station, 2], [*np.repeat([10.0, 40.0], 300), 100.0], [11.0, 50.0, 11.0])
    assert 10 < few[2, 0] < 25  # one session has little weight beside those of its power
    assert (energies_of([], [], [11.0, 22.0]) == 0).all()


def test_means_are_shrunk_towards_more_general_means():
    """With n sessions of mean e in a block, the energy is (n e + POOL around) / (n + POOL)."""
    energy, hour = [10.0] * 20 + [30.0] * 5, [1] * 20 + [13] * 5
    result = energies_of([0] * 25, energy, [11.0, 11.0], hour_of_day=hour)
    overall = 350 / 25
    around = {0: (200 + POOL * overall) / (20 + POOL), 13 // BLOCK: (150 + POOL * overall) / (5 + POOL)}
    for block, value in around.items():
        n, total = (20, 200.0) if block == 0 else (5, 150.0)
        assert result[0, block] == pytest.approx((total + POOL * value) / (n + POOL))
        assert result[1, block] == pytest.approx(value)  # no session of its own
    assert result[0, 9 // BLOCK] == pytest.approx(overall)


def test_variation_is_the_standard_deviation_over_the_mean():
    energy = pl.DataFrame({"energy_kwh": [10.0, 30.0]})
    assert energy_variation(energy) == pytest.approx(0.5)
    assert energy_variation(energy * 2) == pytest.approx(0.5)
    assert energy_variation(energy.clear()) == 1.0
    assert energy_variation(pl.DataFrame({"energy_kwh": [10.0, 10.0]})) == 0.05  # never quite certain


def charged(seed, number=3000, power=22.0, least=0.1):
    """Sessions of batteries from some state of charge, for some hours: energy, hours of energy flow, kWh to 80 %."""
    rng = np.random.default_rng(seed)
    soc = rng.beta(3.4, 3.7, number)
    stay = rng.gamma(2, 22 / power, number) + least
    full = np.array([hours_to_full(s, CAPACITY, power, False) for s in soc])
    flowed = np.minimum(stay, full)
    after = [soc_after_charging(s, h, CAPACITY, power, False) for s, h in zip(soc, flowed, strict=True)]
    energy = (np.array(after) - soc) * CAPACITY
    return energy, flowed, stay, np.array([energy_to_taper_kwh(s, CAPACITY) for s in soc])


def test_the_energy_to_80_percent_is_recovered_at_stations_of_any_power():
    powers = [11.0, 50.0]
    parts = [charged(seed, power=power) for seed, power in enumerate(powers)]
    energy, flowed, stay, wanted = (np.concatenate([part[i] for part in parts]) for i in range(4))
    assert (energy < wanted - 1e-6).mean() > 0.1  # left before 80 %
    assert (stay > flowed + 1e-6).mean() > 0.1  # full
    station = np.repeat([0, 1], 3000)
    result = energies_of(station, energy, powers, flowed, "to-80")
    assert result == pytest.approx(np.full((2, BLOCKS), wanted.mean()), rel=0.05)
    assert abs(energy.mean() / wanted.mean() - 1) > 0.1
    ended = pl.Series([MONDAY + dt.timedelta(hours=h) for h in flowed], dtype=pl.Datetime("ms", "UTC"))
    idle = energies_of(station, energy, powers, stay, "to-80", charged=ended)  # cars stay on after that
    assert idle == pytest.approx(result, rel=1e-3)


def test_the_energy_to_80_percent_depends_on_the_time_of_day():
    energy, flowed, _, wanted = charged(3, 4000, 50.0, 1.5)
    night = np.arange(4000) % 2 == 0
    energy, flowed, wanted = (values * np.where(night, 1.5, 1.0) for values in (energy, flowed, wanted))
    result = energies_of(np.zeros(4000), energy, [50.0], flowed, "to-80", np.where(night, 2, 14))
    assert result[0, 0] == pytest.approx(wanted[night].mean(), rel=0.05)
    assert result[0, 14 // BLOCK] == pytest.approx(wanted[~night].mean(), rel=0.05)
    assert result[0, 9 // BLOCK] == pytest.approx(wanted.mean(), rel=0.05)


def test_if_all_leave_at_full_power_the_energy_is_that_of_the_sessions():
    hours = np.random.default_rng(4).uniform(0.2, 2, 500)
    result = energies_of(np.zeros(500), 50 * hours, [50.0], hours, "to-80")
    assert result == pytest.approx(np.full((1, BLOCKS), 50 * hours.mean()))


def test_unknown_powers_and_options_are_refused():
    with pytest.raises(InputError, match="need `power_kw`"):
        energies_of([0], [10.0], [None], kind="to-80")
    with pytest.raises(InputError, match="Unknown energies 'most': choose one of seen, to-80"):
        energies_of([0], [10.0], [11.0], kind="most")


values_and_ends = st.lists(st.tuples(st.integers(1, 40), st.booleans()), min_size=1, max_size=60)


@given(values_and_ends)
def test_the_mean_of_censored_values_is_the_area_under_the_kaplan_meier_curve(rows):
    value, censored = np.array([v for v, _ in rows], float), np.array([o for _, o in rows])
    assume(not censored.all())
    reference = SurvfuncRight(value, ~censored)
    times, alive = np.concatenate([[0.0], reference.surv_times]), np.concatenate([[1.0], reference.surv_prob])
    area = float((np.diff(np.append(times, value.max())) * alive).sum())
    assume(abs(alive[-1] - MAX_SURVIVAL) > 1e-9)
    expected = area if alive[-1] < MAX_SURVIVAL else value.mean()
    assert _restricted_mean(value, censored) == pytest.approx(expected)
