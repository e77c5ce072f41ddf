"""Drivers who go to a station nearby: arrivals there tell how many, and they are not lost."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.demand.records import sessions, stations
from unmet.demand.diversion import WINDOW_MS, moments_of_change
from unmet.demand.occupancy import stays_by_station
from unmet.demand.panel import build_panel
from unmet.demand.unserved import Unserved
from unmet.errors import InputError

AUTO = Unserved(spill=None)


def pairs(share: float, number: int = 20, days: int = 60, seed: int = 0) -> tuple[list, list, int, float]:
    """Sites of two stations 50 m apart, and drivers of whom a share tries the other one.

    Rows and names, how many drivers left, and the share of those who found no plug at first that the other one served.
    """
    rng = np.random.default_rng(seed)
    rows, names, left, served_there = [], [], 0, 0
    for pair in range(number):
        free_at = np.zeros((2, 2))
        names += [f"{pair}a", f"{pair}b"]
        for at in np.sort(rng.uniform(0, 24 * days, rng.poisson(24 * days * 1.2))):
            first = int(rng.random() < 0.25)
            tries = [first, 1 - first] if rng.random() < share else [first]
            for i in tries:
                plug = int(free_at[i].argmin())
                if free_at[i, plug] <= at:
                    free_at[i, plug] = at + rng.gamma(4, 0.25)
                    rows.append((f"{pair}{'ab'[i]}", at, free_at[i, plug], 10.0))
                    served_there += i != first
                    break
            else:
                left += 1
    return rows, names, left, served_there / (left + served_there)


def table(names: list[str]) -> pl.DataFrame:
    lat = [55 + 0.1 * (i // 2) + 0.0005 * (i % 2) for i in range(len(names))]
    return stations(*names, plugs=[2] * len(names)).with_columns(lat=pl.Series(lat), lon=pl.lit(12.0))


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6])
def test_those_who_divert_are_found_and_not_lost(share):
    rows, names, left, seen_there = pairs(share)
    made = build_panel(sessions(*rows), table(names), unserved=AUTO)
    without = build_panel(sessions(*rows), table(names))
    assert without.exposure.spill == 0
    lost, counted_twice = (panel.stations["lost_arrivals"].sum() for panel in (made, without))
    assert made.exposure.spill == pytest.approx(seen_there, abs=0.1)
    assert lost == pytest.approx(left, rel=0.2)
    if share:
        assert counted_twice > 1.2 * left


def test_without_positions_it_cannot_be_told():
    rows, names, *_ = pairs(0.3, 2, 10)
    nowhere = table(names).with_columns(lat=pl.lit(None, pl.Float64), lon=pl.lit(None, pl.Float64))
    with pytest.raises(InputError, match="without positions: give lat and lon"):
        build_panel(sessions(*rows), nowhere, regions="station", unserved=AUTO)


def test_one_station_has_no_neighbours():
    rows, names, *_ = pairs(0.0, 1, 10)
    alone = [row for row in rows if row[0] == names[0]]
    assert build_panel(sessions(*alone), table(names[:1]), unserved=AUTO).exposure.spill == 0


even, odd = (st.integers(0, 30).map(lambda n, plus=plus: 2 * n + plus) for plus in (0, 1))
visits_of = st.lists(st.tuples(st.integers(0, 2), even, odd), max_size=40)  # nobody comes as another one goes


@given(visits_of, st.lists(st.integers(1, 2), min_size=3, max_size=3))
def test_moments_equal_a_count_by_the_minute(rows, plugs):
    minute, window = 60_000, WINDOW_MS // 60_000
    station, start, length = np.array(rows, np.int64).reshape(-1, 3).T
    end = start + length
    nearest = np.array([[1], [2], [0]])
    stays = stays_by_station(station.copy(), start * minute, end * minute, 3)
    found = moments_of_change(stays, np.array(plugs), nearest)
    expected = []
    for s in range(3):
        here = station == s
        cars = [int((here & (start <= m) & (end > m)).sum()) for m in range(-1, 130)]
        full = np.array(cars) >= plugs[s]
        begins = [m - 1 for m in range(1, len(full)) if full[m] and not full[m - 1]]
        stops = [m - 1 for m in range(1, len(full)) if full[m - 1] and not full[m]]
        others = start[station == nearest[s, 0]]
        moments = sorted([(at, 1) for at in begins] + [(at, -1) for at in stops])
        for i, (at, sign) in enumerate(moments):
            near = [abs(at - moments[j][0]) for j in (i - 1, i + 1) if 0 <= j < len(moments)]
            long = min([window, *near])
            after = int(((others > at) & (others <= at + long)).sum())
            before = int(((others >= at - long) & (others < at)).sum())
            expected.append((s, at, long, sign * (after - before)))
    ours = [(s, at // minute, long // minute, more) for s, at, long, more in zip(*found, strict=True)]
    assert sorted(ours) == sorted(expected)
