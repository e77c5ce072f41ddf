"""From records to a panel, with the options of the command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from unmet.demand.booking import Booking
from unmet.demand.market import Market, parse_share
from unmet.demand.panel import Panel
from unmet.errors import InputError
from unmet.records.mapping import mapping_from, read_mapping
from unmet.records.one_file import NO_ROWS
from unmet.records.outages import check_outages, merge_outages
from unmet.records.restarts import JOIN_MINUTES
from unmet.records.sessions import Records, read_sessions
from unmet.records.sql import read_sql
from unmet.records.times import read_moment

__all__ = [
    "PanelChoices",
    "about_records",
    "chosen_mapping",
    "chosen_records",
    "chosen_sources",
    "panel_from_records",
    "station_mapping",
]


@dataclass(frozen=True, slots=True)
class PanelChoices:
    """Where the records are, how to read them, and how to build the panel."""

    files: tuple[Path, ...] = ()
    stations: Path | None = None
    format: str = "auto"
    mapped: tuple[str, ...] = ()  # such as start=ConnectionStart
    map_file: Path | None = None
    sql: str | None = None  # address of a database
    query: str | None = None  # SQL query of sessions
    regions: str = "10"
    time_zone: str | None = None
    country: str | None = None
    booking: str = "arrival"
    outages: Path | None = None
    operator: str | None = None
    share: str | None = None  # such as 0.25 or 0.2-0.3
    join_restarts: float = JOIN_MINUTES  # minutes; 0 joins nothing
    crs: str | None = None  # coordinate system of the station table, such as EPSG:2056
    station_columns: tuple[str, ...] = ()  # such as station_id=Site
    since: str | None = None  # day or time from which sessions are used
    until: str | None = None  # day or time before which they are used


def panel_from_records(
    choices: PanelChoices, progress: Callable[[int, int], None] | None = None
) -> tuple[Panel, pl.DataFrame, dict[str, Any]]:
    """Read records and build a panel. Returns the panel, the rows set aside, and counts of rows for a summary."""
    try:
        booking = Booking(choices.booking)
    except ValueError:
        raise InputError(f"--booking {choices.booking!r} makes no sense: give arrival or delivery.") from None
    market = Market(choices.operator, None if choices.share is None else parse_share(choices.share))
    records = chosen_records(choices, progress)
    outages, rejected = records.outages, [records.rejected, records.rejected_stations]
    if choices.outages is not None:
        checked = check_outages(choices.outages, records.stations["station_id"])
        outages = merge_outages(pl.concat([outages, checked.kept]))
        rejected.append(checked.rejected.select(pl.lit(str(choices.outages)).alias("file"), pl.all()))
    panel = Panel(
        records.sessions,
        records.stations,
        regions=choices.regions,
        time_zone=choices.time_zone or records.time_zone,
        country=choices.country,
        booking=booking,
        outages=outages,
        market=market,
    )
    return panel, pl.concat(rejected), about_records(choices, records, outages, panel.time_zone)


def chosen_records(choices: PanelChoices, progress: Callable[[int, int], None] | None = None) -> Records:
    """Read the chosen records; `progress` is called with the number of files read so far and in total."""
    records = read_sessions(
        chosen_sources(choices),
        choices.format,
        chosen_mapping(choices),
        choices.stations,
        join_minutes=choices.join_restarts,
        station_mapping=station_mapping(choices),
        crs=choices.crs,
        time_zone=choices.time_zone,
        since=read_moment("--since", choices.since, choices.time_zone),
        until=read_moment("--until", choices.until, choices.time_zone),
        progress=progress,
    )
    if records.sessions.is_empty():
        raise InputError(_nothing_left(records))
    return records


def _nothing_left(records: Records) -> str:
    """A sentence on why no session is left."""
    if records.rejected.is_empty():
        empty = [note for note in records.notes if note.endswith(NO_ROWS)]
        if empty:
            return f"There are no sessions: {empty[0].replace(': ' + NO_ROWS, ' ' + NO_ROWS)}"
        return "The files hold stations but no sessions: give session records as FILES, and stations with --stations."
    reasons = records.rejected.group_by("column", "reason", maintain_order=True).agg(pl.len(), pl.first("value"))
    column, reason, count, value = reasons.sort("len", descending=True).row(0)
    return (
        f"None of the {records.rejected.height:,} rows can be used. The most frequent reason, in {count:,} of them: "
        f"{column or 'the row'} {reason} (for example {value!r})."
    )


def chosen_sources(choices: PanelChoices) -> list[Any]:
    """The files, and the rows selected from a database."""
    if (choices.sql is None) != (choices.query is None):
        raise InputError("--sql and --query go together: the database, and what to select from it.")
    sources: list[Any] = list(choices.files)
    if choices.sql is not None and choices.query is not None:
        sources.append(read_sql(choices.sql, choices.query))
    if not sources:
        raise InputError("There are no records to read: give files, or --sql and --query.")
    return sources


def chosen_mapping(choices: PanelChoices) -> dict[str, Any]:
    """The column mapping of the mapping file, overridden by each --map."""
    values = read_mapping(choices.map_file).entries() if choices.map_file else {}
    values |= _pairs("--map", choices.mapped, "start=ConnectionStart")
    mapping_from(values, "--map")
    return values


def station_mapping(choices: PanelChoices) -> dict[str, str]:
    """The column mapping of the station table."""
    return _pairs("--map-stations", choices.station_columns, "station_id=Site")


def _pairs(option: str, given: tuple[str, ...], example: str) -> dict[str, str]:
    """The pairs of NAME=COLUMN options."""
    values = {}
    for pair in given:
        name, equals, column = pair.partition("=")
        if not equals or not column:
            raise InputError(f"{option} {pair!r} makes no sense: write it as {example}.")
        values[name.strip()] = column.strip()
    return values


def about_records(choices: PanelChoices, records: Records, outages: pl.DataFrame, time_zone: str) -> dict[str, Any]:
    """Counts of the rows read, kept and set aside, for a summary."""
    mapping = mapping_from(chosen_mapping(choices), "--map").to_yaml() if chosen_mapping(choices) else ""
    totals = ("rows_in", "rows_kept", "rows_set_aside")
    return {
        **{name: records.counts[name] for name in totals},
        "formats": records.formats,
        "quality": {name: count for name, count in records.counts.items() if name not in totals and count},
        "outages": outages.height,
        "readings": records.readings_in_short,
        "record_notes": records.notes,
        "mapping": mapping,
        "time_zone": time_zone,
    }
