"""Ends written as a time of day without a date, such as `09:05`.

Such an end is on the day of its start, or on the next day if it would otherwise precede the start.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from unmet.records.times import ParsedTimes, to_utc

__all__ = ["BareEnds", "find_bare_ends"]

# Matches 9:05, 09.05.30, 9h05, 9:05 p.m. and 09:05 Uhr.
_CLOCK = r"(?i)\s*(\d{1,2})[:.h](\d\d)(?:[:.](\d\d)(?:\.\d+)?)?\s*(?:([ap])\.?m\.?|uhr|h)?\s*$"
_FIRST_DAYS = r"1(?:899-12-3[01]|900-01-0[01])[ T]"  # dates that spreadsheets give to a time without one
_SAMPLE_ROWS = 1000  # from the whole file; on a long file, a pattern on every row would take seconds
_DAY, _HOUR, _MINUTE, _SECOND = 86_400_000, 3_600_000, 60_000, 1000  # ms


@dataclass(frozen=True, slots=True)
class BareEnds:
    """The ends that are only a time of day [ms]; null where an end has its own date."""

    time_of_day: pl.Series
    note: str

    def without(self, cells: pl.Series) -> pl.Series:
        """The cells with null in place of every time of day, so that only ends with their own date remain."""
        return cells.cast(pl.String).set(self.time_of_day.is_not_null(), None)

    def dated(self, ends: ParsedTimes, starts: ParsedTimes) -> ParsedTimes:
        """The ends, dated: an end without a date is put on the day of its start, or on the next day."""
        midnight = starts.wall - starts.wall % _DAY
        same_day = midnight + self.time_of_day
        wall = same_day.zip_with((same_day >= starts.wall).fill_null(value=False), same_day + _DAY)
        return ParsedTimes(ends.utc, ends.wall.fill_null(wall), ends.is_open)

    def in_repeated_hour(self, end: pl.Series, start: pl.Series, starts: ParsedTimes, zone: str) -> pl.Series:
        """Ends [ms, UTC], corrected where clocks were put back during the stay.

        A stay from 02:50 to 02:10 may end in the second pass through that hour; `dated` put its end on the next day.

        Args:
            end: ends as dated [ms, UTC].
            start: starts [ms, UTC].
            starts: the same starts as written.
            zone: time zone of the ends.
        """
        same_day = starts.wall - starts.wall % _DAY + self.time_of_day
        second_pass = to_utc(
            ParsedTimes(same_day.clear().extend_constant(None, len(same_day)), same_day), zone, later=True
        )
        is_later = (same_day < starts.wall) & (second_pass >= start)
        return second_pass.zip_with(is_later.fill_null(value=False), end)


def find_bare_ends(cells: pl.Series) -> BareEnds | None:
    """Find the cells that are times of day without a date; None if there are none."""
    if cells.dtype == pl.Time:
        cells = cells.cast(pl.String)
    if cells.dtype != pl.String:
        return None
    sample = cells.drop_nulls().gather_every(max(len(cells) // _SAMPLE_ROWS, 1))
    if not sample.str.contains(f"^(?:{_FIRST_DAYS})?{_CLOCK}").any() or not _times_of_day(sample).is_not_null().any():
        return None
    found = _times_of_day(cells)
    example = cells.filter(found.is_not_null())[0].strip()
    return BareEnds(
        found,
        f"ends such as {example} have no date: they are taken to be on the day of the start, or on the next if they "
        "are earlier than it, so no stay exceeds a day. If the file has durations, give --map duration=COLUMN.",
    )


def _times_of_day(cells: pl.Series) -> pl.Series:
    """Times of day [ms], null where a cell is something else."""
    groups = cells.str.replace(f"^{_FIRST_DAYS}", "").str.extract_groups(f"^{_CLOCK}").struct.unnest()
    hour, minute, second = (groups[name].cast(pl.Int64, strict=False) for name in groups.columns[:3])
    am_or_pm = groups[groups.columns[3]].str.to_lowercase()
    is_12_hour, is_pm = am_or_pm.is_not_null(), (am_or_pm == "p").fill_null(value=False)
    hour = (hour % 12 + 12 * is_pm.cast(pl.Int64)).zip_with(is_12_hour, hour)
    valid = (hour < 24) & (minute < 60) & (second.fill_null(0) < 60)
    total = hour * _HOUR + minute * _MINUTE + second.fill_null(0) * _SECOND
    return total.set(~valid.fill_null(value=False), None)
