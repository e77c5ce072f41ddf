"""Levels of quantiles, and the columns that hold them."""

from __future__ import annotations

from collections.abc import Sequence

from unmet.errors import InputError

__all__ = ["LEVELS", "checked_levels", "quantile_column"]

LEVELS = (0.05, 0.5, 0.95)


def checked_levels(levels: Sequence[float]) -> tuple[float, ...]:
    """The levels, if they are ascending and between 0 and 1."""
    levels = list(levels)
    if not levels or sorted(set(levels)) != levels or not all(0 < level < 1 for level in levels):
        shown = ", ".join(f"{level:g}" for level in levels) or "none"
        raise InputError(
            f"Levels {shown} make no sense: give ascending numbers between 0 and 1, such as 0.05, 0.5, 0.95."
        )
    return tuple(float(level) for level in levels)


def quantile_column(level: float) -> str:
    """The column of a quantile in a table of forecasts, such as q0.05."""
    return f"q{level:g}"
