"""unmet: the electric-vehicle charging demand that charging records do not show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unmet.demand.panel import Panel, build_panel
    from unmet.estimation.lost_demand import LostDemand
    from unmet.models.forecaster import Forecaster
    from unmet.models.training import Training
    from unmet.planning.plan import Plan, plan
    from unmet.records.sessions import read_records
    from unmet.views.stored import open_runs

__all__ = [
    "Forecaster",
    "LostDemand",
    "Panel",
    "Plan",
    "Training",
    "__version__",
    "build_panel",
    "open_runs",
    "plan",
    "read_records",
]

__version__ = "0.1.0"

_LAZY = {
    "Forecaster": "unmet.models.forecaster",
    "LostDemand": "unmet.estimation.lost_demand",
    "Panel": "unmet.demand.panel",
    "Plan": "unmet.planning.plan",
    "Training": "unmet.models.training",
    "build_panel": "unmet.demand.panel",
    "open_runs": "unmet.views.stored",
    "plan": "unmet.planning.plan",
    "read_records": "unmet.records.sessions",
}


def __getattr__(name: str) -> Any:
    """Import what is slow to import only when it is asked for."""
    if name not in _LAZY:
        raise AttributeError(f"module 'unmet' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)
