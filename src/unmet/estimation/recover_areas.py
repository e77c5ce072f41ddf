"""Lost demand of records that do not fit into memory: partitioned by area, estimated on several cores or a cluster."""

from __future__ import annotations

import datetime as dt
import multiprocessing
import os
import shutil
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from unmet.arrays import Integers
from unmet.clusters import connected
from unmet.demand.areas import Area, areas_of_cells, cells_of_stations, period_of
from unmet.demand.booking import Booking
from unmet.demand.from_records import (
    PanelChoices,
    about_records,
    chosen_mapping,
    chosen_sources,
    station_mapping,
)
from unmet.demand.regions import Regions, group_stations
from unmet.errors import InputError
from unmet.estimation.by_area import AddedUp, WholeNetwork, add_up
from unmet.estimation.one_area import AreaEstimate, AreaTask, estimate_area
from unmet.memory import allowed_bytes, require_bytes
from unmet.parquet_files import parquet_rows
from unmet.processes import end_with
from unmet.records.counts import count_notes
from unmet.records.one_file import Reading
from unmet.records.outages import check_outages, merge_outages
from unmet.records.outliers import FAR_AWAY
from unmet.records.partitions import Partition, partition_records
from unmet.records.sessions import Records
from unmet.records.sources import expand_paths, is_parquet
from unmet.records.stations import check_stations
from unmet.records.times import read_moment
from unmet.runs import available_cores

__all__ = ["BYTES_PER_SESSION", "Places", "recover_by_area", "rows_beyond_memory"]

BYTES_PER_SESSION = 650  # memory of an estimate; measured with 1 and 5 million sessions
MAX_ROWS = 5_000_000  # sessions of an area, unless the number of areas is given
MEMORY_SHARE = 0.6  # share of the memory that areas may take
ATTEMPTS = 3  # to estimate an area on a cluster if its worker is lost


Estimates = Generator[AreaEstimate | None, None, None]


@dataclass(frozen=True, slots=True)
class Places:
    """Where areas are estimated."""

    workers: int | None = None  # processes on this machine; by default one per core
    scheduler: str | None = None  # address of a Dask cluster whose workers see the same disk


def recover_by_area(
    choices: PanelChoices,
    options: dict[str, Any],
    folder: Path,
    *,
    areas: int | None = None,
    places: Places = Places(),  # noqa: B008 (it is frozen)
    on_read: Callable[[int, int], None] | None = None,
    on_area: Callable[[int, int], None] | None = None,
) -> tuple[AddedUp, pl.DataFrame, dict[str, Any]]:
    """Estimate the lost demand of records area by area.

    Args:
        choices: the records, with a table of stations.
        options: options of `LostDemand`, with `seed` and `interval`.
        folder: existing folder for temporary files, which take about 60 bytes per session.
        areas: highest number of areas; by default as many as the memory requires.
        places: where to estimate.
        on_read: called with the number of files read so far, and of all files.
        on_area: called with the number of areas done so far, and of all areas.

    Returns:
        Lost demand, the rows that were set aside, and counts of rows for a summary.
    """
    _check(choices)
    table = check_stations(choices.stations, choices.crs, station_mapping(choices))
    regions, note = group_stations(_with_plugs(table.kept), choices.regions)
    cell = cells_of_stations(table.kept, regions)
    cell_folder = folder / "cells"
    cell_folder.mkdir()
    try:
        partition, records = partition_records(
            chosen_sources(choices),
            cell_folder,
            _reading(choices, set(table.kept["station_id"])),
            table,
            cell,
            given=choices.stations,
            join_minutes=choices.join_restarts,
            progress=on_read,
        )
        outages, rejected = _outages(choices, records)
        chosen = _areas(cell, partition, areas, places)
        zone = choices.time_zone or records.time_zone
        tasks = _tasks(choices, options, chosen, partition, records.stations, regions, outages, zone)
        per_region = _areas_of_region(chosen, regions)
        network = WholeNetwork(
            stations=records.stations,
            regions=regions,
            areas_of_region=per_region,
            period=tasks[0].period,
            time_zone=zone,
            interval=options["interval"],
            note=note,
        )
        added = add_up(_estimated(tasks, places, on_area), network)
    finally:
        shutil.rmtree(cell_folder, ignore_errors=True)
    return added, pl.concat([*rejected, *added.rejected]), _about(choices, records, added, outages, zone)


def rows_beyond_memory(files: Sequence[Path]) -> int:
    """Number of rows of the records, if all are Parquet files and together do not fit into memory; else 0."""
    try:
        paths = [path for file in files for path in expand_paths(file)]
        if not paths or not all(is_parquet(path) for path in paths):
            return 0
        rows = sum(parquet_rows(path) for path in paths)
    except (InputError, OSError, pl.exceptions.PolarsError):  # reading the file reports what is wrong
        return 0
    return rows if rows * BYTES_PER_SESSION > allowed_bytes() else 0


def _check(choices: PanelChoices) -> None:
    if choices.stations is None:
        raise InputError("Areas need the positions of stations: give a table of stations with --stations.")
    if choices.operator is not None or choices.share is not None:
        raise InputError(
            "A market share cannot be estimated area by area: leave out --operator and --share, or leave out --by-area."
        )
    Booking(choices.booking)


def _with_plugs(stations: pl.DataFrame) -> pl.DataFrame:
    """Stations with a number of plugs, of which regions only add up the total: 1 if it is not listed."""
    return stations.with_columns(pl.col("plugs").fill_null(1).cast(pl.Int32))


def _reading(choices: PanelChoices, known: set[str]) -> Reading:
    since, until = (
        read_moment(f"--{name}", text, choices.time_zone)
        for name, text in (("since", choices.since), ("until", choices.until))
    )
    now = dt.datetime.now(dt.UTC)
    return Reading(choices.format, chosen_mapping(choices), choices.time_zone, known, now, since, until)


def _outages(choices: PanelChoices, records: Records) -> tuple[pl.DataFrame, list[pl.DataFrame]]:
    rejected = [records.rejected, records.rejected_stations]
    if choices.outages is None:
        return records.outages, rejected
    checked = check_outages(choices.outages, records.stations["station_id"])
    rejected.append(checked.rejected.select(pl.lit(str(choices.outages)).alias("file"), pl.all()))
    return merge_outages(pl.concat([records.outages, checked.kept])), rejected


def _areas(cell: Integers, partition: Partition, areas: int | None, places: Places) -> list[Area]:
    """Areas so small that one per worker fits into memory."""
    # A worker of a cluster has its own memory, so only one area counts there.
    rows, at_once = int(partition.rows.sum()), 1 if places.scheduler else places.workers or available_cores()
    if areas is None:
        rows_per_area = min(MAX_ROWS, MEMORY_SHARE * allowed_bytes() / at_once / BYTES_PER_SESSION)
        areas = max(1, int(np.ceil(rows / max(rows_per_area, 1))))
    chosen = areas_of_cells(cell, partition.rows, areas)
    if not chosen:
        raise InputError("There are no sessions to build a panel from: see the rows that were set aside.")
    largest = max(area.rows for area in chosen)
    if not places.scheduler:
        require_bytes(
            min(at_once, len(chosen)) * largest * BYTES_PER_SESSION,
            f"The largest area, with {largest:,} sessions,",
            "ask for more areas with --by-area, or for fewer at a time with --workers",
        )
    return chosen


def _areas_of_region(areas: Sequence[Area], regions: Regions) -> dict[str, int]:
    """Number of areas that have stations of each region."""
    names = regions.of_station["unique_id"]
    return Counter(name for area in areas for name in names.gather(area.stations).unique().to_list())


def _tasks(
    choices: PanelChoices,
    options: dict[str, Any],
    areas: Sequence[Area],
    partition: Partition,
    stations: pl.DataFrame,
    regions: Regions,
    outages: pl.DataFrame,
    zone: str,
) -> list[AreaTask]:
    period = period_of(partition.days)
    return [
        AreaTask(
            area=area,
            partition=partition,
            stations=stations[area.stations],
            regions=regions,
            outages=outages,
            period=period,
            time_zone=zone,
            country=choices.country,
            booking=choices.booking,
            options=options,
        )
        for area in areas
    ]


def _estimated(tasks: Sequence[AreaTask], places: Places, on_area: Callable[[int, int], None] | None) -> Estimates:
    """Estimates in the order of the areas, so that sums do not depend on the number of workers."""
    workers = min(places.workers or available_cores(), len(tasks))
    estimates: Estimates
    if places.scheduler:
        estimates = _on_cluster(tasks, places.scheduler)
    elif workers == 1:
        estimates = (estimate_area(task) for task in tasks)
    else:
        estimates = _in_processes(tasks, workers)
    with closing(estimates):
        for done, estimate in enumerate(estimates, start=1):
            yield estimate
            if on_area is not None:
                on_area(done, len(tasks))


def _in_processes(tasks: Sequence[AreaTask], workers: int) -> Estimates:
    """Estimate in processes on this machine, which end with this one."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, context, end_with, (os.getpid(),))
    try:
        futures = [pool.submit(estimate_area, task) for task in tasks]
        futures.reverse()
        while futures:  # popped, so that the memory of a result is freed after its use
            yield futures.pop().result()
    except BrokenProcessPool:
        raise InputError(
            "A process that estimated an area was ended by the system, probably for lack of memory: ask for more "
            "areas with --by-area, or for fewer at a time with --workers."
        ) from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _on_cluster(tasks: Sequence[AreaTask], scheduler: str) -> Estimates:
    """Estimate on the workers of a Dask cluster, which read the sessions from a shared disk."""
    client = connected(scheduler)
    with client:
        futures = [client.submit(estimate_area, task, pure=False, retries=ATTEMPTS) for task in tasks]
        futures.reverse()
        while futures:
            future = futures.pop()
            try:
                yield future.result()
            except OSError as error:
                raise InputError(
                    f"A worker of {scheduler} cannot read an area ({error}): put --out on a disk that all workers see."
                ) from None
            finally:
                future.release()


def _about(choices: PanelChoices, records: Records, added: AddedUp, outages: pl.DataFrame, zone: str) -> dict[str, Any]:
    """Counts of rows and notes on the records, over all areas."""
    counts = records.counts | added.counts
    counts["rows_set_aside"] = records.rejected.height + sum(part.height for part in added.rejected)
    far = counts.get(FAR_AWAY, 0)
    are = "1 session is" if far == 1 else f"{far:,} sessions are"
    far_note = f"{are} a year or more away from all others and set aside: the clock was probably wrong."
    other_notes = count_notes({"ids_used_twice": 0} | counts, counts["rows_kept"])
    notes = [*other_notes, *([far_note] if far else []), *records.notes]
    return about_records(choices, replace(records, counts=counts, notes=notes), outages, zone)
