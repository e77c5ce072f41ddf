"""The prior from other towns: it has the moments of their results, and leaves out the town being tested."""

from __future__ import annotations

import statistics

import numpy as np
import pytest

from unmet.estimation.towns import TOWN_RESULTS, TOWNS, prior_without


@pytest.mark.parametrize("name", [None, *(town.name for town in TOWN_RESULTS)])
def test_the_prior_has_the_moments_of_the_other_towns(name):
    others = [town for town in TOWN_RESULTS if town.name != name]
    betas, ratios = np.array([town.beta for town in others]), [town.log_ratio for town in others]
    responds = np.array([1 - town.no_response for town in others])
    result = prior_without(name)
    mean = np.average(betas, weights=responds)
    assert result.crowding == pytest.approx(mean)
    variance = (responds @ (betas - mean) ** 2) / (responds.sum() - 1)
    assert result.crowding_spread == pytest.approx(max(variance**0.5, 0.5))
    clear = abs(statistics.mean(ratios)) > 2 * statistics.stdev(ratios) / len(ratios) ** 0.5
    assert result.bias == pytest.approx(statistics.mean(ratios) if clear else 0.0)
    # A new town differs from the mean by the spread between towns, and the mean itself is uncertain.
    assert result.bias_spread == pytest.approx(statistics.stdev(ratios) * (1 + 1 / len(ratios)) ** 0.5)
    assert result.no_crowding == pytest.approx((1 + sum(1 - responds)) / (2 + len(others)))


def test_leaving_out_a_town_changes_the_prior():
    assert prior_without() == TOWNS
    assert all(prior_without(town.name) != TOWNS for town in TOWN_RESULTS)
    assert prior_without("Atlantis") == TOWNS
