"""Areas: groups of neighbouring stations whose sessions fit into memory, for records that do not fit all at once.

Stations are ordered so that neighbours are next to each other: by region, then by repeatedly halving each region across
its longer side. Stations that could be one site stay together. The order is cut into cells. Once the sessions of every
cell are counted, consecutive cells are joined into areas with about the same number of sessions.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from unmet.arrays import Floats, Integers
from unmet.demand.regions import Regions
from unmet.demand.sites import SITE_KM
from unmet.errors import InputError
from unmet.geo import EARTH_RADIUS_KM, unit_vectors
from unmet.records.outliers import main_days

__all__ = ["MAX_CELLS", "Area", "areas_of_cells", "cells_of_stations", "period_of", "regions_of"]

MAX_CELLS = 240  # every cell is an open file
NEIGHBOURS_KM = 3 * SITE_KM  # distance within which stations are kept together, since positions may still be corrected
FEW = 4  # groups of at most this many points are not halved further


@dataclass(frozen=True, slots=True)
class Area:
    """Cells that are estimated together."""

    number: int
    cells: tuple[int, ...]
    stations: Integers  # rows of the station table
    rows: int  # number of sessions


def cells_of_stations(stations: pl.DataFrame, regions: Regions, max_cells: int = MAX_CELLS) -> Integers:
    """The cell of each station; cells with consecutive numbers are near each other."""
    group, points = _groups(stations)
    region = regions.codes()
    groups = int(group.max(initial=-1)) + 1
    first = np.unique(group, return_index=True)[1]  # a group takes the region of its first station
    order = np.concatenate(
        [
            members[_near_order(points[first[members]])]
            for r in np.unique(region)
            for members in (np.flatnonzero(region[first] == r),)
        ]
        or [np.empty(0, np.int64)]
    )
    cell_of_group = np.empty(groups, np.int64)
    # Cells have about the same number of stations. Every region starts a new cell, so that it is in few areas.
    size = np.bincount(group, minlength=groups)[order]
    per_cell = max(1.0, stations.height / max_cells)
    starts = np.diff(region[first][order], prepend=-1) != 0
    before = np.cumsum(size) - size
    offset = np.maximum.accumulate(np.where(starts, before, 0))
    within = ((before - offset) // per_cell).astype(np.int64)
    cell_of_group[order] = np.cumsum(starts | (np.diff(within, prepend=0) != 0)) - 1
    return cell_of_group[group]


def areas_of_cells(cell_of_station: Integers, rows: Integers, areas: int) -> list[Area]:
    """Join consecutive cells into at most `areas` areas with about the same number of sessions."""
    if areas < 1:
        raise InputError(f"{areas} areas make no sense: ask for at least one.")
    used = np.flatnonzero(rows)
    middle = np.cumsum(rows[used]) - rows[used] / 2
    area_of_cell = np.minimum((middle * areas / max(rows.sum(), 1)).astype(np.int64), areas - 1)
    joined = []
    for number, part in enumerate(np.unique(area_of_cell)):
        cells = used[area_of_cell == part]
        # A cell without sessions belongs to the area of the cell before it, so that every station is in an area.
        low = 0 if number == 0 else int(cells[0])
        later = used[area_of_cell > part]
        high = int(later[0]) if len(later) else len(rows)
        inside = np.flatnonzero((cell_of_station >= low) & (cell_of_station < high))
        joined.append(Area(number, tuple(int(cell) for cell in cells), inside, int(rows[cells].sum())))
    return joined


def regions_of(regions: Regions, station_ids: Sequence[str] | pl.Series) -> Regions:
    """Restrict regions to the given stations."""
    of_station = regions.of_station.filter(pl.col("station_id").is_in(pl.Series(station_ids).implode()))
    centres = regions.centres.join(of_station.select("unique_id").unique(), on="unique_id", how="semi")
    return Regions(of_station, centres.sort("unique_id"))


def period_of(days: pl.DataFrame) -> tuple[dt.datetime, dt.datetime]:
    """The period of all sessions in whole days, without days that are years away from all others.

    Args:
        days: `day` (days since 1970) and `rows` (its sessions).
    """
    if days.is_empty():
        raise InputError("There are no sessions to build a panel from: see the rows that were set aside.")
    first, last = main_days(days)
    day = dt.timedelta(days=1)
    begin = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return begin + first * day, begin + (last + 1) * day


def _groups(stations: pl.DataFrame) -> tuple[Integers, Floats]:
    """Groups of stations that may be one site, and positions as unit vectors; stations without a position are alone."""
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


def _near_order(points: Floats) -> Integers:
    """An order that keeps nearby points next to each other, by repeated halving."""
    if len(points) <= FEW:
        return np.arange(len(points))
    order = np.argsort(points[:, int(np.ptp(points, axis=0).argmax())], kind="stable")
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    return np.concatenate([half[_near_order(points[half])] for half in halves])
