"""Costs, limits and earnings."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from unmet.errors import InputError
from unmet.planning.costs import WEEKS_A_YEAR, Money, given_costs

SITES = pl.Series(["a", "b"])
TABLE = pl.DataFrame(
    {
        "site_id": [None, "a", "a"],
        "power_kw": [None, None, 150.0],
        "plug_cost": [1000.0, 2000.0, 30000.0],
        "site_cost": [0.0, 500.0, 9000.0],
        "max_plugs": [None, 4, 2],
        "grid_kw": [None, 100.0, None],
    }
)


def test_the_most_specific_row_applies():
    costs = given_costs(None, 0.0, TABLE, SITES)
    assert costs.of("b", 22.0, 3) == 3000.0
    assert costs.of("a", 22.0, 3) == 6500.0
    assert costs.of("a", 150.0, 1) == 39000.0
    assert costs.of("a", None, 0) == 0.0
    assert costs.limits("a", None) == (4, 100.0)
    assert costs.limits("a", 150.0) == (2, None)
    assert costs.limits("b", None) == (None, None)


def test_costs_can_be_two_numbers():
    costs = given_costs(800.0, 5000.0, None, SITES)
    assert (costs.of("a", None, 2), costs.known) == (6600.0, True)
    assert not given_costs(None, 0.0, None, SITES).known


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((-1.0, 0.0, None), "makes no sense"),
        ((None, 100.0, None), "--plug-cost"),
        ((None, 0.0, pl.DataFrame({"plug_cost": [-3.0]})), "below 0"),
        ((None, 0.0, pl.DataFrame({"site_id": ["z"], "plug_cost": [3.0]})), "'z' that is not in the records"),
        ((None, 0.0, pl.DataFrame({"site_cost": [3.0]})), "no column plug_cost"),
        ((None, 0.0, pl.DataFrame({"plug_cost": [3.0, 4.0]})), "two rows"),
    ],
)
def test_invalid_costs_are_refused(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        given_costs(*arguments, SITES)


def test_payback_and_net_present_value_follow_their_formulas():
    money = Money(price=0.5, upkeep=100.0, years=3, discount=0.1)
    weekly = np.array([100.0, 0.0])
    earned = 0.5 * 100 * WEEKS_A_YEAR - 200
    assert money.payback_years(weekly, 2, 5000.0).tolist() == [5000 / earned, np.inf]
    value = earned * (1 / 1.1 + 1 / 1.21 + 1 / 1.331) - 5000
    assert money.net_present_value(weekly, 2, 5000.0)[0] == pytest.approx(value)
    # Without a discount, the net present value is zero if the horizon equals the payback time.
    even = Money(price=0.5, years=4, discount=0.0)
    cost = 4 * 0.5 * 100 * WEEKS_A_YEAR
    assert even.net_present_value(weekly[:1], 1, cost)[0] == pytest.approx(0.0, abs=1e-6)
    assert even.payback_years(weekly[:1], 1, cost)[0] == pytest.approx(4.0)


@pytest.mark.parametrize("wrong", [{"price": 0.0}, {"upkeep": -1.0}, {"years": 0}, {"discount": -1.0}])
def test_invalid_prices_and_rates_are_refused(wrong):
    with pytest.raises(InputError):
        Money(**({"price": 0.3} | wrong)).check()
