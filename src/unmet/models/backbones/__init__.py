"""Backbones. To add one, write a small class in a file of its own and call `BACKBONES.register`."""

from __future__ import annotations

from unmet.models.backbones.adaptive import AdaptiveTGCN
from unmet.models.backbones.base import Backbone, Inputs, Shape
from unmet.models.backbones.lagged import LaggedLinear, Perceptron
from unmet.models.backbones.seasonal import Seasonal
from unmet.models.backbones.tgcn import TGCN
from unmet.registry import Registry

__all__ = ["BACKBONES", "Backbone", "Inputs", "Shape"]

BACKBONES: Registry[type[Backbone]] = Registry("backbone", "unmet.backbones")

for _backbone in (TGCN, Perceptron, LaggedLinear, Seasonal, AdaptiveTGCN):
    BACKBONES.register(_backbone)
