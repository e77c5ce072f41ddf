"""Rivals: readily available methods that forecast the same hours from the same records."""

from __future__ import annotations

from unmet.evaluation.rivals.base import Rival, RivalTask
from unmet.evaluation.rivals.lightgbm import LIGHTGBM
from unmet.evaluation.rivals.naive import LAST_WEEK, TABLE
from unmet.evaluation.rivals.statsforecast import AUTO_ETS, MSTL

__all__ = ["LAST_WEEK", "PEERS", "SIMPLE", "TABLE", "Rival", "RivalTask"]

SIMPLE = (TABLE, LAST_WEEK)
"""Rivals in every evaluation."""
PEERS = (LIGHTGBM, AUTO_ETS, MSTL)
"""Rivals that are included if their library is installed."""
