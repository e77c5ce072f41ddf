"""Starts and ends of the sessions of one file in UTC, read from times, times of day or durations."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import polars as pl

from unmet.records.bare_ends import find_bare_ends
from unmet.records.duration_forms import choose_clock_form
from unmet.records.durations import read_durations
from unmet.records.energies import energy_cells
from unmet.records.energy_numbers import read_numbers
from unmet.records.evidence import Finding
from unmet.records.id_cells import columns_of, identity_of
from unmet.records.mapping import Mapping
from unmet.records.named_zones import NamedZones
from unmet.records.time_cells import join_cells
from unmet.records.times import ParsedTimes, read_times, to_utc
from unmet.records.zone_choice import choose_zone

__all__ = ["Clocks", "read_clocks"]


@dataclass(frozen=True, slots=True)
class Clocks:
    """Starts and ends of the rows of a file."""

    start: pl.Series  # Int64 [ms, UTC], like the next two
    end: pl.Series
    charged: pl.Series | None  # when the energy flow ended; None if the file does not say
    readings: list[Finding]
    notes: list[str]
    is_open: pl.Series | None = None  # rows whose day and month are ambiguous


def read_clocks(
    raw: pl.DataFrame,
    mapping: Mapping,
    cells: tuple[pl.Series, pl.Series],
    chosen: Collection[str],
    named: NamedZones,
) -> Clocks:
    """Starts and ends in UTC. Order of day and month, zone and form of durations are those that the rows support.

    Args:
        raw: cells of a file.
        mapping: what the columns mean.
        cells: cells of the starts and of the ends, joined from their columns.
        chosen: entries of the mapping that the user gave.
        named: time zones stated in the headings.
    """
    start_cells, end_cells = cells
    if mapping.duration is not None:
        end_cells = pl.Series([None], dtype=pl.String).new_from_index(0, raw.height)
    bare = find_bare_ends(end_cells)
    columns = [start_cells, end_cells if bare is None else bare.without(end_cells)]
    if mapping.charged is not None and mapping.charged in raw.columns:
        columns.append(join_cells(raw, (mapping.charged,)))
    day_first = mapping.day_first if "day_first" in chosen else None
    # `clocks` holds starts, ends and, if known, the times at which the energy flow ended.
    clocks, readings, notes = read_times(columns, day_first, mapping.day_first)
    if bare is not None:
        dated = bare.dated(clocks[1], clocks[0])
        notes += [bare.note] if dated.wall.null_count() < clocks[1].wall.null_count() else []
        clocks[1] = dated
    zones = raw[mapping.zone] if mapping.zone is not None else None
    end_zones = raw[mapping.end_zone] if mapping.end_zone is not None else zones
    zone, note = mapping.time_zone, None
    if zones is None:
        unnamed = [clock for clock, name in zip(clocks, (named.start, named.end), strict=False) if name is None]
        zone, note = choose_zone(unnamed, mapping.time_zone, is_settled="time_zone" in chosen)
    named, contradicted = _supported_zones(clocks, named)
    notes += [sentence for sentence in (note, contradicted) if sentence]
    readings += _zone_findings(clocks, mapping, zone, named)
    start = to_utc(clocks[0], named.start or zone, None if named.start else zones)
    end_zone, end_zones = named.end or zone, None if named.end else end_zones
    end = to_utc(clocks[1], end_zone, end_zones)
    if mapping.duration is not None:
        form, note = _form_of_durations(raw, mapping, start)
        notes += [note] if note else []
        end = start + read_durations(raw[mapping.duration], mapping.duration_unit, in_minutes=form == "min")
        readings.append(Finding("Ends are starts plus the durations in a column of their own."))
    if bare is not None and end_zones is None:
        end = bare.in_repeated_hour(end, start, clocks[0], end_zone)
    # An end before its start may be in the second pass through the hour that occurs twice in autumn.
    is_before = (end < start).fill_null(value=False)
    if is_before.any():
        later = to_utc(clocks[1], end_zone, end_zones, later=True)
        end = later.zip_with(is_before & (later >= start).fill_null(value=False), end)
    charged_zone = named.charged or zone
    charged = to_utc(clocks[2], charged_zone, None if named.charged else end_zones) if len(clocks) > 2 else None
    return Clocks(start, end, charged, readings, notes, clocks[0].is_open)


def _supported_zones(clocks: list[ParsedTimes], named: NamedZones) -> tuple[NamedZones, str | None]:
    """The zones in the headings, or UTC for all if the times contradict one (see `choose_zone`); and a sentence."""
    regions = {name for name in (named.start, named.end) if name is not None and "/" in name}
    for region in regions:
        own = [clock for clock, name in zip(clocks, (named.start, named.end), strict=False) if name == region]
        zone, note = choose_zone(own, region, is_settled=False)
        if zone != region:
            return NamedZones("UTC", "UTC", "UTC" if named.charged else None), note
        if note:
            return named, note
    return named, None


def _form_of_durations(raw: pl.DataFrame, mapping: Mapping, start: pl.Series) -> tuple[str, str | None]:
    """Whether durations such as 42:29 are in hours or minutes, by the energies and plugs of their rows."""
    numbers, are_kwh, _ = read_numbers(energy_cells(raw, mapping))
    kwh = numbers.zip_with(are_kwh, numbers * mapping.energy_factor)
    names = (*columns_of(mapping.station_id or ()), *columns_of(mapping.plug_id or ()))
    plug = identity_of(raw, names) if mapping.plug_id and set(names) <= set(raw.columns) else None
    return choose_clock_form(raw[mapping.duration or ""], mapping.duration_unit, kwh, start, plug)


def _zone_findings(clocks: list[ParsedTimes], mapping: Mapping, zone: str, named: NamedZones) -> list[Finding]:
    """Findings about the zones in which starts and ends are read, and where each zone comes from."""
    found: list[Finding] = []
    walls = [len(clock.wall) - clock.wall.null_count() for clock in clocks[:2]]
    own_ends = mapping.end if mapping.duration is None else ()
    for name, columns, count in zip((named.start, named.end), (mapping.start, own_ends), walls, strict=True):
        if name is not None and count:
            shown = " and ".join(repr(column) for column in columns_of(columns))
            zone_name = f"UTC{name[:3]}:{name[3:]}" if name[0] in "+-" else name
            entry = ("time_zone", name) if named.start == named.end and name[0] not in "+-" else None
            found.append(Finding(f"{{}} times in {shown} are read as {zone_name}, as its name says.", (count,), entry))
    local = sum(count for count, name in zip(walls, (named.start, named.end), strict=True) if name is None)
    if local and mapping.zone is None:
        entry = None if named.start or named.end else ("time_zone", zone)
        found.append(Finding(f"{{}} times are written without a zone and are read as {zone}.", (local,), entry))
    elif local:
        found.append(Finding(f"{{}} times are read in the zone that column {mapping.zone!r} gives.", (local,)))
    with_zone = sum(len(clock.utc) - clock.utc.null_count() for clock in clocks[:2])
    if with_zone:
        found.append(Finding("{} times carry their own zone or offset.", (with_zone,)))
    return found
