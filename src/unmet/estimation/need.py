"""Memory that an estimate takes, from the size of the records: a sentence before it runs out."""

from __future__ import annotations

from unmet.estimation.clock import BINS_A_WEEK
from unmet.estimation.crowding import STEPS
from unmet.memory import require_bytes

__all__ = ["bytes_of_draws", "bytes_of_rates", "require_draws", "require_rates"]

FLOAT = 8
SESSION = (
    450  # of the visits, spells and arrivals of a session, each there twice; measured with 1 and 5 million sessions
)
WEEKS = 12  # arrays of sites by bin of the week at one time
DAYS = 14  # arrays of sites by day
BY_STEP = 4  # arrays of sites by day and step of occupancy


def bytes_of_rates(sessions: int, sites: int, days: int) -> int:
    """Memory [byte] that histories and rates of a network take."""
    each = WEEKS * BINS_A_WEEK + days * (DAYS + BY_STEP * (STEPS + 1))
    return SESSION * sessions + FLOAT * sites * each


def bytes_of_draws(full_hours: int, hours: int, profiles: int, draws: int, cores: int) -> int:
    """Memory [byte] that draws take: predictions for full site-hours, and draws of a region for each core."""
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
