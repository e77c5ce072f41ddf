"""Units of time in which occupancy is counted."""

from __future__ import annotations

__all__ = ["HOUR_MS"]

HOUR_MS = 3_600_000
