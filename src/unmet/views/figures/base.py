"""The definition of a figure: a name, a title, a caption and a function that draws it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

__all__ = ["Figure"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of some result. The caption says what it shows and, where the paper has one, how they differ."""

    name: str
    """Its id on a page, and the name of its picture files."""
    title: str
    draw: Callable[[Any], go.Figure]
    """Draws the figure; like `caption` and `alt`, it takes the result."""
    caption: Callable[[Any], str]
    wide: bool = False
    """Whether the figure is too dense for a narrow window, where it scrolls instead of shrinking."""
    alt: Callable[[Any], str] | None = None
    """Text for people who cannot see the figure; by default its title and caption."""

    def alternative(self, result: Any) -> str:
        """The alternative text."""
        return f"{self.title}. {self.caption(result)}" if self.alt is None else self.alt(result)
