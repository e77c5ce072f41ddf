"""Busyness: days, weeks and places differ, as in real records.

Session records vary between days more than chance and the weekday explain: the standard deviation of a city-day's
factor is 10 to 23 % in five of six public sets and 3 % in the other, that of a station-day's up to 28 %, where plugs do
not limit it (`python -m benchmarks.busyness`). Here every city-day, place-week and place-day has a lognormal factor
with mean 1.
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
        place_week: that of a week's factor of a place; weeks of seven days from the first day on.
        place_day: that of a day's factor of a place.

    Example:
        >>> calm = draw_busyness(np.random.default_rng(1), 7, 2, city_day=0.0, place_week=0.0, place_day=0.0)
        >>> float(calm.place.min()), float(calm.city.max())
        (1.0, 1.0)
    """

    def factor(spread: float, *shape: int) -> Floats:
        return np.exp(spread * rng.standard_normal(shape) - spread**2 / 2)

    weeks = factor(place_week, -(-days // 7), places)
    return Busyness(factor(city_day, days), np.repeat(weeks, 7, axis=0)[:days] * factor(place_day, days, places))
