"""Fleet: which cars are electric, of which model, and how full they start."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unmet.errors import InputError

__all__ = ["EV_MODELS", "EvModel", "electric_vehicles", "initial_soc", "sample_models"]


class EvModel(NamedTuple):
    """A row of the paper's table of the most popular electric cars in Denmark."""

    name: str
    cars: int  # registered in Denmark
    range_km: float
    battery_kwh: float


EV_MODELS: tuple[EvModel, ...] = (
    EvModel("Tesla Model 3 SR", 8183, 380, 57),
    EvModel("Renault Zoe", 4050, 315, 52),
    EvModel("Tesla Model S", 3915, 560, 95),
    EvModel("Volkswagen ID.3", 3353, 350, 58),
    EvModel("Nissan Leaf", 3033, 225, 37),
    EvModel("Hyundai Kona", 2948, 395, 64),
    EvModel("Volkswagen ID.4", 2473, 400, 77),
    EvModel("Kia Niro EV", 1890, 370, 64),
    EvModel("BMW i3", 1642, 235, 37.9),
    EvModel("Volkswagen e-Up!", 1370, 205, 32.3),
    EvModel("Others", 17399, 313, 60),
)


def electric_vehicles(penetration: float, cars: int, observed: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which of the `observed` vehicles are electric, at a penetration of all `cars` of the city.

    Vehicles are electrified in one random order, so that those at 1 % are also among those at 5 %.
    """
    wanted = round(penetration * cars)
    if not 0 < penetration <= 1:
        raise InputError(f"A penetration of {penetration:g} makes no sense: give a share between 0 and 1, as 0.05.")
    if wanted > observed:
        raise InputError(
            f"A penetration of {penetration:.2%} of {cars:,} cars is {wanted:,} vehicles, but trips are known of "
            f"{observed:,}: ask for at most {np.floor(observed / cars * 1e4) / 1e4:.2%}."
        )
    if wanted == 0:
        raise InputError(f"A penetration of {penetration:.4%} of {cars:,} cars is not one vehicle: ask for more.")
    return rng.permutation(observed) < wanted


def sample_models(vehicles: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Index into EV_MODELS for each vehicle, drawn by market share."""
    count = np.array([model.cars for model in EV_MODELS], float)
    return rng.choice(len(EV_MODELS), size=vehicles, p=count / count.sum())


def initial_soc(vehicles: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """SoC ~ N(0.6, 0.2) truncated to [0.2, 1]: drawn from what lies between, not clipped to it."""
    from scipy.special import ndtr, ndtri

    low, high = ndtr((0.2 - 0.6) / 0.2), ndtr((1.0 - 0.6) / 0.2)
    soc = 0.6 + 0.2 * ndtri(low + (high - low) * rng.random(vehicles))
    return np.asarray(soc, float)
