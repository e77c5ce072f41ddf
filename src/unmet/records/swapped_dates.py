"""Dates in which a spreadsheet swapped day and month, swapped back.

A spreadsheet that expects months first turns the text 04/02/2024 (4 February) into the date 2 April, and leaves
15/01/2024 as text. So all dates lie within the first twelve days of months, and all texts have a part above 12. A new
export system can leave the same traces, so rows must agree: swapped back, dates lie in the period of the texts, ends
follow starts, and rows stay in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from unmet.records.evidence import Finding

__all__ = ["SwappedDates", "swapped_back"]

# Ten distinct dates that all lie within the first twelve days of months are a pattern: by chance, a
# share of (12 / 31)^10 of all files has it, which is one in 10,000. As many distinct texts are needed.
DISTINCT_DAYS = 10
MIN_ROWS = 3  # rows needed to support a reading; fewer may be typing errors
EDGE_DAYS = 12  # texts have days above 12, so the period may extend this far at either end
IN_ORDER = 0.5  # share of starts within two days of the one before: rows are in order of time
MAX_DAYS = 31  # longest possible stay
_PARTS = r"^\s*(\d{1,2})[/.\-](\d{1,2})[/.\-](\d{4}|\d{2})\b"
_DAY = 86_400_000


@dataclass(frozen=True, slots=True)
class SwappedDates:
    """Times after swapping back, and notes for the user."""

    walls: list[pl.Series]  # Int64 [ms]
    finding: Finding | None = None
    note: str | None = None


def swapped_back(walls: Sequence[pl.Series], texts: Sequence[pl.Series | None]) -> SwappedDates:
    """Swap day and month of all dates back if a spreadsheet swapped them.

    Args:
        walls: local times of each column [ms], starts first, then ends; null where a cell is not a date.
        texts: the other cells of each column.
    """
    unchanged = SwappedDates(list(walls))
    dates = pl.concat([wall.drop_nulls() for wall in walls]).cast(pl.Datetime("ms"))
    if dates.is_empty() or not (dates.dt.day() <= 12).all():  # checked first, because parsing texts is slow
        return unchanged
    parsed = [_settled_days(column, len(wall)) for column, wall in zip(texts, walls, strict=True)]
    if any(days is None for days in parsed):
        return unchanged
    settled = [days for days in parsed if days is not None]
    text_days = pl.concat([days.drop_nulls() for days in settled])
    if text_days.is_empty():
        return unchanged
    swapped = [_with_day_as_month(wall) for wall in walls]
    # Rows that speak for swapping; negative if they speak against it.
    support = _rows_against(walls, settled, text_days) - _rows_against(swapped, settled, text_days)
    is_pattern = min(dates.dt.date().n_unique(), text_days.n_unique()) >= DISTINCT_DAYS
    if support <= -MIN_ROWS:
        return unchanged
    if support >= MIN_ROWS or is_pattern:
        sentence = (
            "{} dates in which a spreadsheet had swapped day and month are swapped back: none has a day above 12, and "
            "all {} dates that stayed text have a part above 12."
        )
        note = f"{len(dates):,} dates in which a spreadsheet had swapped day and month were swapped back."
        return SwappedDates(swapped, Finding(sentence, (len(dates), len(text_days))), note)
    note = (
        f"{len(dates):,} dates are written differently from the others, and none has a day above 12: a spreadsheet may "
        "have swapped day and month in them. The rows do not show it, so they are read as written. If it has, "
        "export the file again with dates such as 2024-02-04."
    )
    return SwappedDates(list(walls), note=note)


def _settled_days(texts: pl.Series | None, length: int) -> pl.Series | None:
    """Days since 1970 of texts that are dates, each with a part above 12; None if a date has no such part."""
    if texts is None:
        return pl.Series([None], dtype=pl.Int64).new_from_index(0, length)
    first, second, year = (texts.str.extract(_PARTS, n).cast(pl.Int64, strict=False) for n in (1, 2, 3))
    if not ((first > 12) | (second > 12)).drop_nulls().all():
        return None
    parts = pl.DataFrame({"a": first, "b": second, "y": year})
    year_4 = pl.when(pl.col("y") < 100).then(pl.col("y") + 2000).otherwise("y")
    text = pl.format(
        "{}-{}-{}", year_4, pl.min_horizontal("a", "b").cast(pl.String), pl.max_horizontal("a", "b").cast(pl.String)
    )
    date = pl.when(pl.col("a").is_not_null()).then(text).str.strptime(pl.Date, "%Y-%m-%d", strict=False)
    return parts.select(date.cast(pl.Int32).cast(pl.Int64).alias("day"))["day"]


def _with_day_as_month(wall: pl.Series) -> pl.Series:
    """Times [ms] with day and month swapped."""
    time = pl.col("time")
    date = pl.datetime(time.dt.year(), time.dt.day(), time.dt.month(), time_unit="ms")
    times = wall.cast(pl.Datetime("ms")).to_frame("time")
    return times.select((date + (time - time.dt.truncate("1d"))).cast(pl.Int64).alias(wall.name))[wall.name]


def _rows_against(walls: Sequence[pl.Series], settled: list[pl.Series], text_days: pl.Series) -> int:
    """Number of rows that contradict these times: outside the period of the texts, impossible stays, jumps.

    Args:
        walls: local times of the dates, by column [ms].
        settled: days of the texts, by column [days since 1970].
        text_days: days of all texts.
    """
    days = [(wall // _DAY).fill_null(text) for wall, text in zip(walls, settled, strict=True)]
    first, last = text_days.to_frame("d").select(pl.col("d").min().alias("a"), pl.col("d").max().alias("b")).row(0)
    outside = sum(
        int((~(wall // _DAY).is_between(first - EDGE_DAYS, last + EDGE_DAYS)).drop_nulls().sum()) for wall in walls
    )
    stays = (days[1] - days[0]).drop_nulls() if len(days) > 1 else pl.Series([], dtype=pl.Int64)
    impossible = int((~stays.is_between(0, MAX_DAYS)).sum())
    known = settled[0].drop_nulls().diff().drop_nulls().abs()
    if int((known <= 2).sum()) <= IN_ORDER * len(known):  # rows are in no order
        return outside + impossible
    return outside + impossible + int((days[0].drop_nulls().diff().drop_nulls().abs() > 2).sum())
