from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare, kstest, truncnorm

from unmet.errors import InputError
from unmet.simulation.fleet import EV_MODELS, electric_vehicles, initial_soc, sample_models


def test_the_table_of_cars_is_that_of_the_paper():
    assert len(EV_MODELS) == 11
    assert sum(model.cars for model in EV_MODELS) == 50_256
    assert EV_MODELS[0] == ("Tesla Model 3 SR", 8183, 380, 57)


def test_models_follow_their_market_share():
    drawn = np.bincount(sample_models(100_000, np.random.default_rng(1)), minlength=11)
    share = np.array([model.cars for model in EV_MODELS], float)
    assert chisquare(drawn, share / share.sum() * drawn.sum()).pvalue > 0.001


def test_initial_soc_is_truncated_not_clipped():
    soc = initial_soc(50_000, np.random.default_rng(1))
    assert soc.min() > 0.2
    assert soc.max() < 1
    assert (soc == 0.2).sum() == (soc == 1.0).sum() == 0
    assert kstest(soc, truncnorm(-2, 2, loc=0.6, scale=0.2).cdf).pvalue > 0.001


def test_penetration_counts_cars_of_the_whole_city_and_is_nested():
    few, many = (electric_vehicles(p, 1000, 100, np.random.default_rng(3)) for p in (0.02, 0.07))
    assert few.sum() == 20
    assert many.sum() == 70
    assert (many | ~few).all()


@pytest.mark.parametrize(
    ("penetration", "says"),
    [(0.2, "at most 10.00%"), (0, "makes no sense"), (1.5, "makes no sense"), (1e-5, "less than one")],
)
def test_an_impossible_penetration_is_refused(penetration, says):
    with pytest.raises(InputError, match=says):
        electric_vehicles(penetration, 1000, 100, np.random.default_rng(1))
