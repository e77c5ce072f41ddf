"""Encoding: conversion of series to the tensors that networks read, scaled by the training part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unmet.arrays import Floats
from unmet.demand.calendar import HOURS_A_WEEK
from unmet.models.backbones.base import Inputs, Shape
from unmet.models.likelihoods.base import Observation
from unmet.models.series import PanelSeries

__all__ = ["Data", "Encoding"]


class Data(NamedTuple):
    """A series as tensors, in units of each region's scale."""

    values: Tensor  # (hours, nodes, features), what is known at the end of each hour
    week: Tensor  # (hours,), hour of the week of the next hour
    y: Tensor  # (hours, nodes), target; 0 if missing
    lower: Tensor  # (hours, nodes)
    upper: Tensor  # (hours, nodes)
    weight: Tensor  # (hours, nodes), 0 if the target is missing, else 1

    def inputs(self, starts: Tensor, length: int) -> Inputs:
        """`length` hours from each start, as a batch."""
        hours = starts[None] + torch.arange(length, device=starts.device)[:, None]
        return Inputs(self.values[hours], self.week[hours])

    def observations(self, hours: Tensor) -> tuple[Observation, Tensor]:
        """Observations at these hours (hours, batch), and their weights; (hours, batch, nodes)."""
        return Observation(self.y[hours], self.lower[hours], self.upper[hours]), self.weight[hours]

    def longer(self, hours: int) -> Data:
        """The data with the last hour repeated `hours` times, so that forecasts from late origins have inputs."""
        return Data(*(torch.cat([part, part[-1:].expand(hours, *part.shape[1:])]) for part in self))

    def to(self, device: str) -> Data:
        """The same tensors on a device."""
        return Data(*(part.to(device) for part in self))


@dataclass(frozen=True, slots=True)
class Encoding:
    """Converts series to tensors.

    Features of an hour, in order: demand over the region's scale; if `marks_unknown`, whether it is known; then sine
    and cosine of hour and weekday of the next hour, and its extra columns, standardised.
    """

    scale: Floats  # (nodes,), largest observed demand of the training part [kWh]
    marks_unknown: bool  # whether a feature says if demand is known, which forecasts beyond one hour need
    profile: Floats  # (168, nodes), replaces missing hours if unknown hours are not marked
    extra_mean: Floats  # (columns,)
    extra_spread: Floats
    time_zone: str

    @classmethod
    def of(cls, series: PanelSeries, train_hours: int, time_zone: str, *, marks_unknown: bool) -> Encoding:
        """Learn scales from the first hours of a series."""
        demand, extras = series.demand[:train_hours], series.extras[:train_hours]
        largest = np.where(np.isnan(demand), 0, demand).max(axis=0, initial=0)
        scale = np.where(largest > 0, largest, 1.0)
        week = series.week(time_zone)[:train_hours]
        profile = np.tile(_mean(demand / scale, (0,)), (HOURS_A_WEEK, 1))
        for hour in range(HOURS_A_WEEK):
            rows = demand[week == hour] / scale
            profile[hour] = np.where(np.isfinite(rows).any(axis=0), _mean(rows, (0,)), profile[hour])
        mean = _mean(extras, (0, 1))
        spread = np.sqrt(_mean((extras - mean) ** 2, (0, 1)))
        # A constant column has a spread of rounding errors only, and is not scaled.
        return cls(scale, marks_unknown, profile, mean, np.where(spread > 1e-9 * np.abs(mean), spread, 1.0), time_zone)

    def shape(self, lags: int) -> Shape:
        """The sizes of the inputs of a backbone."""
        past = 1 + self.marks_unknown
        return Shape(len(self.scale), past + CALENDAR + len(self.extra_mean), past, lags)

    def encode(self, series: PanelSeries, ahead: Floats | None = None) -> Data:
        """The series as tensors, followed by hours for which only the extra columns `ahead` are known.

        `ahead` has shape (hours, nodes, columns), with no columns if there are no extras.
        """
        ahead = np.empty((0, *series.extras.shape[1:])) if ahead is None else ahead
        week = series.week(self.time_zone, len(ahead) + 1)
        gap = np.full((len(ahead), len(series.names)), np.nan)
        demand = np.concatenate([series.demand, gap]) / self.scale
        known = np.isfinite(demand)
        filled = np.where(known, demand, 0.0 if self.marks_unknown else self.profile[week[:-1]])
        next_hour = np.concatenate([series.extras, ahead, np.full((1, *series.extras.shape[1:]), np.nan)])[1:]
        extras = (next_hour - self.extra_mean) / self.extra_spread
        past = [filled, known] if self.marks_unknown else [filled]
        calendar = np.broadcast_to(_calendar(week[1:])[:, None], (*demand.shape, CALENDAR))
        values = np.concatenate([np.stack(past, -1), calendar, np.nan_to_num(extras, nan=0.0)], -1)
        target, lower, upper = (
            np.concatenate([part, gap]) / self.scale for part in (series.target, series.lower, series.upper)
        )
        weight = np.isfinite(target)
        return Data(
            values=_float(values),
            week=torch.from_numpy(week[1:].astype(np.int64)),
            y=_float(np.where(weight, target, 0)),
            lower=_float(np.where(weight, lower, 0)),
            upper=_float(np.where(weight, upper, 0)),
            weight=_float(weight),
        )

    def blank(self, values: Tensor, origin: Tensor) -> Tensor:
        """Values (hours, batch, nodes, features) without demand from the hour `origin` (batch,) on."""
        hour = torch.arange(len(values), device=values.device)[:, None]
        is_known = (hour < origin[None]).to(values.dtype)[:, :, None, None]
        past = self.shape(1).past_features
        return torch.cat([values[..., :past] * is_known, values[..., past:]], -1)


CALENDAR = 4  # sine and cosine of hour and weekday


def _calendar(week: NDArray[np.int64]) -> Floats:
    hour, day = 2 * np.pi * (week % 24) / 24, 2 * np.pi * (week // 24) / 7
    return np.stack([np.sin(hour), np.cos(hour), np.sin(day), np.cos(day)], -1)


def _mean(values: Floats, axis: tuple[int, ...]) -> Floats:
    """Mean of the finite values; 0 if there are none."""
    finite = np.isfinite(values)
    total = np.where(finite, values, 0).sum(axis=axis)
    return np.asarray(total / np.maximum(finite.sum(axis=axis), 1))


def _float(values: NDArray[np.generic]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values, np.float32))
