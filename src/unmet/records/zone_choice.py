"""Whether times without a zone can be of the zone that a format suggests.

Where clocks change in spring, an hour does not exist. Times within it were not taken from such clocks. Nor were times
that put an end before its start once they are read as local.
"""

from __future__ import annotations

from collections.abc import Sequence

from unmet.records.times import ParsedTimes, missing_times

__all__ = ["choose_zone"]

MIN_CONTRADICTIONS = 3  # fewer may be a clock that was set late


def choose_zone(clocks: Sequence[ParsedTimes], zone: str, *, is_settled: bool) -> tuple[str, str | None]:
    """The zone of wall times, and a sentence where they contradict the one that was suggested.

    A zone that the user gave stays, whatever the times say. Any other is dropped for UTC, which has every hour, if at
    least three times cannot be of it.
    """
    if zone == "UTC":
        return zone, None
    wrong = sum(missing_times(clock, zone) for clock in clocks)
    if not wrong:
        return zone, None
    are, them = ("time is", "it is") if wrong == 1 else ("times are", "they are")
    hour = f"{wrong:,} {are} in the hour that clocks of {zone} skip in spring"
    if is_settled or wrong < MIN_CONTRADICTIONS:
        remedy = "Give --map time_zone=UTC if the times are in UTC."
        return zone, f"{hour}; {them} read an hour later. {remedy}"
    return "UTC", f"{hour}, so the times are taken to be in UTC. Give --map time_zone={zone} if they are local."
