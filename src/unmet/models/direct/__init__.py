"""Direct forecasters: every horizon is forecast from what is known now, by tables and models of expected demand."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DIRECT", "Recipe"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a direct backbone is made of."""

    title: str
    tables: tuple[str, ...]  # climatologies
    members: tuple[str, ...]  # models of expected demand


DIRECT = {
    "stacked": Recipe(
        "Stack of tables, regression and trees", ("climatology", "long-climatology"), ("regression", "lightgbm")
    ),
    "climatology": Recipe("Table of the last eight weeks", ("climatology",), ()),
    "regression": Recipe("Poisson regression", (), ("regression",)),
    "lightgbm": Recipe("Gradient-boosted trees", (), ("lightgbm",)),
}
"""Backbones that are not networks, by name; the first is the default."""
