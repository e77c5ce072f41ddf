"""Names of time zones."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from unmet.errors import InputError

__all__ = ["checked_zone"]


def checked_zone(name: str) -> str:
    """The name of a time zone, if there is one of that name."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise InputError(f"There is no time zone {name!r}: give a name such as Europe/Copenhagen.") from None
    return name
