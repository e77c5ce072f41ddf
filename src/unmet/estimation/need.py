"""Memory that an estimate needs, from the size of the records, so that records that are too large are refused early."""

from __future__ import annotations

from unmet.estimation.clock import BINS_A_WEEK
from unmet.estimation.crowding import STEPS
from unmet.memory import require_bytes

__all__ = ["bytes_of_draws", "bytes_of_rates", "require_draws", "require_rates"]

FLOAT = 8
SESSION = 450  # bytes per session: visits, spells and arrivals, held twice; measured with 1 and 5 million sessions
WEEKS = 12  # arrays of shape (sites, bins of the week) that are in memory at once
DAYS = 14  # the same of shape (sites, days)
BY_STEP = 4  # the same of shape (sites, days, steps of occupancy)


def bytes_of_rates(sessions: int, sites: int, days: int) -> int:
    """Memory for the history and the rates of a network [byte]."""
    each = WEEKS * BINS_A_WEEK + days * (DAYS + BY_STEP * (STEPS + 1))
    return SESSION * sessions + FLOAT * sites * each


def bytes_of_draws(full_hours: int, hours: int, profiles: int, draws: int, cores: int) -> int:
    """Memory for draws [byte]: predictions for full site-hours, and the draws of one region per core."""
    return FLOAT * (3 * profiles * full_hours + 4 * min(cores, 8) * draws * hours)


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
