"""unmet: the electric-vehicle charging demand that charging records do not show.

Example:
    >>> import unmet
    >>> [name for name in dir(unmet) if not name.startswith("_")][:4]
    ['Forecaster', 'InputError', 'LostDemand', 'Panel']
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unmet.demand.panel import Panel
    from unmet.errors import InputError
    from unmet.estimation.lost_demand import LostDemand
    from unmet.evaluation.evaluate import evaluate
    from unmet.models.forecaster import Forecaster
    from unmet.planning.plan import Plan, plan
    from unmet.records.sessions import read_sessions
    from unmet.simulation.scenario import Scenario
    from unmet.simulation.simulate import simulate
    from unmet.views.stored import open_runs

__all__ = [
    "Forecaster",
    "InputError",
    "LostDemand",
    "Panel",
    "Plan",
    "Scenario",
    "__version__",
    "evaluate",
    "open_runs",
    "plan",
    "read_sessions",
    "simulate",
]

__version__ = "0.2.0"

_MODULE_OF = {
    "Forecaster": "unmet.models.forecaster",
    "InputError": "unmet.errors",
    "LostDemand": "unmet.estimation.lost_demand",
    "Panel": "unmet.demand.panel",
    "Plan": "unmet.planning.plan",
    "Scenario": "unmet.simulation.scenario",
    "evaluate": "unmet.evaluation.evaluate",
    "open_runs": "unmet.views.stored",
    "plan": "unmet.planning.plan",
    "read_sessions": "unmet.records.sessions",
    "simulate": "unmet.simulation.simulate",
}
"""The module of each public name; it is imported when the name is first used, since some take a second."""


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'unmet' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
