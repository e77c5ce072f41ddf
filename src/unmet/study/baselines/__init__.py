"""Baselines that every table of models contains.

To add one, write a module with a subclass of `Baseline` next to these, and name the class in the loop below; a script
calls `BASELINES.register` instead.
"""

from __future__ import annotations

from unmet.models.likelihoods import LIKELIHOODS
from unmet.registry import Registry
from unmet.study.baselines.base import Baseline
from unmet.study.baselines.cqrnn import CQRNN
from unmet.study.baselines.identity import IdentityGraph
from unmet.study.baselines.poisson import PoissonOffset
from unmet.study.baselines.ratio import SeenOverExposed

__all__ = ["BASELINES", "Baseline"]

BASELINES: Registry[type[Baseline]] = Registry("baseline")

for _baseline in (SeenOverExposed, PoissonOffset, IdentityGraph):
    BASELINES.register(_baseline)
LIKELIHOODS.register(CQRNN)  # a loss for the usual networks, not a forecast of its own
