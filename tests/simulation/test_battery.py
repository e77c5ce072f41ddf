from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmet.simulation.battery import (
    energy_to_taper_kwh,
    hours_to_full,
    hours_to_taper,
    soc_after_charging,
    soc_after_trip,
)

socs = st.floats(0, 1)
hours = st.floats(0, 48)
capacities = st.floats(20, 120)
powers = st.floats(2, 350)


def test_a_trip_uses_its_share_of_the_range_and_never_more_than_is_left():
    assert soc_after_trip(0.5, 38, 380) == pytest.approx(0.4)
    assert soc_after_trip(0.05, 38, 380) == 0


def test_charging_follows_an_example_by_hand():
    # A Tesla Model 3 (57 kWh) at 22 kW: 80 % after 0.8 * 57 / 22 hours, then a quarter of the power.
    t80 = hours_to_taper(0.0, 57, 22, False)
    assert t80 == pytest.approx(0.8 * 57 / 22)
    assert soc_after_charging(0.0, t80, 57, 22, False) == pytest.approx(0.8)
    assert soc_after_charging(0.0, t80 + 1, 57, 22, False) == pytest.approx(0.8 + 0.25 * 22 / 57)
    assert soc_after_charging(0.0, hours_to_full(0.0, 57, 22, False), 57, 22, False) == pytest.approx(1)


@given(socs, hours, hours, capacities, powers)
def test_the_curve_is_continuous_monotone_and_additive_in_time(soc, first, second, capacity, power):
    whole = soc_after_charging(soc, first + second, capacity, power, False)
    half = soc_after_charging(soc, first, capacity, power, False)
    assert soc <= half <= whole <= 1
    assert soc_after_charging(half, second, capacity, power, False) == pytest.approx(whole, abs=1e-9)
    assert (whole - soc) * capacity <= power * (first + second) + 1e-9


@given(socs, capacities, powers)
def test_time_to_80_percent_delivers_the_energy_that_a_lost_driver_wanted(soc, capacity, power):
    t80 = hours_to_taper(soc, capacity, power, False)
    delivered = (soc_after_charging(soc, t80, capacity, power, False) - soc) * capacity
    assert delivered == pytest.approx(energy_to_taper_kwh(soc, capacity), abs=1e-9)


@given(socs, hours, capacities, powers)
def test_the_literal_curve_is_the_printed_formula_but_never_discharges(soc, time, capacity, power):
    t80 = 0.8 * (capacity - soc * capacity) / power
    printed = soc + time * power / capacity if time < t80 else 0.8 + 0.25 * (time - t80) * power / capacity
    expected = min(max(printed, soc), 1)
    assert soc_after_charging(soc, time, capacity, power, True) == pytest.approx(expected, abs=1e-9)


def test_the_literal_curve_falls_back_to_80_percent_and_the_continuous_one_does_not():
    just_before, at = 0.8 * 0.5 * 60 / 10 - 1e-9, 0.8 * 0.5 * 60 / 10
    assert soc_after_charging(0.5, just_before, 60, 10, True) == pytest.approx(0.9)
    assert soc_after_charging(0.5, at, 60, 10, True) == pytest.approx(0.8)
