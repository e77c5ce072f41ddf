"""Durations such as `42:29`: hours and minutes, or minutes and seconds? The rows decide.

If minutes are mistaken for hours, stays seem to last for days, their power is a sixtieth of the true one, and they
overlap with the next stay at the same plug.
"""

from __future__ import annotations

import re
from typing import Literal

import polars as pl

from unmet.errors import InputError

__all__ = ["choose_clock_form"]

MIN_ROWS = 20  # with fewer rows, an undecided column is read as hours and minutes, the usual form
_TWO_PARTS = r"^\s*(\d+):(\d{2})\s*$"
# Durations are read as hours and minutes for a trial. They must be minutes and seconds if there are many overlaps.
# Otherwise, many long stays or a low power speak for minutes, and few long stays or a usual power speak for hours.
_MANY_OVERLAPS = 0.1  # share of sessions that end after the next one on their plug starts
_FEW_LONG, _MANY_LONG = 0.02, 0.2  # shares of stays over a day
_LOW_KW, _USUAL_KW = 0.5, 1.5  # medians of energy over time plugged in
_MAX_KWH = 200.0  # if the median energy is higher, energies are not in kWh and are ignored
_HOUR = 3_600_000

Form = Literal["h", "min"]


def choose_clock_form(
    cells: pl.Series, given: str | None, kwh: pl.Series, start: pl.Series, plug: pl.Series | None
) -> tuple[Form, str | None]:
    """The unit of the first part of durations such as `42:29`, and a sentence if the choice is unusual or unsure.

    Args:
        cells: durations as written.
        given: the unit that the user gave; it decides, and so does a heading such as `Duration (mm:ss)`.
        kwh: energies, null where unreadable.
        start: starts [ms].
        plug: the plug of each row, null where unknown; None if the file has none.
    """
    text = cells.cast(pl.String, strict=False)
    parts = text.str.extract_groups(_TWO_PARTS).struct.unnest().cast(pl.Float64, strict=False)
    first, second = parts.get_columns()
    hours = first + second / 60
    heading = cells.name.lower()
    if given is not None or re.search(r"hh?:mm|mm?:ss", heading):
        # `(?<!:)`, because hh:mm:ss ends in mm:ss too
        is_minutes = given == "min" or (given is None and re.search(r"(?<!:)\bmm?:ss", heading) is not None)
        return ("min" if is_minutes else "h"), None
    known = hours.drop_nulls()
    if known.is_empty():
        return "h", None
    long = int((known >= 24).sum()) / len(known)
    power = _median_kw(kwh, hours)
    overlapping = _overlapping(start, hours, plug)
    why = f"as hours and minutes, {100 * long:.0f} % of the stays would exceed a day"
    note = (
        f"durations such as {text.filter(hours.is_not_null())[0].strip()} are read as minutes and seconds: {why}. Give "
        "--map duration_unit=h if they are hours and minutes."
    )
    if overlapping > _MANY_OVERLAPS:
        return "min", note
    is_minutes = long > _MANY_LONG or (power is not None and power < _LOW_KW)
    is_hours = long < _FEW_LONG or (power is not None and power > _USUAL_KW)
    is_undecided = is_minutes == is_hours  # no evidence, or contradictory evidence
    if is_undecided and len(known) < MIN_ROWS:
        example = text.filter(hours.is_not_null())[0].strip()
        return "h", (
            f"durations such as {example} are read as hours and minutes: too few rows to be sure. Give --map "
            "duration_unit=min if they are minutes and seconds."
        )
    if is_undecided:
        raise InputError(
            f"Durations in column {cells.name!r}, such as {text.filter(hours.is_not_null())[0].strip()}, may be hours "
            "and minutes or minutes and seconds: say which with --map duration_unit=h or min."
        )
    return ("min", note) if is_minutes else ("h", None)


def _median_kw(kwh: pl.Series, hours: pl.Series) -> float | None:
    """Median power [kW] if the stays last this many hours; None if energies are unknown or not in kWh."""
    telling = ((kwh > 0) & (hours > 0)).fill_null(value=False)
    energy, time = kwh.filter(telling), hours.filter(telling)
    if energy.is_empty() or float(energy.median()) > _MAX_KWH:  # type: ignore[arg-type]
        return None
    return float((energy / time).median())  # type: ignore[arg-type]


def _overlapping(start: pl.Series, hours: pl.Series, plug: pl.Series | None) -> float:
    """Share of sessions that would end after the next one on their plug starts."""
    if plug is None:
        return 0.0
    rows = pl.DataFrame({"plug": plug, "start": start, "hours": hours}).drop_nulls().sort("plug", "start")
    end, following = pl.col("start") + pl.col("hours") * _HOUR, pl.col("start").shift(-1).over("plug")
    return float(rows.select((end > following).mean().fill_null(0.0)).item() or 0.0)
