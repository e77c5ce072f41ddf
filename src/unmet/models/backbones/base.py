"""What a backbone is: a network that turns past hours into features of the hour to come, for each region."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from torch import Tensor, nn

from unmet.models.graph import Graph

__all__ = ["Backbone", "Inputs", "Shape"]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a backbone must fit: how many regions and features there are, and how many hours it looks back."""

    nodes: int
    features: int
    past_features: int  # the first so many say something of the hour past, the others of the hour to come
    lags: int


class Inputs(NamedTuple):
    """What is known at each hour. The hour to come is the one right after it."""

    values: Tensor  # (hours, batch, nodes, features)
    week: Tensor  # (hours, batch), hour of the week of the hour to come


class Backbone(nn.Module, ABC):
    """A backbone. A new one is a subclass with a name and a width, and `forward`."""

    name: ClassVar[str]
    title: ClassVar[str]
    width: int  # features given for each region and hour

    def __init__(self, shape: Shape, graph: Graph) -> None:
        super().__init__()
        self.shape = shape
        self.graph = graph

    @abstractmethod
    def forward(self, inputs: Inputs) -> Tensor:
        """Features of the hours to come, (hours - lags + 1, batch, nodes or 1, width).

        Each may depend on the hours before it in `inputs`, on the last `lags` of them at least. The first is of the
        hour after the first `lags` hours.
        """
