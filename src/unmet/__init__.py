"""unmet: the electric-vehicle charging demand that charging records do not show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unmet.models.forecaster import Forecaster
    from unmet.models.training import Training

__all__ = ["Forecaster", "Training", "__version__"]

__version__ = "0.1.0"

_LAZY = {"Forecaster": "unmet.models.forecaster", "Training": "unmet.models.training"}


def __getattr__(name: str) -> Any:
    """Import what is slow to import only when it is asked for."""
    if name not in _LAZY:
        raise AttributeError(f"module 'unmet' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)
