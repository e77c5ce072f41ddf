"""Busyness: random differences between days, weeks and places, as in real records.

The number of sessions varies between days by more than chance and the weekday explain. In six public data sets, the
standard deviation of the factor of a city-day is 10 to 23 % in five and 3 % in one; for a station-day it is up to 28 %
if plugs do not limit it (`python -m benchmarks.busyness`). Here every city-day, place-week and place-day has a
lognormal factor with mean 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unmet.arrays import Floats

__all__ = ["Busyness", "draw_busyness"]


class Busyness(NamedTuple):
    """How busy days and places are, as factors with mean 1."""

    city: Floats  # (days,)
    place: Floats  # (days, places)


def draw_busyness(
    rng: np.random.Generator, days: int, places: int, *, city_day: float, place_week: float, place_day: float
) -> Busyness:
    """Draw the factors of a period.

    Args:
        rng: random number generator.
        days: length of the period.
        places: number of places.
        city_day: standard deviation of the logarithm of a day's factor in the whole city.
        place_week: the same for a place and week of seven days, counted from the first day.
        place_day: the same for a place and day.

    Example:
        >>> calm = draw_busyness(np.random.default_rng(1), 7, 2, city_day=0.0, place_week=0.0, place_day=0.0)
        >>> float(calm.place.min()), float(calm.city.max())
        (1.0, 1.0)
    """

    def factor(spread: float, *shape: int) -> Floats:
        return np.exp(spread * rng.standard_normal(shape) - spread**2 / 2)

    weeks = factor(place_week, -(-days // 7), places)
    return Busyness(factor(city_day, days), np.repeat(weeks, 7, axis=0)[:days] * factor(place_day, days, places))
