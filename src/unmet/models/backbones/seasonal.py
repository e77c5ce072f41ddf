"""The seasonal profile: the hour of the week alone, without lags."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import one_hot

from unmet.demand.calendar import HOURS_A_WEEK
from unmet.models.backbones.base import Backbone, Inputs

__all__ = ["Seasonal"]


class Seasonal(Backbone):
    """One-hot encoding of the hour of the week, so that each region's head is a table of its week."""

    name = "seasonal"
    title = "Seasonal profile"
    width = HOURS_A_WEEK

    def forward(self, inputs: Inputs) -> Tensor:
        """One-hot hour of the week, the same for all regions."""
        week = inputs.week[self.shape.lags - 1 :]
        return one_hot(week, HOURS_A_WEEK).to(inputs.values.dtype)[:, :, None]
