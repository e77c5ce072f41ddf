"""Targets for fuzzing: every reader of files from outside, with small valid inputs to start from.

`benchmarks.fuzz` mutates these inputs. Inputs that once crashed a reader are kept in `tests/fuzz_corpus` as tests.
"""

from __future__ import annotations

import datetime as dt
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from tests.models.panels import POSITIONS, capped, quick, small_panel
from tests.small_network import STATIONS, records

CORPUS = Path(__file__).parent / "fuzz_corpus"
TIME = dt.datetime(2024, 3, 4, 8, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class Target:
    """A reader, the name of the file it reads, and valid contents of that file."""

    read: Callable[[Path], object]
    file: str
    seeds: Callable[[], list[bytes]]


def sessions() -> pl.DataFrame:
    """Some sessions, as `unmet` writes them."""
    start = [TIME + dt.timedelta(hours=7 * i) for i in range(30)]
    return pl.DataFrame(
        {
            "session_id": [str(i) for i in range(30)],
            "station_id": [f"s{i % 3}" for i in range(30)],
            "start": start,
            "end": [time + dt.timedelta(hours=1 + i % 3) for i, time in enumerate(start)],
            "energy_kwh": [5.0 + i for i in range(30)],
        }
    )


def _csv(frame: pl.DataFrame) -> bytes:
    return frame.write_csv().encode()


def _parquet(frame: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()


def _workbook(frame: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    frame.with_columns(pl.col("start", "end").dt.replace_time_zone(None)).write_excel(file)
    return file.getvalue()


def _ocpi() -> bytes:
    cdrs = [
        {
            "id": str(i), "start_date_time": f"2024-03-0{i}T08:00:00Z", "end_date_time": f"2024-03-0{i}T09:00:00Z",
            "cdr_location": {"id": "L1", "evse_uid": "E1", "connector_id": "1", "coordinates": {"latitude": "55.6",
            "longitude": "12.5"}}, "total_energy": 7.5, "last_updated": "2024-03-09T09:00:00Z",
        }
        for i in range(1, 8)
    ]  # fmt: skip
    return json.dumps({"data": cdrs, "status_code": 1000}).encode()


def _trips() -> pl.DataFrame:
    start = [TIME + dt.timedelta(hours=3 * i) for i in range(12)]
    columns = {"vehicle_id": [f"v{i % 2}" for i in range(12)], "start_time": start,
               "end_time": [time + dt.timedelta(minutes=20) for time in start], "end_lat": [55.6] * 12,
               "end_lon": [12.5] * 12, "distance_km": [8.0] * 12}  # fmt: skip
    return pl.DataFrame(columns)


def _points() -> pl.DataFrame:
    times = [TIME + dt.timedelta(seconds=20 * i) for i in range(60)]
    return pl.DataFrame(
        {"vehicle_id": ["v"] * 60, "time": times, "lat": [55.6 + i / 1000 for i in range(60)], "lon": [12.5] * 60}
    )


def _read_sessions(path: Path) -> object:
    from unmet.records.sessions import read_sessions

    return read_sessions(path)


def _read_trips(path: Path) -> object:
    from unmet.city.gates import check_trips

    return check_trips(path)


def _stream_trips(path: Path) -> object:
    """Stream the trips of a Parquet file through a simulation."""
    from unmet.simulation.scenario import Scenario
    from unmet.simulation.stream import stream_simulation

    return stream_simulation([path], STATIONS, Scenario(penetration=1.0), path.parent).trips


def _read_stations(path: Path) -> object:
    from unmet.city.gates import check_city_stations

    return check_city_stations(path)


def _read_points(path: Path) -> object:
    from unmet.city.gps import stitch_trips

    return stitch_trips(path)


def _read_scenario(path: Path) -> object:
    from unmet.simulation.scenario import read_scenario

    return read_scenario(path)


def _read_mapping(path: Path) -> object:
    from unmet.records.mapping import read_mapping

    return read_mapping(path)


def _read_areas(path: Path) -> object:
    from unmet.demand.regions import area_regions

    return area_regions(pl.DataFrame({"station_id": ["a"], "lat": [55.6], "lon": [12.5], "plugs": [1]}), path)


def _read_panel_table(path: Path) -> object:
    from unmet.demand.stored import read_panel
    from unmet.models.series import read_series

    return read_series(read_panel(path).table)


@cache
def _stored_model() -> Path:
    import tempfile

    fitted = quick("linear", epochs=1).fit(capped(small_panel(), 8).drop("truth"), POSITIONS)
    return fitted.save(Path(tempfile.mkdtemp(prefix="unmet-fuzz-")) / "model")


def _load_model(path: Path) -> object:
    """Load a model whose `model.json` is the input, and forecast with it: a model that loads must also work."""
    from unmet.models.forecaster import Forecaster

    whole = _stored_model() / "weights.safetensors"
    if not (path.parent / whole.name).exists():
        shutil.copy(whole, path.parent)
    return Forecaster.load(path.parent).forecast(capped(small_panel(), 8).drop("truth")).table


def _load_weights(path: Path) -> object:
    from unmet.models.forecaster import Forecaster

    if not (path.parent / "model.json").exists():
        shutil.copy(_stored_model() / "model.json", path.parent)
    return Forecaster.load(path.parent)


@cache
def _stored_panel() -> Path:
    import tempfile

    from unmet.demand.panel import Panel
    from unmet.demand.stored import save_panel

    folder = Path(tempfile.mkdtemp(prefix="unmet-fuzz-")) / "panel"
    save_panel(Panel(records(14)[0], STATIONS, regions=2, time_zone="Europe/Copenhagen"), folder)
    return folder


def _load_panel(path: Path) -> object:
    from unmet.demand.stored import load_panel, read_panel

    for file in _stored_panel().iterdir():
        if file.name != path.name and not (path.parent / file.name).exists():
            shutil.copy(file, path.parent)
    read_panel(path.parent)
    return load_panel(path.parent)


@cache
def _client() -> Any:
    """A client of the app, without a network, with one run and no room for jobs."""
    import tempfile

    from starlette.testclient import TestClient

    from tests.views.runs import write_lost
    from unmet.views.app.server import Limits, Settings, make_server

    folder = Path(tempfile.mkdtemp(prefix="unmet-fuzz-"))
    settings = Settings(runs=(write_lost(folder / "run"),), folder=folder / "work", limits=Limits(waiting_jobs=0))
    return TestClient(make_server(settings), base_url="http://127.0.0.1")


def _ask_api(path: Path) -> object:
    """Send a request, whose first line is the path and whose rest is the body; a status of 500 or more is a failure."""
    line, separator, body = path.read_bytes().partition(b"\n")
    address = "/" + quote(line[:2000].lstrip(b"/"), safe="/?&=%.-_~")
    method = "POST" if separator else "GET"
    answer = _client().request(method, address, content=body, headers={"content-type": "application/json"})
    assert answer.status_code < 500, f"status {answer.status_code}"
    return answer


def _requests() -> list[bytes]:
    # An unknown station: a question is validated before it is simulated, and a simulation takes a second.
    nowhere = {"plugs": [["nowhere", 4]], "penetration": 0.05, "growth": 0.1, "queue": "first-come"}
    _client().post("/api/city/what-if", json={"penetration": 0.01})  # the city is built once, before anything is timed
    return [
        b"/api/city/what-if\n" + json.dumps(nowhere).encode(),
        b"/api/city/regions/r1\n" + json.dumps(nowhere | {"market_share": 0.5}).encode(),
        b"/api/runs/given/tables/sites?limit=5&offset=0",
        b"/api/runs/given/files/sites.csv",
        b"/api/runs/given/summary",
        b"/api/records?name=sessions.csv\n" + _csv(sessions().head(3)),
        b"/api/records/0123456789abcdef/recover\n" + b'{"time_zone": "UTC", "regions": "10", "waiting": 0.1}',
        b"/api/plan\n" + b'{"run": "given", "plugs": 5, "site_cost": 10.0}',
        b"/api/forecast\n" + b'{"run": "given", "hours": 24}',
        b"/api/jobs/0123456789abcdef",
    ]


def _areas() -> bytes:
    square = [[[12, 55], [13, 55], [13, 56], [12, 56], [12, 55]]]
    feature = {"type": "Feature", "properties": {"name": "A"}, "geometry": {"type": "Polygon", "coordinates": square}}
    return json.dumps({"type": "FeatureCollection", "features": [feature]}).encode()


SCENARIO = b"queue: first-come\npenetration: 0.05\nseed: 1\ncity:\n  trips: built-in\n  cars: 1000\nversion: 0.1.0\n"
MAPPING = b"start: [Date, Time]\nend: End\ntime_zone: Europe/Copenhagen\n"
TARGETS: dict[str, Target] = {
    "records-csv": Target(_read_sessions, "s.csv", lambda: [_csv(sessions()), _csv(sessions()).replace(b",", b";")]),
    "records-json": Target(_read_sessions, "s.json", lambda: [_ocpi(), sessions().write_json().encode()]),
    "records-parquet": Target(_read_sessions, "s.parquet", lambda: [_parquet(sessions())]),
    "records-excel": Target(_read_sessions, "s.xlsx", lambda: [_workbook(sessions())]),
    "trips": Target(_read_trips, "t.csv", lambda: [_csv(_trips()), _parquet(_trips())]),
    "trips-streamed": Target(_stream_trips, "t.parquet", lambda: [_parquet(_trips())]),
    "stations": Target(_read_stations, "t.csv", lambda: [b"station_id,lat,lon,power_kw,plugs\na,55.6,12.5,22,2\n"]),
    "gps": Target(_read_points, "p.csv", lambda: [_csv(_points()), _parquet(_points())]),
    "scenario": Target(_read_scenario, "s.yaml", lambda: [SCENARIO]),
    "mapping": Target(_read_mapping, "m.yaml", lambda: [MAPPING]),
    "areas": Target(_read_areas, "a.geojson", lambda: [_areas()]),
    "panel-table": Target(_read_panel_table, "p.csv", lambda: [_csv(small_panel().head(300))]),
    "panel-regions": Target(
        _load_panel, "regions.parquet", lambda: [(_stored_panel() / "regions.parquet").read_bytes()]
    ),
    "panel-about": Target(_load_panel, "panel.json", lambda: [(_stored_panel() / "panel.json").read_bytes()]),
    "model": Target(_load_model, "model.json", lambda: [(_stored_model() / "model.json").read_bytes()]),
    "weights": Target(
        _load_weights, "weights.safetensors", lambda: [(_stored_model() / "weights.safetensors").read_bytes()]
    ),
    "api": Target(_ask_api, "request", _requests),
}
