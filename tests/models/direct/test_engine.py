"""The steps of a direct forecaster."""

from __future__ import annotations

import numpy as np
import pytest

from unmet.models.direct.engine import PastForecasts
from unmet.models.direct.moving import MODEL_MEMORY


def test_forecasts_since_the_last_fit_are_those_of_the_present_members():
    """Weights halve over the window, so its later half has (1 - 2^-1/2) / (1 - 1/2) of them."""
    hours = MODEL_MEMORY
    demand, expected = np.zeros((hours, 1)), np.zeros((1, 1, hours, 1))

    def current(fitted: int) -> float:
        return PastForecasts(10_000, expected, demand, fitted).current

    assert current(10_000) == current(12_000) == 0.0
    assert current(10_000 - hours) == current(0) == pytest.approx(1.0)
    assert current(10_000 - hours // 2) == pytest.approx((1 - 2**-0.5) / (1 - 2**-1), rel=1e-3)
