"""The fleet: which cars are electric, their models, their initial charge, and charging at home."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from unmet.errors import InputError, refusal
from unmet.files import read_yaml_lines

__all__ = [
    "DENMARK", "EV_MODELS", "EvModel", "Fleet", "FleetModel", "InitialCharge", "electric_vehicles", "home_chargers",
    "initial_soc", "read_fleet", "sample_models",
]  # fmt: skip


class EvModel(NamedTuple):
    """A row of the paper's table of the most popular electric cars in Denmark."""

    name: str
    cars: int  # number registered in Denmark
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


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class FleetModel(_Part):
    """A car model of a fleet."""

    name: str
    share: float = Field(gt=0, description="share of the fleet, or number of cars: only ratios matter")
    range_km: float = Field(gt=0)
    battery_kwh: float = Field(gt=0)


class InitialCharge(_Part):
    """The state of charge at the start: normal, truncated to an interval."""

    mean: float = Field(0.6, ge=0, le=1)
    spread: float = Field(0.2, gt=0, description="standard deviation before truncation")
    least: float = Field(0.2, ge=0, lt=1, description="lower end of the interval")
    most: float = Field(1.0, gt=0, le=1, description="upper end of the interval")


class Fleet(_Part):
    """The electric cars of a city. `--fleet` reads one from a file."""

    models: tuple[FleetModel, ...] = Field(min_length=1)
    initial_soc: InitialCharge = InitialCharge()
    home_charging: float = Field(0.0, ge=0, le=1, description="share of the cars with a plug at home")
    home_power_kw: float = Field(7.4, gt=0, description="power of that plug")


DENMARK = Fleet(
    models=tuple(
        FleetModel(name=m.name, share=m.cars, range_km=m.range_km, battery_kwh=m.battery_kwh) for m in EV_MODELS
    )
)
"""The paper's fleet: no charging at home."""


def read_fleet(path: Path) -> Fleet:
    """Read a fleet: YAML with the fields of `Fleet`, or a CSV table of models (name, share, range_km, battery_kwh)."""
    values: dict[str, Any]
    if path.suffix == ".csv":
        import polars as pl

        try:
            values = {"models": pl.read_csv(path).to_dicts()}
        except OSError as error:
            raise InputError(f"Cannot read the fleet {path}: {error.strerror}.") from None
        except pl.exceptions.PolarsError:
            raise InputError(f"{path} is not a CSV table of models: see `unmet simulate --help`.") from None
    else:
        values = read_yaml_lines(path, "fleet", "`models:`, with name, share, range_km and battery_kwh each")
    try:
        return Fleet(**values)
    except ValidationError as error:
        known = ", ".join(Fleet.model_fields)
        raise refusal(error, f"The fleet {path}", f"has no field {{name}}: the fields are {known}") from None


def home_chargers(vehicles: int, fleet: Fleet, rng: np.random.Generator) -> NDArray[np.float64]:
    """Power of each vehicle's plug at home [kW], 0 for vehicles without one."""
    return np.where(rng.random(vehicles) < fleet.home_charging, fleet.home_power_kw, 0.0)


def electric_vehicles(penetration: float, cars: int, observed: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which of the `observed` vehicles are electric, at a penetration of all `cars` of the city.

    Vehicles become electric in one random order, so that all electric vehicles at 1 % are also electric at 5 %.
    """
    n_electric = round(penetration * cars)
    if not 0 < penetration <= 1:
        raise InputError(f"A penetration of {penetration:g} makes no sense: give one between 0 and 1, such as 0.05.")
    if n_electric > observed:
        raise InputError(
            f"A penetration of {penetration:.2%} of {cars:,} cars is {n_electric:,} vehicles, but only {observed:,} "
            f"have known trips: ask for at most {np.floor(observed / cars * 1e4) / 1e4:.2%}."
        )
    if n_electric == 0:
        raise InputError(f"A penetration of {penetration:.4%} of {cars:,} cars is less than one vehicle: ask for more.")
    return rng.permutation(observed) < n_electric


def sample_models(vehicles: int, rng: np.random.Generator, fleet: Fleet = DENMARK) -> NDArray[np.int64]:
    """Index of the model of each vehicle, drawn by market share."""
    share = np.array([model.share for model in fleet.models], float)
    return rng.choice(len(fleet.models), size=vehicles, p=share / share.sum())


def initial_soc(vehicles: int, rng: np.random.Generator, fleet: Fleet = DENMARK) -> NDArray[np.float64]:
    """SoC ~ N(mean, spread) truncated to [least, most] (not clipped)."""
    from scipy.special import ndtr, ndtri

    charge = fleet.initial_soc
    if charge.least >= charge.most:
        raise InputError(f"An initial charge from {charge.least:g} to {charge.most:g} makes no sense: swap the two.")
    # Inverse of the distribution function, at uniform draws between its values at both ends.
    low, high = (ndtr((end - charge.mean) / charge.spread) for end in (charge.least, charge.most))
    soc = charge.mean + charge.spread * ndtri(low + (high - low) * rng.random(vehicles))
    return np.asarray(np.clip(soc, charge.least, charge.most), float)
