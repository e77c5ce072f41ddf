"""unmet: the electric-vehicle charging demand that charging records do not show."""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
