"""The unit of energies is the one under which powers are possible."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmet.records.units import MAX_KW, MAX_KWH, choose_unit


def charged(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Energies [kWh] and hours of ordinary sessions."""
    random = np.random.default_rng(seed)
    hours = random.uniform(0.5, 8, rows)
    return np.minimum(random.gamma(2, 6, rows), 22 * hours), hours


@pytest.mark.parametrize(("true", "suggested"), [(1.0, 1.0), (0.001, 1.0), (0.001, 0.001), (1.0, 0.001)])
def test_the_unit_is_found_whatever_the_name_says(true, suggested):
    energy, hours = charged(200)
    unit = choose_unit(pl.Series(energy / true), pl.Series(hours), suggested, is_settled=False)
    assert unit.factor == true
    assert (unit.note is None) == (true == suggested)


def test_the_user_is_believed_and_told():
    energy, hours = charged(200)
    unit = choose_unit(pl.Series(energy * 1000), pl.Series(hours), 1.0, is_settled=True)
    assert unit.factor == 1
    assert "energy_factor" in (unit.note or "")


def test_blocks_of_rows_in_watt_hours():
    energy, hours = charged(300)
    written = energy.copy()
    written[100:200] *= 1000
    unit = choose_unit(pl.Series(written), pl.Series(hours), 1.0, is_settled=False)
    assert isinstance(unit.factor, pl.Series)
    # At the edge of a block a row may fit both units.
    assert np.isclose(unit.factor.to_numpy() * written, energy).mean() > 0.99


@pytest.mark.parametrize("mostly_wh", [False, True])
def test_chargers_in_watt_hours_among_others(mostly_wh):
    energy, hours = charged(300)
    charger = pl.Series([f"C{place % 5}" for place in range(300)])
    in_wh = (charger == "C2").to_numpy() ^ mostly_wh
    written = np.where(in_wh, energy * 1000, energy)
    unit = choose_unit(pl.Series(written), pl.Series(hours), 1.0, is_settled=False, chargers=[charger])
    assert isinstance(unit.factor, pl.Series)
    assert np.allclose(unit.factor.to_numpy() * written, energy)
    assert "charger" in (unit.note or "")


def test_units_mixed_row_by_row_are_not_guessed():
    energy, hours = charged(300)
    written = np.where(np.arange(300) % 3 == 0, energy * 1000, energy)
    charger = pl.Series([f"C{place % 5}" for place in range(300)])
    unit = choose_unit(pl.Series(written), pl.Series(hours), 1.0, is_settled=False, chargers=[charger])
    assert unit.factor == 1
    assert "without a pattern" in (unit.note or "")


def test_a_charger_with_next_to_nothing_in_watt_hours_is_named():
    energy, hours = charged(300)
    charger = pl.Series([f"C{place % 5}" for place in range(300)])
    written = np.where((charger == "C2").to_numpy(), energy, energy * 1000)
    unit = choose_unit(pl.Series(written), pl.Series(hours), 0.001, is_settled=False, chargers=[charger])
    assert unit.factor == 0.001
    assert "(for example C2)" in (unit.note or "")


def test_a_few_odd_rows_change_nothing():
    energy, hours = charged(300)
    written = energy.copy()
    written[[10, 100, 200, 250]] = 5e6
    assert choose_unit(pl.Series(written), pl.Series(hours), 1.0, is_settled=False).factor == 1


@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 100)), min_size=3, max_size=40), st.sampled_from([1.0, 0.001])
)
def test_no_unit_is_chosen_that_makes_more_rows_impossible(rows, suggested):
    energy, hours = (pl.Series(column) for column in zip(*rows, strict=True))
    unit = choose_unit(energy, hours, suggested, is_settled=False)

    def impossible(factor: float | pl.Series) -> int:
        kwh = energy * factor
        return int(((hours > 0) & ((kwh > MAX_KWH) | ((kwh > 1) & (kwh > MAX_KW * hours)))).sum())

    assert impossible(unit.factor) <= impossible(suggested) + 0.12 * len(rows)


def test_a_station_of_failed_sessions_is_no_station_in_kwh():
    energies = [8000.0] * 40 + [6758.0, 3932.0, 91.0, 1.0, 2.0, 5.0, 3.0, 40.0, 12.0, 7.0, 9.0, 1.0]
    chargers = [pl.Series(["A"] * 40 + ["B"] * 12)]
    unit = choose_unit(pl.Series(energies), pl.Series([2.0] * 52), 0.001, is_settled=False, chargers=chargers)
    assert unit.note is None
    in_kwh = [*energies[:40], 6.7, 3.9, 9.1, 1.0, 2.0, 5.0, 3.0, 40.0, 12.0, 7.0, 9.0, 1.0]
    unit = choose_unit(pl.Series(in_kwh), pl.Series([2.0] * 52), 0.001, is_settled=False, chargers=chargers)
    assert "(for example B)" in (unit.note or "")


def test_shares_and_numbers_are_written_for_people():
    unit = choose_unit(pl.Series([4140.0] * 9), pl.Series([1.0] * 9), 1.0, is_settled=False)
    assert "100 % of them would be impossible, and the median 4,140 kWh" in (unit.note or "")
    assert str(unit.reading) == "Energies are read in Wh (9 above 0; too large for the time plugged in: 0)."
