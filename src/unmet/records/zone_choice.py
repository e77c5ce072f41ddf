"""Whether times without a zone can be in the zone that a format suggests.

Where clocks change in spring, an hour does not exist. Times within it were not taken from such clocks.
"""

from __future__ import annotations

from collections.abc import Sequence

from unmet.records.times import ParsedTimes, missing_times

__all__ = ["choose_zone"]

MIN_CONTRADICTIONS = 3  # fewer may come from a clock that was set late


def choose_zone(clocks: Sequence[ParsedTimes], zone: str, *, is_settled: bool) -> tuple[str, str | None]:
    """The zone of wall times, and a sentence if they contradict the one that was suggested.

    A zone that the user gave is kept, whatever the times say. Any other is replaced by UTC, which has every hour, if at
    least three times do not exist in it.

    Args:
        clocks: wall times without a zone of their own.
        zone: the zone that the user gave, or that the format suggests.
        is_settled: whether the user gave it.
    """
    if zone == "UTC":
        return zone, None
    wrong = sum(missing_times(clock, zone) for clock in clocks)
    if not wrong:
        return zone, None
    times_are, they_are = ("time is", "it is") if wrong == 1 else ("times are", "they are")
    hour = f"{wrong:,} {times_are} in the hour that clocks of {zone} skip in spring"
    if is_settled or wrong < MIN_CONTRADICTIONS:
        remedy = "Give --map time_zone=UTC if the times are in UTC."
        return zone, f"{hour}; {they_are} read an hour later. {remedy}"
    return "UTC", f"{hour}, so the times are taken to be in UTC. Give --map time_zone={zone} if they are local."
