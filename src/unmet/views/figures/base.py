"""What a figure is: a name, a title, a caption and a function that draws it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

__all__ = ["Figure"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of some result; `caption` says what it shows and what differs from the paper's."""

    name: str
    title: str
    draw: Callable[[Any], go.Figure]
    caption: Callable[[Any], str]
    wide: bool = False
    """Too dense for a narrow window: it scrolls there instead of shrinking."""
    alt: Callable[[Any], str] | None = None
    """What the figure shows, for who cannot see it; its title and caption by default."""

    def alternative(self, result: Any) -> str:
        """The alternative text."""
        return f"{self.title}. {self.caption(result)}" if self.alt is None else self.alt(result)
