"""The same sessions in many layouts give the same sessions, most of them without any option."""

from __future__ import annotations

import datetime as dt
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest
import xlsxwriter

from unmet.records.sessions import read_sessions

NOW = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
COPENHAGEN = ZoneInfo("Europe/Copenhagen")


def truth(rows: int = 400) -> pl.DataFrame:
    """Sessions to the minute over ten months, in order of time."""
    random = np.random.default_rng(3)
    minutes = np.sort(random.choice(np.arange(0, 300 * 1440, 7), rows, replace=False))
    length = random.integers(20, 300, rows)
    first = dt.datetime(2023, 1, 5, tzinfo=dt.UTC)
    return pl.DataFrame(
        {
            "session_id": [f"T{n}" for n in range(rows)],
            "station_id": [f"Gare {n % 7} Élysée" for n in range(rows)],
            "plug_id": [str(n % 3 + 1) for n in range(rows)],
            "start": [first + dt.timedelta(minutes=int(minute)) for minute in minutes],
            "end": [first + dt.timedelta(minutes=int(m + n)) for m, n in zip(minutes, length, strict=True)],
            "energy_kwh": np.round(random.uniform(3, 11, rows) * length / 60, 2),
        }
    )


TRUTH = truth()


def table(
    form: str, zone: ZoneInfo | None = None, names: str = "Session ID,Station,Plug,Start Time,End Time,Energy (kWh)"
):
    """The sessions as text under other names, times in a form and zone."""
    local = TRUTH.with_columns(
        pl.col("start", "end").dt.convert_time_zone(str(zone or "UTC")).dt.replace_time_zone(None).dt.strftime(form)
    )
    local.columns = names.split(",")
    return local.with_columns(pl.last().cast(pl.String))


def write_csv(path: Path, frame: pl.DataFrame, separator: str = ",", encoding: str = "utf-8") -> None:
    path.write_bytes(frame.write_csv(separator=separator).encode(encoding))


def iso_with_offsets(path: Path) -> dict[str, Any]:
    write_csv(path, table("%Y-%m-%dT%H:%M:%SZ"))
    return {}


def semicolons_and_commas(path: Path) -> dict[str, Any]:
    frame = table("%d.%m.%Y %H:%M").with_columns(pl.last().str.replace(".", ",", literal=True))
    write_csv(path, frame, ";", "cp1252")
    return {}


def utf16_tabs(path: Path) -> dict[str, Any]:
    write_csv(path, table("%Y/%m/%d %H:%M:%S"), "\t", "utf-16")
    return {}


def months_first(path: Path) -> dict[str, Any]:
    write_csv(path, table("%m/%d/%Y %I:%M %p"))
    return {}


def local_times(path: Path) -> dict[str, Any]:
    write_csv(path, table("%d/%m/%Y %H:%M", COPENHAGEN))
    return {"time_zone": "Europe/Copenhagen"}


def watt_hours(path: Path) -> dict[str, Any]:
    frame = table("%Y-%m-%d %H:%M:%S", names="Session ID,Station,Plug,Start Time,End Time,Energy (Wh)")
    write_csv(path, frame.with_columns((pl.last().cast(pl.Float64) * 1000).round().cast(pl.Int64)))
    return {}


def nameless_watt_hours(path: Path) -> dict[str, Any]:
    frame = table("%Y-%m-%d %H:%M:%S", names="Session ID,Station,Plug,Start Time,End Time,Energy")
    write_csv(path, frame.with_columns((pl.last().cast(pl.Float64) * 1000).round().cast(pl.Int64)))
    return {}


def json_array(path: Path) -> dict[str, Any]:
    names = "sessionId,chargingStation,connectorId,startTime,endTime,energyDelivered"
    path.write_text(json.dumps(table("%Y-%m-%dT%H:%M:%SZ", names=names).to_dicts()))
    return {}


def json_lines(path: Path) -> dict[str, Any]:
    rows = table("%Y-%m-%dT%H:%M:%SZ").to_dicts()
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return {}


def parquet(path: Path) -> dict[str, Any]:
    TRUTH.rename({"start": "plug in time", "end": "plug out time"}).write_parquet(path)
    return {}


def excel_dates(path: Path) -> dict[str, Any]:
    book = xlsxwriter.Workbook(path)
    form = book.add_format({"num_format": "dd/mm/yyyy hh:mm"})
    for sheet, part in (("Winter", TRUTH.head(150)), ("Summer", TRUTH.tail(250))):
        page = book.add_worksheet(sheet)
        page.write(0, 0, "Charging sessions")
        page.write_row(2, 0, ["Session ID", "Station", "Plug", "Start Time", "End Time", "Energy (kWh)"])
        for place, row in enumerate(part.rows(), start=3):
            page.write_row(place, 0, row[:3])
            page.write_datetime(place, 3, row[3].replace(tzinfo=None), form)
            page.write_datetime(place, 4, row[4].replace(tzinfo=None), form)
            page.write_number(place, 5, row[5])
    book.close()
    return {}


def excel_serials(path: Path) -> dict[str, Any]:
    days = (pl.col("start", "end").dt.epoch("ms") / 86_400_000 + 25_569).round(10)
    frame = TRUTH.with_columns(days)
    frame.columns = ["Session ID", "Station", "Plug", "Start Time", "End Time", "Energy (kWh)"]
    write_csv(path, frame)
    return {}


def seconds_since_1970(path: Path) -> dict[str, Any]:
    frame = TRUTH.with_columns(pl.col("start", "end").dt.epoch("s"))
    frame.columns = ["transaction_id", "charger_id", "port", "started_at", "ended_at", "total_kwh"]
    write_csv(path, frame, "|")
    return {}


def javascript_dates(path: Path) -> dict[str, Any]:
    frame = TRUTH.with_columns(
        pl.col("start", "end").dt.convert_time_zone("Europe/Copenhagen").dt.strftime("%a %b %d %Y %H:%M:%S GMT%z (CET)")
    )
    frame.columns = ["Session ID", "Station", "Plug", "Start Time", "End Time", "Energy (kWh)"]
    write_csv(path, frame)
    return {}


def date_and_time_columns(path: Path) -> dict[str, Any]:
    frame = TRUTH.select(
        pl.col("session_id").alias("ID"),
        pl.col("station_id").alias("Location"),
        pl.col("plug_id").alias("Connector"),
        pl.col("start").dt.strftime("%d-%m-%Y").alias("Start Date"),
        pl.col("start").dt.strftime("%H:%M").alias("Start Time"),
        pl.col("end").dt.strftime("%d-%m-%Y").alias("End Date"),
        pl.col("end").dt.strftime("%H:%M").alias("End Time"),
        pl.format("{} kWh", "energy_kwh").alias("Energy"),
    )
    write_csv(path, frame)
    return {}


def own_names(path: Path) -> dict[str, Any]:
    names = "Nr,Säule,Stecker,Ladebeginn,Ladeende,Menge"
    write_csv(path, table("%d.%m.%Y %H:%M", names=names), ";")
    return {"mapping": dict(zip(TRUTH.columns, names.split(","), strict=True))}


LAYOUTS: dict[Callable[[Path], dict[str, Any]], str] = {
    iso_with_offsets: "a.csv",
    semicolons_and_commas: "a.csv",
    utf16_tabs: "a.txt",
    months_first: "a.csv",
    local_times: "a.csv",
    watt_hours: "a.csv",
    nameless_watt_hours: "a.csv",
    json_array: "a.json",
    json_lines: "a.jsonl.gz",
    parquet: "a.parquet",
    excel_dates: "a.xlsx",
    excel_serials: "a.csv",
    seconds_since_1970: "a.txt",
    javascript_dates: "a.csv",
    date_and_time_columns: "a.csv",
    own_names: "a.csv",
}


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
def test_the_same_sessions_in_every_layout(layout, tmp_path):
    path = tmp_path / LAYOUTS[layout]
    options = layout(path)
    records = read_sessions(path, now=NOW, **options)
    assert records.rejected.is_empty()
    found = records.sessions.select(TRUTH.columns).sort("start", "session_id")
    wanted = TRUTH.sort("start", "session_id").with_columns(pl.col("start", "end").cast(pl.Datetime("ms", "UTC")))
    assert found.drop("energy_kwh").equals(wanted.drop("energy_kwh"))
    assert np.allclose(found["energy_kwh"], wanted["energy_kwh"])


def test_most_layouts_need_no_mapping(tmp_path):
    without = [layout for layout, name in LAYOUTS.items() if not layout(tmp_path / name)]
    assert len(LAYOUTS) >= 12
    assert len(without) >= 9


def test_a_spreadsheet_that_misread_dates_is_put_right(tmp_path):
    """Days came first; a spreadsheet that puts months first turned those it could read, and left the others as text."""
    book = xlsxwriter.Workbook(tmp_path / "a.xlsx")
    form = book.add_format({"num_format": "mm/dd/yyyy hh:mm"})
    page = book.add_worksheet()
    page.write_row(0, 0, ["Session ID", "Station", "Plug", "Start Time", "End Time", "Energy (kWh)"])
    for place, row in enumerate(TRUTH.rows(), start=1):
        page.write_row(place, 0, row[:3])
        page.write_number(place, 5, row[5])
        for column, time in ((3, row[3]), (4, row[4])):
            if time.day <= 12:
                page.write_datetime(place, column, time.replace(tzinfo=None, month=time.day, day=time.month), form)
            else:
                page.write_string(place, column, f"{time:%d/%m/%Y %H:%M}")
    book.close()
    records = read_sessions(tmp_path / "a.xlsx", now=NOW)
    assert records.rejected.is_empty()
    assert records.sessions["start"].to_list() == TRUTH["start"].to_list()
    assert any("swapped back" in note for note in records.notes)
