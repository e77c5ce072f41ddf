"""Targets for fuzzing: every reader of files from outside, with small valid inputs to start from.

`benchmarks.fuzz` mutates these inputs. Inputs that once crashed a reader are kept in `tests/fuzz_corpus` as tests.
"""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from tests.fuzz_inputs import (
    EVENTS,
    MAPPING,
    OPERATOR_STATIONS,
    PLANS,
    ROADS,
    SCENARIO,
    areas,
    csv_of,
    gps_points,
    json_records,
    ocpi_cdrs,
    ocpi_locations,
    operator_tables,
    parquet_of,
    sessions,
    trips,
    workbook_of,
)
from tests.models.panels import POSITIONS, capped, quick, small_panel
from tests.small_network import STATIONS, records

CORPUS = Path(__file__).parent / "fuzz_corpus"


@dataclass(frozen=True, slots=True)
class Target:
    """A reader, the name of the file it reads, and valid contents of that file."""

    read: Callable[[Path], object]
    file: str
    seeds: Callable[[], list[bytes]]


def _read_sessions(path: Path) -> object:
    from unmet.records.sessions import read_sessions

    return read_sessions(path)


def _read_locations(path: Path) -> object:
    """Read OCPI locations beside the CDRs that name them."""
    from unmet.records.sessions import read_sessions

    cdrs = path.with_name("cdrs.json")
    cdrs.write_bytes(ocpi_cdrs())
    return read_sessions([cdrs, path])


def _read_operator_stations(path: Path) -> object:
    from unmet.records.stations import check_stations

    return check_stations(path)


def _read_matsim(path: Path) -> object:
    """Read a network, or plans and events on a valid one, whichever the input seems to be."""
    from unmet.city.matsim import MatsimDay, read_matsim_trips
    from unmet.city.matsim.network import read_road_network

    if b"<node" in path.read_bytes():
        return read_road_network(path)
    roads = path.with_name("roads.xml")
    roads.write_bytes(ROADS)
    return read_matsim_trips(path, "EPSG:25832", MatsimDay(), read_road_network(roads))


def _read_draws(path: Path) -> object:
    """Read draws of lost drivers, as a plan does."""
    from unmet.planning.hidden import read_hidden

    return read_hidden(_lost_panel(), path.parent)


@cache
def _lost_panel() -> Any:
    from tests.views.runs import write_lost
    from unmet.demand.stored import load_panel

    return load_panel(write_lost(_folder() / "run") / "panel")


@cache
def _draws() -> bytes:
    from tests.views.runs import write_lost
    from unmet.planning.hidden import DRAWS_FILE

    return parquet_of(pl.read_parquet(write_lost(_folder() / "run") / DRAWS_FILE).head(20))


def _folder() -> Path:
    """A new folder, which is removed when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="unmet-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


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
    fitted = quick("linear", epochs=1).fit(capped(small_panel(), 8).drop("truth"), POSITIONS)
    return fitted.save(_folder() / "model")


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
    from unmet.demand.panel import Panel
    from unmet.demand.stored import save_panel

    folder = _folder() / "panel"
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
    from starlette.testclient import TestClient

    from tests.views.runs import write_lost
    from unmet.views.app.server import Limits, Settings, make_server

    folder = _folder()
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
        b"/api/records?name=sessions.csv\n" + csv_of(sessions().head(3)),
        b"/api/records/0123456789abcdef/recover\n" + b'{"time_zone": "UTC", "regions": "10", "waiting": 0.1}',
        b"/api/plan\n" + b'{"run": "given", "plugs": 5, "site_cost": 10.0}',
        b"/api/forecast\n" + b'{"run": "given", "hours": 24}',
        b"/api/jobs/0123456789abcdef",
    ]


TARGETS: dict[str, Target] = {
    "records-csv": Target(_read_sessions, "s.csv", operator_tables),
    "records-json": Target(_read_sessions, "s.json", json_records),
    "records-parquet": Target(_read_sessions, "s.parquet", lambda: [parquet_of(sessions())]),
    "records-excel": Target(_read_sessions, "s.xlsx", lambda: [workbook_of(sessions())]),
    "records-stations": Target(
        _read_operator_stations,
        "t.csv",
        lambda: [b"station_id,lat,lon,power_kw,plugs\na,55.6,12.5,22,2\n", OPERATOR_STATIONS],
    ),
    "records-locations": Target(_read_locations, "l.json", lambda: [ocpi_locations()]),
    "matsim": Target(_read_matsim, "m.xml", lambda: [ROADS, PLANS, EVENTS]),
    "trips": Target(_read_trips, "t.csv", lambda: [csv_of(trips()), parquet_of(trips())]),
    "trips-streamed": Target(_stream_trips, "t.parquet", lambda: [parquet_of(trips())]),
    "stations": Target(_read_stations, "t.csv", lambda: [b"station_id,lat,lon,power_kw,plugs\na,55.6,12.5,22,2\n"]),
    "gps": Target(_read_points, "p.csv", lambda: [csv_of(gps_points()), parquet_of(gps_points())]),
    "scenario": Target(_read_scenario, "s.yaml", lambda: [SCENARIO]),
    "mapping": Target(_read_mapping, "m.yaml", lambda: [MAPPING]),
    "areas": Target(_read_areas, "a.geojson", lambda: [areas()]),
    "panel-table": Target(_read_panel_table, "p.csv", lambda: [csv_of(small_panel().head(300))]),
    "panel-regions": Target(
        _load_panel, "regions.parquet", lambda: [(_stored_panel() / "regions.parquet").read_bytes()]
    ),
    "panel-about": Target(_load_panel, "panel.json", lambda: [(_stored_panel() / "panel.json").read_bytes()]),
    "model": Target(_load_model, "model.json", lambda: [(_stored_model() / "model.json").read_bytes()]),
    "weights": Target(
        _load_weights, "weights.safetensors", lambda: [(_stored_model() / "weights.safetensors").read_bytes()]
    ),
    "draws": Target(_read_draws, "lost_draws.parquet", lambda: [_draws()]),
    "api": Target(_ask_api, "request", _requests),
}
