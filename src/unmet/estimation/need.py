"""Memory that an estimate needs, from the size of the records: records that are too large are refused early."""

from __future__ import annotations

from unmet.estimation.clock import BINS_A_WEEK
from unmet.estimation.crowding import STEPS
from unmet.memory import require_bytes

__all__ = ["bytes_of_draws", "bytes_of_rates", "require_draws", "require_rates"]

FLOAT_BYTES = 8
SESSION_BYTES = 450  # visits, spells and arrivals of a session, held twice; measured with 1 and 5 million sessions
WEEK_ARRAYS = 12  # number of arrays (sites, bins of the week) in memory at once
DAY_ARRAYS = 14  # number of arrays (sites, days)
STEP_ARRAYS = 4  # number of arrays (sites, days, steps of occupancy)


def bytes_of_rates(sessions: int, sites: int, days: int) -> int:
    """Memory for the history and the rates of a network [byte]."""
    floats_per_site = WEEK_ARRAYS * BINS_A_WEEK + days * (DAY_ARRAYS + STEP_ARRAYS * (STEPS + 1))
    return SESSION_BYTES * sessions + FLOAT_BYTES * sites * floats_per_site


def bytes_of_draws(full_hours: int, hours: int, profiles: int, draws: int, cores: int) -> int:
    """Memory for draws [byte]: predictions for full site-hours, and the draws of one region per core.

    Three arrays (full hours, profiles) and, for each of up to eight regions, four arrays (hours, draws) exist at once.
    """
    return FLOAT_BYTES * (3 * profiles * full_hours + 4 * min(cores, 8) * draws * hours)


def require_rates(sessions: int, sites: int, days: int) -> None:
    """Refuse records whose rates do not fit into memory."""
    require_bytes(
        bytes_of_rates(sessions, sites, days),
        f"An estimate from {sessions:,} sessions at {sites:,} sites over {days:,} days",
        "estimate area by area (`unmet recover --by-area`), or a shorter period (--since, --until)",
    )


def require_draws(full_hours: int, hours: int, profiles: int, draws: int, cores: int) -> None:
    """Refuse draws that do not fit into memory."""
    require_bytes(
        bytes_of_draws(full_hours, hours, profiles, draws, cores),
        f"{draws:,} draws of the {full_hours:,} hours in which sites were full",
        "ask for fewer draws (--draws), estimate area by area (`unmet recover --by-area`), or a shorter period",
    )
