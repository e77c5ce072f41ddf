"""Validation of `model.json`: types, shapes and ranges are checked before a model is built from it."""

from __future__ import annotations

import datetime as dt
import math
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from unmet.errors import InputError, printable, shortened
from unmet.models.calibration import EDGES
from unmet.zones import checked_zone

__all__ = ["check_model_file"]

HOURS_A_WEEK = 168
MAX_HOURS = 24 * 366  # highest number of hours that a model may look back or ahead
MAX_KWH = 1e12  # highest demand of a region in an hour: more than is generated worldwide


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("it should be a finite number")
    return value


def _zone(name: str) -> str:
    try:
        return checked_zone(name)
    except InputError as error:
        raise ValueError(str(error)) from None


Number = Annotated[float, AfterValidator(_finite)]
Hours = Annotated[int, Field(ge=1, le=MAX_HOURS)]
Share = Annotated[Number, Field(ge=0, le=1)]
Level = Annotated[Number, Field(gt=0, lt=1)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")  # options that a later likelihood or backbone adds


class _Options(_Part):
    backbone: str | None = None
    likelihood: str | None = None
    levels: list[Level] = Field(min_length=1, max_length=1000)
    seeds: int = Field(1, ge=1, le=10_000)
    seed: int = Field(1, ge=0)
    lags: Hours = 1
    horizon: Hours
    features: list[str]
    target: str
    shares: list[Share] = Field(min_length=2, max_length=2)
    calibrate: bool = True
    floor: Number | None = None
    time_zone: Annotated[str, AfterValidator(_zone)]
    workers: int | None = Field(None, ge=1)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if sorted(set(self.levels)) != self.levels:
            raise ValueError("the levels of quantiles should be ascending")
        return self


class _Common(_Part):
    """Fields that every kind of model has."""

    format: int = Field(ge=1)
    unmet: str
    options: _Options
    regions: list[str] = Field(min_length=1)
    positions: list[Annotated[list[Number], Field(min_length=2, max_length=2)]] | None
    split: dict[str, str]
    notes: list[str]

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if len(set(self.regions)) != len(self.regions):
            raise ValueError("regions should have different names")
        _check_length("positions", self.positions, len(self.regions))
        times = [dt.datetime.fromisoformat(text) for text in self.split.values()]
        if any(time.tzinfo is None for time in times) or sorted(times) != times:
            raise ValueError("split should be ascending times in UTC")
        return self


class _Encoding(_Part):
    scale: list[Annotated[Number, Field(gt=0, le=MAX_KWH)]]
    marks_unknown: bool
    profile: list[list[Number]] = Field(min_length=HOURS_A_WEEK, max_length=HOURS_A_WEEK)
    extra_mean: list[Number]
    extra_spread: list[Annotated[Number, Field(gt=0)]]
    time_zone: Annotated[str, AfterValidator(_zone)]


class _Network(_Common):
    """A model that is a network."""

    seeds: list[Annotated[int, Field(ge=0)]] = Field(min_length=1, max_length=10_000)
    encoding: _Encoding
    calibration: list[list[Number]] = Field(min_length=len(EDGES), max_length=len(EDGES))
    losses: list[list[Annotated[list[float], Field(min_length=2, max_length=2)]]]  # may be NaN
    finished: bool

    @model_validator(mode="after")
    def _has_shape(self) -> Self:
        regions, features = len(self.regions), len(self.options.features)
        _check_length("losses", self.losses, len(set(self.seeds)))
        _check_length("scale", self.encoding.scale, regions)
        _check_length("extra_mean", self.encoding.extra_mean, features)
        _check_length("extra_spread", self.encoding.extra_spread, features)
        for hour in self.encoding.profile:
            _check_length("profile", hour, regions)
        for pool in self.calibration:
            _check_length("calibration", pool, len(self.options.levels))
        return self


def _check_length(name: str, values: list[Any] | None, wanted: int) -> None:
    if values is not None and len(values) != wanted:
        raise ValueError(f"{name} should have {wanted} entries, not {len(values)}")


def check_model_file(stored: Any) -> None:
    """Refuse the contents of a `model.json` that no version could have written.

    Raises:
        ValueError: with the first reason, on one line.
    """
    kind = _Common if isinstance(stored, dict) and "kind" in stored else _Network
    try:
        kind.model_validate(stored)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "model.json"
        problem = first["msg"].removeprefix("Value error, ").replace("Input should be", "it should be")
        raise ValueError(shortened(printable(f"{place}: {problem}"), 200)) from None
