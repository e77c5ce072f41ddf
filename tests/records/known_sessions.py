"""Known sessions, to be written in any layout and compared with what is read."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np

from unmet.records.sessions import Records, read_sessions

BERLIN = ZoneInfo("Europe/Berlin")


@dataclass(frozen=True)
class Row:
    station: str
    plug: int
    start: dt.datetime
    end: dt.datetime
    kwh: float


def made() -> list[Row]:
    """Sessions on two plugs of three stations over two months, across the change of clocks, in order of time."""
    random = np.random.default_rng(5)
    rows = []
    for place in range(6):
        time = dt.datetime(2023, 3, 1, 6, tzinfo=dt.UTC)
        for _ in range(40):
            time += dt.timedelta(minutes=int(random.exponential(1500)) + 10)
            stay = int(random.gamma(2, 50)) + 6
            end = time + dt.timedelta(minutes=stay)
            rows.append(Row(f"S{place // 2}", place % 2 + 1, time, end, round(stay / 60 * random.uniform(3, 11), 2)))
            time = end
    return sorted(rows, key=lambda row: (row.start, row.station))


ROWS = made()


def read(path: Path, text: str, **options: object) -> Records:
    path.write_text(text, encoding="utf-8")
    return read_sessions(path, join_minutes=0, **options)


def table(time: Callable[[dt.datetime], object], separator: str = ",") -> str:
    lines = [("Station", "Plug", "Start", "End", "Energy (kWh)")]
    lines += [(row.station, row.plug, time(row.start), time(row.end), row.kwh) for row in ROWS]
    return "".join(separator.join(map(str, line)) + "\n" for line in lines)


def is_same(records: Records) -> bool:
    found = records.sessions.select("station_id", "start", "end").rows()
    energies = records.sessions["energy_kwh"].to_numpy()
    return found == [(row.station, row.start, row.end) for row in ROWS] and bool(
        np.allclose(energies, [row.kwh for row in ROWS], atol=0.001)
    )
