"""Draws of lost demand: how a panel stores them, and how models learn from them.

`unmet.LostDemand` writes two columns into a panel. `lost_draws` holds some posterior draws of the energy lost in each
region-hour; observed demand plus a draw is a draw of true demand. `lost_kwh_before` is the expected loss given what was
known before that day, so that it can be used in lags without leaking the future.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.arrays import Floats
from unmet.demand.calendar import HOURS_A_DAY
from unmet.errors import InputError

__all__ = ["BEFORE", "DRAWS", "TrueDemand", "draw_by_day", "draw_cells", "read_draws"]

Draws = NDArray[np.float32]

BEFORE, DRAWS = "lost_kwh_before", "lost_draws"
REMEDY = (
    "make the panel with `unmet panel` or `unmet recover` (in Python, `LostDemand().fit(panel).panel_table()`), or fit "
    "with --likelihood quantile, which forecasts observed demand."
)
SEED = 0  # seed of the draw that is used for early stopping and calibration


def read_draws(frame: pl.DataFrame) -> Draws:
    """The draws of lost energy in each row of a panel [kWh], (rows, draws); 0 if they are missing."""
    missing = [name for name in (BEFORE, DRAWS) if name not in frame.columns]
    if missing:
        raise InputError(f"The panel has no column {', '.join(missing)}, which the likelihood reads: {REMEDY}")
    column = frame[DRAWS]
    if not isinstance(column.dtype, pl.Array | pl.List) or not column.dtype.inner.is_numeric():
        raise InputError(f"{DRAWS} holds {column.dtype}, not lists of numbers, which a CSV file cannot carry: {REMEDY}")
    lists = column.cast(pl.List(pl.Float32))
    sizes = lists.drop_nulls().list.len().unique()
    if sizes.is_empty():
        return np.zeros((len(column), 1), np.float32)
    if len(sizes) > 1 or sizes[0] == 0:
        raise InputError(f"{DRAWS} must hold the same number of draws in every row, at least one: {REMEDY}")
    draws = np.zeros((len(column), int(sizes[0])), np.float32)
    present = lists.is_not_null().to_numpy()
    draws[present] = lists.drop_nulls().explode().to_numpy().reshape(-1, draws.shape[1])
    draws[np.isnan(draws)] = 0
    if not np.isfinite(draws).all() or draws.min(initial=0) < 0:
        raise InputError(f"{DRAWS} must hold energies of 0 kWh or more: {REMEDY}")
    return draws


def draw_cells(draws: Draws, rng: np.random.Generator) -> Floats:
    """One draw of every region-hour [kWh], (hours, regions), chosen independently for each of them.

    The loss of a model is a sum over region-hours, so its expectation depends only on the distribution of each one:
    choosing the same draw for all would give the same quantiles in the long run. But region-hours of a draw share some
    errors (of the waiting share, for example), which would move all targets of an epoch up or down together.
    Independent choices average this out within every epoch, while each quantile still learns the whole spread,
    including the shared errors, as coverage requires.
    """
    chosen = rng.integers(draws.shape[-1], size=(*draws.shape[:-1], 1))
    return np.take_along_axis(draws, chosen, axis=-1)[..., 0].astype(np.float64)


def draw_by_day(draws: Draws, first_hour: int) -> Floats:
    """One draw of every region-hour [kWh], always the same one.

    The choice depends only on the day, so that longer or shorter panels give the same draws. `first_hour` is the number
    of hours from 1970 to the first one.
    """
    day = (first_hour + np.arange(len(draws))) // HOURS_A_DAY
    parts = [draws[:0, :, 0].astype(np.float64)]
    for date in np.unique(day):
        of_day = np.flatnonzero(day == date)
        # Choices are made for all 24 hours, so that they are the same if the panel has only some of them.
        whole = np.zeros((HOURS_A_DAY, *draws.shape[1:]), np.float32)
        at = (first_hour + of_day) % HOURS_A_DAY
        whole[at] = draws[of_day]
        parts.append(draw_cells(whole, np.random.default_rng([SEED, int(date)]))[at])
    return np.concatenate(parts)


@dataclass(frozen=True, slots=True)
class TrueDemand:
    """Draws of true demand: observed demand plus a draw of lost demand."""

    demand: Floats  # (hours, regions), observed [kWh], 0 if missing
    lost: Draws  # (hours, regions, draws) [kWh]
    scale: Floats  # (regions,), scale of each region [kWh]

    def draw(self, rng: np.random.Generator) -> Floats:
        """One draw in units of each region's scale, (hours, regions)."""
        return np.asarray((self.demand + draw_cells(self.lost, rng)) / self.scale)
