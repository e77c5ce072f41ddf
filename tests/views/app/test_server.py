"""The server: who may ask what, uploads, jobs and tables."""

from __future__ import annotations

import gc
import gzip
import json
import os
import time
from importlib import import_module

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings, strategies
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient

from tests.small_network import STATIONS, records
from tests.views.runs import write_lost, write_plan
from unmet.errors import InputError
from unmet.views.app import state as app_state
from unmet.views.app.jobs import Job, Jobs
from unmet.views.app.security import Guard
from unmet.views.app.server import _warm_up, listening_at, make_server
from unmet.views.app.settings import Limits, Settings
from unmet.views.app.work import PLAN_STEPS, check_rows, plan_run, recover_again

HERE = "http://127.0.0.1:8050"
TOKEN = "a-token-that-is-long-enough"  # noqa: S105
CASES = int(os.environ.get("UNMET_CASES", "8"))  # requests to each operation of the API
MAX_SECONDS = 600.0  # that a job may take; long enough for a machine that is very busy
LIMITS = Limits(upload_bytes=3_000_000, upload_rows=20_000, body_bytes=10_000)


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> tuple:
    made = tmp_path_factory.mktemp("given")
    return write_lost(made / "lost"), write_plan(made / "plan")


@pytest.fixture(scope="module")
def server(runs, tmp_path_factory):
    made = make_server(Settings(runs=runs, folder=tmp_path_factory.mktemp("app"), limits=LIMITS))
    yield made
    made.state.state.close()


def test_only_the_latest_runs_of_jobs_stay_in_memory(server, monkeypatch):
    state, read = server.state.state, []
    monkeypatch.setattr(state, "_runs", dict(state._runs))
    monkeypatch.setattr(state.jobs, "named", lambda name: Job(name, "recover", state.folder, state="done"))
    monkeypatch.setattr(app_state, "read_runs", lambda folders, layers: read.append(1) or folders)
    for number in range(app_state.CACHE_SIZE + 3):
        state.runs(f"job-{number}")
        state.runs("job-0")
    assert len(read) == app_state.CACHE_SIZE + 3  # the one in use was read once
    assert set(state._runs) == {"given", "job-0", *(f"job-{number}" for number in range(4, app_state.CACHE_SIZE + 3))}


def test_what_lives_as_long_as_the_server_does_not_delay_the_collection_of_garbage():
    class City:
        def warm_up(self) -> None:
            self.cycle = [self]

    try:
        _warm_up(City())
        assert gc.get_freeze_count() > 10_000  # modules, among others
        assert len(gc.get_objects()) < gc.get_freeze_count() / 10
    finally:
        gc.unfreeze()


@pytest.fixture(scope="module")
def visitor(server) -> TestClient:
    return TestClient(server, base_url=HERE)  # not entered: the city is not built before the first question


def test_tables_and_files_of_runs(visitor, runs):
    sites = visitor.get("/api/runs/given/tables/sites").json()
    stored = pl.read_parquet(runs[0] / "sites.parquet")
    assert sites["total"] == stored.height
    assert sites["rows"][0]["lost_kwh"] == pytest.approx(stored["lost_kwh"].max(), abs=1e-3)
    assert visitor.get("/api/runs/given/summary").json()["plan"]["plugs"] == 3
    file = visitor.get("/api/runs/given/files/sites.csv")
    assert file.content == (runs[0] / "sites.csv").read_bytes()
    assert "attachment" in file.headers["content-disposition"]
    page = visitor.get("/api/runs/given/report")
    assert "About" in page.text
    assert "sandbox" in page.headers["content-security-policy"]


@pytest.mark.parametrize(
    "path",
    ["files/..%2F..%2Fetc%2Fpasswd", "files/../summary.json", "files/summary.json", "files/sites.csv%00.png",
     "tables/..", "files/.unmet-run"],
)  # fmt: skip
def test_paths_lead_nowhere_but_to_tables(visitor, path):
    answer = visitor.get(f"/api/runs/given/{path}")
    assert answer.status_code in (404, 422)
    assert b"root:" not in answer.content


def test_unknown_addresses_of_the_api_are_not_found(visitor):
    answer = visitor.get("/api/nothing/here")
    assert answer.status_code == 404
    assert "/docs" in answer.json()["detail"]


@pytest.mark.parametrize("name", ["..", "%2e%2e%2f", "0" * 16, "GIVEN"])
def test_runs_are_named_by_jobs_alone(visitor, name):
    assert visitor.get(f"/api/runs/{name}/summary").status_code in (404, 422)


@pytest.mark.parametrize(
    ("headers", "sent"),
    [({}, True), ({"host": "charging.example"}, False),
     ({"host": "charging.example", "x-forwarded-proto": "https"}, True)],
)  # fmt: skip
def test_an_opener_policy_is_sent_where_browsers_apply_it(headers, sent):
    guard = Guard(PlainTextResponse("hello"), Settings(host="192.0.2.1", token=TOKEN), lambda: "default-src 'none'")
    client = TestClient(guard, base_url="http://127.0.0.1")
    assert ("cross-origin-opener-policy" in client.get("/", headers=headers).headers) == sent


def test_every_answer_binds_the_browser(visitor):
    for path in ("/", "/docs", "/api/health", "/api/nothing"):
        headers = visitor.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe-eval" not in headers["content-security-policy"]
        assert headers["referrer-policy"] == "same-origin"
    assert "https://" not in visitor.get("/docs").text
    assert visitor.get("/swagger/swagger-ui-bundle.js").status_code == 200
    assert "/api/city/what-if" in visitor.get("/docs/openapi.json").json()["paths"]


def test_other_sites_and_other_names_are_refused(visitor):
    assert visitor.get("/api/health", headers={"host": "evil.example"}).status_code == 400
    asked = {"origin": "https://evil.example"}
    assert visitor.post("/api/plan", json={"plugs": 1}, headers=asked).status_code == 403
    assert visitor.post("/api/plan", json={"budget": 5}, headers={"origin": HERE}).status_code == 400


def test_an_address_that_others_reach_needs_a_token(monkeypatch, tmp_path, runs):
    monkeypatch.delenv("UNMET_TOKEN", raising=False)
    options = {"runs": runs, "port": 1, "folder": tmp_path, "seed": 1, "limits": LIMITS}
    with pytest.raises(InputError, match="set a token"):
        Settings.checked(host="0.0.0.0", token_file=None, **options)  # noqa: S104
    (tmp_path / "token").write_text("short")
    with pytest.raises(InputError, match="easily guessed"):
        Settings.checked(host="0.0.0.0", token_file=tmp_path / "token", **options)  # noqa: S104
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    settings_ = Settings.checked(host="0.0.0.0", token_file=tmp_path / "token", **options)  # noqa: S104
    visitor = TestClient(make_server(settings_), base_url="http://city.example", follow_redirects=False)
    assert visitor.get("/api/health").status_code == 401
    assert visitor.get("/api/health", headers={"authorization": "Bearer wrong"}).status_code == 401
    assert visitor.get("/api/health", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert visitor.get("/").headers["location"] == "/login"
    assert visitor.get("/_dash-layout").status_code == 401
    assert visitor.post("/login", data={"token": "wrong"}).status_code == 401
    welcome = visitor.post("/login", data={"token": TOKEN})
    assert welcome.status_code == 303
    assert "HttpOnly" in welcome.headers["set-cookie"]
    assert TOKEN not in welcome.headers["set-cookie"]
    assert visitor.get("/api/health").status_code == 200  # by its cookie


def test_a_port_is_free_or_refused():
    with listening_at("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        assert port > 0
        with pytest.raises(InputError, match=rf"Cannot listen at 127\.0\.0\.1, port {port} .*another --port"):
            listening_at("127.0.0.1", port)
    with pytest.raises(InputError, match="Cannot listen at no-such-host"):
        listening_at("no-such-host.invalid", 0)


def test_uploads_have_limits(visitor, server):
    big = b"x" * (LIMITS.upload_bytes + 1)
    assert visitor.post("/api/records?name=a.csv", content=big).status_code == 413
    pieces = (b"x" * 500_000 for _ in range(8))  # of no declared length
    assert visitor.post("/api/records?name=a.csv", content=pieces).status_code == 413
    assert visitor.post("/api/records?name=a.exe", content=b"MZ").status_code == 400
    assert visitor.post("/api/records?name=a.csv", content=b"").status_code == 400
    assert visitor.post("/api/city/what-if", content=b" " * 20_000).status_code == 413
    odd = visitor.post("/api/records?name=..%2F..%2F..%2Fevil.csv", content=b"a,b\n1,2\n")
    assert odd.status_code == 201
    kept = server.state.state.uploads.named(odd.json()["id"]).sessions[0]
    assert kept.is_relative_to(server.state.state.folder)
    assert "evil" not in kept.name
    assert not [
        path for path in server.state.state.folder.rglob("*") if path.is_file() and path.stat().st_size > 1_000_000
    ]


def test_files_that_unpack_to_too_much_are_refused(tmp_path):
    bomb = tmp_path / "bomb.csv.gz"
    bomb.write_bytes(gzip.compress(b"0" * 30_000_000))
    with pytest.raises(InputError, match="too large once it is unpacked"):
        check_rows(bomb, 1000, 100_000)
    long = tmp_path / "long.csv"
    long.write_bytes(b"1\n" * 2000)
    with pytest.raises(InputError, match="more than 1,000 lines"):
        check_rows(long, 1000, 100_000)


def wait(visitor: TestClient, job: str) -> dict:
    until = time.monotonic() + MAX_SECONDS
    while True:
        found = visitor.get(f"/api/jobs/{job}").json()
        if found["state"] in ("done", "failed", "cancelled"):
            return found
        assert time.monotonic() < until, f"the job did not end: {found}"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def recovered(visitor) -> tuple[str, str]:
    """An upload, and the job that estimated what it hides."""
    sessions, stations = records(days=21)[0].write_csv().encode(), STATIONS.write_csv().encode()
    upload = visitor.post("/api/records?name=june.csv", content=sessions).json()["id"]
    assert visitor.post(f"/api/records/{upload}/stations?name=s.csv", content=stations).json()["has_stations"]
    asked = {"time_zone": "Europe/Copenhagen", "regions": "2"}
    job = visitor.post(f"/api/records/{upload}/recover", json=asked).json()["id"]
    done = wait(visitor, job)
    assert (done["state"], done["error"], done["progress"]) == ("done", "", 1.0)
    return upload, job


def test_uploaded_records_become_a_run(visitor, recovered):
    _, job = recovered
    found = visitor.get(f"/api/runs/{job}/summary").json()["lost"]
    assert found["lost_kwh"]["mean"] > 0
    assert found["records"]["formats"] == {"june.csv": "generic"}
    assert visitor.get(f"/api/runs/{job}/files/sites.xlsx").content[:2] == b"PK"
    nonsense = visitor.post("/api/records?name=n.csv", content=b"a,b\n1,2\n").json()["id"]
    failed = wait(visitor, visitor.post(f"/api/records/{nonsense}/recover", json={}).json()["id"])
    assert failed["state"] == "failed"
    assert failed["error"].endswith(".")
    assert "Traceback" not in failed["error"]


def test_a_run_is_estimated_again_under_other_assumptions_and_planned(runs, tmp_path):
    usual = json.loads((runs[0] / "summary.json").read_text())
    said: list[float] = []
    for name, work, asked in (
        ("again", recover_again, {"waiting": 1.0, "spill": None}),
        ("plan", plan_run, {"budget": 50_000, "plug_cost": 9_000, "site_cost": 1_000}),
    ):
        (tmp_path / name).mkdir()
        work(tmp_path / name, asked | {"run": str(runs[0]), "seed": 1}, lambda _, share: said.append(share))
    again = json.loads((tmp_path / "again" / "summary.json").read_text())
    assert again["lost_kwh"]["mean"] < 0.01 * usual["lost_kwh"]["mean"]  # who waits is not lost
    assert again["records"] == usual["records"]
    assert 0 < json.loads((tmp_path / "plan" / "summary.json").read_text())["cost"] <= 50_000
    assert said[:3] == sorted(said[:3])
    assert set(PLAN_STEPS.values()) <= set(said)


ENDLESS = """
import time

def forever(folder, asked, say):
    (folder / "half.txt").write_text("half")
    say("Working", 0.5)
    time.sleep(3600)
"""


def test_a_cancelled_job_ends_and_leaves_nothing(tmp_path, monkeypatch):
    (tmp_path / "endless_work.py").write_text(ENDLESS)
    monkeypatch.syspath_prepend(tmp_path)  # jobs run in processes of their own, which must find the work
    forever = import_module("endless_work").forever
    jobs = Jobs(tmp_path / "jobs", LIMITS)
    first, second = (jobs.start("test", forever, {}) for _ in range(2))
    until = time.monotonic() + MAX_SECONDS
    while first.progress < 0.5 and time.monotonic() < until:
        time.sleep(0.05)
    assert (first.state, second.state) == ("running", "waiting")  # one at a time
    jobs.cancel(second.id)
    jobs.cancel(first.id)
    while {first.state, second.state} != {"cancelled"} and time.monotonic() < until:
        time.sleep(0.05)
    assert {first.state, second.state} == {"cancelled"}
    assert not first.run.exists()


def test_no_request_breaks_the_server(server, recovered, monkeypatch):
    """Requests of all shapes, half of them about an upload and a run that are there."""
    monkeypatch.setattr("unmet.views.app.jobs.MAX_FINISHED", 10**6)  # that run stays, however many jobs are started
    schemathesis = pytest.importorskip("schemathesis")
    state, (upload, job) = server.state.state, recovered
    state.city.warm_up()
    real = {"upload": upload, "job": job, "name": job, "table": "sites", "file": "sites.csv", "region": "all"}
    schema = schemathesis.openapi.from_asgi("/openapi.json", server, headers={"host": "127.0.0.1"})
    tried, before = set(), {one.id for one in state.jobs.all()}
    for found in schema.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=CASES, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck)
        )
        @given(operation.as_strategy(), strategies.booleans())
        def ask(case, is_real: bool) -> None:
            if is_real:
                case.path_parameters = {name: real[name] for name in case.path_parameters or {}}
                if case.path.startswith("/api/city"):
                    case.body = {"penetration": 0.05}
            answer = case.call(headers={"host": "127.0.0.1"}, timeout=120)
            assert answer.status_code < 500, (case, answer.text)
            tried.add((case.method, case.path, answer.status_code))
            for started in state.jobs.all():
                if started.id not in before:
                    state.jobs.cancel(started.id)

        with state.jobs._turn:  # jobs wait for their turn until they are cancelled
            ask()
    paths = server.openapi()["paths"]
    assert {(method, path) for method, path, _ in tried} == {
        (method.upper(), path) for path, methods in paths.items() for method in methods
    }
    answered = {path for _, path, status in tried if status < 300}
    assert {path for path in paths if "/runs/" in path or "/jobs/" in path or "/city" in path} <= answered
