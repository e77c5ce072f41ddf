"""Calendar: local hour, weekday and holidays of the hours of a panel."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection

import polars as pl

from unmet.errors import InputError
from unmet.tables import UTC

__all__ = [
    "HOURS_A_DAY",
    "HOURS_A_WEEK",
    "HOUR_MS",
    "hour_of_week",
    "hours_between",
    "knows_holidays",
    "public_holidays",
    "whole_days",
    "with_calendar",
]

HOURS_A_DAY = 24
HOURS_A_WEEK = 168
HOUR_MS = 3_600_000


def whole_days(times: pl.Series) -> tuple[dt.datetime, dt.datetime]:
    """The days in UTC that contain these times: from midnight before the first to midnight after the last."""
    day = times.cast(UTC).dt.truncate("1d").to_frame("day")
    first, last = day.select(pl.col("day").min().alias("first"), pl.col("day").max().alias("last")).row(0)
    return first, last + dt.timedelta(days=1)


def hours_between(first: dt.datetime, last: dt.datetime) -> pl.Series:
    """Every hour from `first` to before `last`."""
    return pl.datetime_range(first, last, "1h", closed="left", time_zone="UTC", eager=True).cast(UTC).alias("ds")


def hour_of_week(hours: pl.Series, time_zone: str) -> pl.Series:
    """Local hour of the week, 0 for Monday 00 to 167 for Sunday 23."""
    local = hours.dt.convert_time_zone(time_zone)
    return ((local.dt.weekday().cast(pl.Int64) - 1) * 24 + local.dt.hour()).alias("hour_of_week")


def with_calendar(panel: pl.DataFrame, time_zone: str, country: str | None = None) -> pl.DataFrame:
    """The panel with the columns `hour`, `weekday` (1 for Monday) and `holiday`, all in local time.

    `country` is a code such as DK, or a code with a subdivision such as US-CA; without one no day is a holiday.
    """
    local = pl.col("ds").dt.convert_time_zone(time_zone)
    # `holiday` holds the local date until it is replaced by whether that date is a holiday.
    frame = panel.with_columns(hour=local.dt.hour(), weekday=local.dt.weekday(), holiday=local.dt.date())
    days = frame["holiday"].unique()
    years = days.dt.year().unique().to_list()
    holidays = pl.Series(sorted(public_holidays(country, years)) if country else [], dtype=pl.Date)
    return frame.with_columns(pl.col("holiday").is_in(holidays.implode()))


def knows_holidays(country: str) -> bool:
    """Whether the holidays of the country with this code, such as DK, are known."""
    import holidays

    return country.partition("-")[0].upper() in holidays.list_supported_countries()


def public_holidays(country: str, years: Collection[int]) -> set[dt.date]:
    """Public holidays of a country, such as DK or US-CA, in these years."""
    import holidays

    code, _, part = country.partition("-")
    if not knows_holidays(country):
        raise InputError(f"The holidays of {country!r} are not known: give a country code such as DK, or US-CA.")
    try:
        return set(holidays.country_holidays(code.upper(), subdiv=part.upper() or None, years=sorted(years)))
    except NotImplementedError:
        raise InputError(
            f"The holidays of {country!r} are not known: give a country code such as DK, or US-CA."
        ) from None
