"""Errors of single sites: found where there are any, and those of other towns where the records say nothing."""

from __future__ import annotations

import numpy as np
import pytest

from unmet.estimation.site_errors import SCALE, site_error

NONE = np.empty(0)


def sites(error: float, number: int, mean: float = 200.0, variance: float = 0.0, common: float = 1.0, seed: int = 1):
    """Recorded and estimated arrivals of sites whose estimates err independently, and all by a common factor."""
    rng = np.random.default_rng(seed)
    estimated = rng.uniform(0.5, 1.5, number) * mean
    own = rng.gamma(1 / max(error**2, 1e-9), max(error**2, 1e-9), number)
    return rng.poisson(estimated * own), estimated * common, np.full(number, variance)


@pytest.mark.parametrize("error", [0.15, 0.3, 0.6])
def test_the_error_of_many_sites_is_found(error):
    assert site_error(*sites(error, 300)) == pytest.approx(error, rel=0.15)


def test_sites_without_an_error_have_nearly_none():
    assert site_error(*sites(0.0, 60)) < 0.04


def test_what_the_posterior_explains_is_no_error():
    """Where the spread of the sites is that of their posterior, nothing is left for the error."""
    recorded, estimated, _ = sites(0.3, 100)
    assert site_error(recorded, estimated, np.full(100, 0.3**2)) < 0.12


def test_an_error_that_all_sites_share_is_none_of_single_sites():
    assert site_error(*sites(0.2, 50, common=1.7)) == pytest.approx(site_error(*sites(0.2, 50)), rel=0.02)


def test_a_single_site_says_nothing():
    """The prior is half-normal, whose root mean square is its scale (slightly less on a grid that ends at 1)."""
    prior = site_error(NONE.astype(int), NONE, NONE)
    assert prior == pytest.approx(SCALE, rel=0.02)
    for recorded in (20, 200, 2000):
        assert site_error(np.array([recorded]), np.array([100.0]), np.zeros(1)) == pytest.approx(prior, rel=0.05)


def test_sites_without_an_estimate_do_not_count():
    recorded, estimated, variance = sites(0.3, 40)
    more = np.append(recorded, 5), np.append(estimated, 0.0), np.append(variance, np.nan)
    assert site_error(*more) == site_error(recorded, estimated, variance)
