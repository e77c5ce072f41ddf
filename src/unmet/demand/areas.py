"""Areas: stations near each other, whose sessions fit into memory together, for records that do not fit at once.

Stations are put in order so that neighbours follow each other: by region, then by halving the region again and again
across its longer side. Stations that could be one site stay together. The order is cut into cells; once the sessions
of every cell are counted, cells that follow each other are joined into areas of about equally many sessions.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from unmet.demand.regions import Regions
from unmet.demand.sites import SITE_KM
from unmet.errors import InputError
from unmet.geo import EARTH_RADIUS_KM, unit_vectors
from unmet.records.outliers import main_days

__all__ = ["MOST_CELLS", "Area", "areas_of_cells", "cells_of_stations", "period_of", "regions_of"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_CELLS = 240  # files that are open at one time
NEIGHBOURS_KM = 3 * SITE_KM  # within which stations are kept together: positions may yet be corrected
FEW = 4  # groups of stations that are not halved again


@dataclass(frozen=True, slots=True)
class Area:
    """Cells that are estimated together."""

    number: int
    cells: tuple[int, ...]
    stations: Integers  # rows of the table
    rows: int  # sessions


def cells_of_stations(stations: pl.DataFrame, regions: Regions, most: int = MOST_CELLS) -> Integers:
    """The cell of each station; those of cells with neighbouring numbers are near each other."""
    group, points = _groups(stations)
    region = regions.codes()
    groups = int(group.max(initial=-1)) + 1
    first = np.unique(group, return_index=True)[1]  # a group takes the region of its first station
    order = np.concatenate(
        [members[_halved(points[first[members]])] for r in np.unique(region) for members in (_where(region[first], r),)]
        or [np.empty(0, np.int64)]
    )
    place = np.empty(groups, np.int64)
    # Cells are of about equally many stations, and begin anew with every region, which is then in few areas.
    size = np.bincount(group, minlength=groups)[order]
    per_cell = max(1.0, stations.height / most)
    starts = np.diff(region[first][order], prepend=-1) != 0
    before = np.cumsum(size) - size
    offset = np.maximum.accumulate(np.where(starts, before, 0))
    within = ((before - offset) // per_cell).astype(np.int64)
    place[order] = np.cumsum(starts | (np.diff(within, prepend=0) != 0)) - 1
    return place[group]


def areas_of_cells(cell_of_station: Integers, rows: Integers, areas: int) -> list[Area]:
    """Join cells that follow each other into at most so many areas of about equally many sessions."""
    if areas < 1:
        raise InputError(f"{areas} areas make no sense: ask for at least one.")
    used = np.flatnonzero(rows)
    middle = np.cumsum(rows[used]) - rows[used] / 2
    which = np.minimum((middle * areas / max(rows.sum(), 1)).astype(np.int64), areas - 1)
    made = []
    for number, part in enumerate(np.unique(which)):
        cells = used[which == part]
        # A cell without sessions goes with the one before, so that every station is in some area.
        low = 0 if number == 0 else int(cells[0])
        later = used[which > part]
        high = int(later[0]) if len(later) else len(rows)
        inside = np.flatnonzero((cell_of_station >= low) & (cell_of_station < high))
        made.append(Area(number, tuple(int(cell) for cell in cells), inside, int(rows[cells].sum())))
    return made


def regions_of(regions: Regions, station_ids: Sequence[str] | pl.Series) -> Regions:
    """The regions of some stations, and only these."""
    of_station = regions.of_station.filter(pl.col("station_id").is_in(pl.Series(station_ids).implode()))
    centres = regions.centres.join(of_station.select("unique_id").unique(), on="unique_id", how="semi")
    return Regions(of_station, centres.sort("unique_id"))


def period_of(days: pl.DataFrame) -> tuple[dt.datetime, dt.datetime]:
    """The whole days of all sessions, by `day, rows` of them; those years away from all others are left out."""
    if days.is_empty():
        raise InputError("There is no session to make a panel of: see the rows that were set aside.")
    first, last = main_days(days)
    day = dt.timedelta(days=1)
    begin = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return begin + first * day, begin + (last + 1) * day


def _groups(stations: pl.DataFrame) -> tuple[Integers, Floats]:
    """Groups of stations that may be one site, and positions as unit vectors; stations without one are alone."""
    placed = np.flatnonzero((stations["lat"].is_not_null() & stations["lon"].is_not_null()).to_numpy())
    points = np.zeros((stations.height, 3))
    if len(placed):
        at = stations[placed]
        points[placed] = unit_vectors(at["lat"].to_numpy(), at["lon"].to_numpy())
    links = np.empty((0, 2), np.int64)
    if len(placed) > 1:
        near = KDTree(points[placed]).query_pairs(
            2 * np.sin(NEIGHBOURS_KM / EARTH_RADIUS_KM / 2), output_type="ndarray"
        )
        links = placed[near] if len(near) else links
    graph = coo_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(stations.height,) * 2)
    return connected_components(graph, directed=False)[1].astype(np.int64), points


def _halved(points: Floats) -> Integers:
    """An order in which points that are near each other follow each other."""
    if len(points) <= FEW:
        return np.arange(len(points))
    order = np.argsort(points[:, int(np.ptp(points, axis=0).argmax())], kind="stable")
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    return np.concatenate([half[_halved(points[half])] for half in halves])


def _where(values: Integers, value: int) -> Integers:
    return np.flatnonzero(values == value)
