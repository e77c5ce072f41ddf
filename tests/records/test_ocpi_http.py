"""OCPI over HTTP: all pages, with a token, resumed where a download broke off."""

from __future__ import annotations

import base64
import datetime as dt
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from unmet.errors import InputError
from unmet.records.ocpi_http import fetch_ocpi, read_token
from unmet.records.sessions import read_sessions

TOKEN = "secret-token"  # noqa: S105


def cdr(number: int) -> dict[str, Any]:
    start = dt.datetime(2024, 5, 1, tzinfo=dt.UTC) + dt.timedelta(hours=2 * number)
    return {
        "id": f"C{number}",
        "country_code": "BE",
        "party_id": "BEC",
        "start_date_time": f"{start:%Y-%m-%dT%H:%M:%SZ}",
        "end_date_time": f"{start + dt.timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}",
        "total_energy": 10 + number,
        "cdr_token": {"uid": f"T{number % 5}"},
        "cdr_location": {
            "id": f"L{number % 3}",
            "evse_uid": "E1",
            "coordinates": {"latitude": "51.05", "longitude": "3.73"},
        },
        "last_updated": f"{start:%Y-%m-%dT%H:%M:%SZ}",
    }


class Server(ThreadingHTTPServer):
    """Pages of CDRs, with faults to order."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects = [cdr(number) for number in range(95)]
        self.tokens = {base64.b64encode(TOKEN.encode()).decode()}
        self.asked: list[str] = []
        self.faults: dict[int, Any] = {}  # offset -> status codes to answer first, or an address to link to
        self.url = f"http://127.0.0.1:{self.server_port}/ocpi/cpo/2.2.1/cdrs"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        query = parse_qs(urlsplit(self.path).query)
        offset = int(query.get("offset", ["0"])[0])
        fault = self.server.faults.get(offset)
        if isinstance(fault, list) and fault:
            self.send_error(fault.pop(0))
            return
        if self.headers["Authorization"].removeprefix("Token ") not in self.server.tokens:
            self.send_error(401)
            return
        since = query.get("date_from", [""])[0]
        chosen = [member for member in self.server.objects if member["last_updated"] >= since]
        page = chosen[offset : offset + 10]
        body = json.dumps({"data": page, "status_code": 1000, "timestamp": "2024-06-01T00:00:00Z"}).encode()
        self.send_response(200)
        if offset + 10 < len(chosen):
            following = fault if isinstance(fault, str) else f"{self.server.url}?offset={offset + 10}"
            if since:
                following += f"&date_from={since}"
            self.send_header("Link", f'<{following}>; rel="next"')
        self.send_header("X-Total-Count", str(len(chosen)))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_all_pages_become_one_file_that_is_read(server, tmp_path):
    shown = []
    path, objects = fetch_ocpi(server.url, tmp_path, TOKEN, progress=lambda done, total: shown.append((done, total)))
    assert objects == 95
    assert shown[-1] == (95, 95)
    assert [file.name for file in tmp_path.iterdir()] == ["cdrs.json"]
    records = read_sessions(tmp_path)
    assert records.formats == {str(path): "ocpi-cdrs"}
    assert records.sessions.height == 95
    assert records.sessions["energy_kwh"].sum() == sum(10 + number for number in range(95))


def test_a_download_goes_on_where_it_broke_off(server, tmp_path):
    server.faults[40] = [500] * 5
    with pytest.raises(InputError, match="run the same command again"):
        fetch_ocpi(server.url, tmp_path, TOKEN, wait_seconds=0.001)
    assert not (tmp_path / "cdrs.json").exists()
    before = len(server.asked)
    _, objects = fetch_ocpi(server.url, tmp_path, TOKEN, wait_seconds=0.001)
    assert objects == 95
    assert "offset=40" in server.asked[before]
    assert len(server.asked) - before == 6
    assert read_sessions(tmp_path).sessions["session_id"].n_unique() == 95


def test_a_busy_server_is_asked_again(server, tmp_path):
    server.faults[20] = [503, 429]
    assert fetch_ocpi(server.url, tmp_path, TOKEN, wait_seconds=0.001)[1] == 95


def test_servers_of_before_ocpi_2_2_get_the_token_as_it_is(server, tmp_path):
    server.tokens = {TOKEN}
    assert fetch_ocpi(server.url, tmp_path, TOKEN)[1] == 95


def test_a_period_is_asked_for(server, tmp_path):
    since = dt.datetime(2024, 5, 7, tzinfo=dt.UTC)
    path, objects = fetch_ocpi(server.url, tmp_path, TOKEN, since=since)
    assert 0 < objects < 95
    assert "date_from=2024-05-07T00%3A00%3A00Z" in server.asked[0]
    assert read_sessions(path).sessions["start"].min() >= since


def test_what_cannot_be_fetched_is_one_sentence(server, tmp_path):
    with pytest.raises(InputError, match=r"refuses the token.*check"):
        fetch_ocpi(server.url, tmp_path, "wrong")
    with pytest.raises(InputError, match="not an OCPI endpoint"):
        fetch_ocpi("cdrs.json", tmp_path, TOKEN)
    server.faults[0] = [404]
    with pytest.raises(InputError, match=r"404.*check the address"):
        fetch_ocpi(server.url, tmp_path, TOKEN)
    server.faults[0] = "http://elsewhere.example/cdrs?offset=10"
    with pytest.raises(InputError, match="next page is elsewhere"):
        fetch_ocpi(server.url, tmp_path / "b", TOKEN)


def test_an_empty_answer_is_an_empty_file(server, tmp_path):
    server.objects = []
    path, objects = fetch_ocpi(server.url, tmp_path, TOKEN)
    assert objects == 0
    assert read_sessions(path).sessions.is_empty()


def test_the_token_is_in_a_file_or_the_environment(tmp_path, monkeypatch):
    (tmp_path / "token").write_text("abc\n")
    assert read_token(tmp_path / "token") == "abc"
    monkeypatch.setenv("UNMET_OCPI_TOKEN", "def")
    assert read_token(None) == "def"
    monkeypatch.delenv("UNMET_OCPI_TOKEN")
    with pytest.raises(InputError, match="UNMET_OCPI_TOKEN"):
        read_token(None)
