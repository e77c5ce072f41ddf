"""Direct forecasters: tables and models of expected demand that forecast every horizon from the present."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DIRECT", "Recipe"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """The parts of a direct backbone."""

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
