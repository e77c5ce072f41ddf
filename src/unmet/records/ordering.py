"""Fast sorting by names: names become numbers, and number and row become one sort key."""

from __future__ import annotations

import numpy as np
import polars as pl

from unmet.arrays import Integers

__all__ = ["numbers_of", "stable_order"]


def numbers_of(names: pl.Series) -> Integers:
    """A number from 0 for each name; -1 for null."""
    codes = names.cast(pl.String).cast(pl.Categorical).to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
    # Polars may share categories with other columns. Numbers far above the number of rows would make large arrays.
    if len(codes) and codes.max() > 4 * len(codes):
        codes = np.unique(codes, return_inverse=True)[1] - int(codes.min() < 0)
    return codes


def stable_order(key: Integers) -> Integers:
    """The rows sorted stably by a non-negative key."""
    if len(key) and int(key.max()) < 2**62 // len(key):  # key and row fit into one integer, which sorts faster
        return pl.Series(key * len(key) + np.arange(len(key))).sort().to_numpy() % len(key)
    return np.argsort(key, kind="stable")
