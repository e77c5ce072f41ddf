"""Rows of real databases come in with their types, nothing can be written, and no message contains a password."""

from __future__ import annotations

import builtins
import datetime as dt
import os
import pwd
import shutil
import socket
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from unmet.errors import InputError
from unmet.records import sql
from unmet.records.sql import masked_url, read_sql

TABLE = """
create table sessions (
    id uuid primary key, plug_in timestamptz, local_time timestamp, day date, kwh numeric(8, 3), power real,
    plugs integer, ok boolean, station text, extra jsonb, note text
);
insert into sessions values
    ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '2024-03-31 03:30:00+02', '2024-03-31 03:30:00', '2024-03-31', 12.345, 22,
     2, true, 'Gent Zuid', '{"a": 1}', null),
    ('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12', null, null, null, null, null, null, null, null, null, null);
create function wipe() returns integer language plpgsql as $$ begin delete from sessions; return 1; end $$;
"""


def server_binaries() -> Path | None:
    folders = [*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    on_path = shutil.which("initdb")
    folders += [Path(on_path).resolve().parent] if on_path else []
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server of our own, with one table."""
    binaries = server_binaries()
    if binaries is None:
        pytest.skip("there is no PostgreSQL server on this machine (no initdb)")
    as_user: list[str] = []
    # Not below pytest's folder, which only its owner may enter; and a socket's path must be short.
    folder = Path(tempfile.mkdtemp())
    if os.geteuid() == 0:  # initdb refuses to run as root
        user = next(
            (name for name in ("postgres", "nobody") if name in {entry.pw_name for entry in pwd.getpwall()}), ""
        )
        if not user or not shutil.which("setpriv"):
            pytest.skip("PostgreSQL does not run as root, and there is no user to run it as")
        entry = pwd.getpwnam(user)
        os.chown(folder, entry.pw_uid, entry.pw_gid)
        as_user = ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    secret = folder / "password"
    secret.write_text("s3cret-w0rd\n")
    secret.chmod(0o644)
    data = folder / "data"

    def run(*command: str | Path) -> None:
        subprocess.run([*as_user, *command], check=True, capture_output=True, timeout=600, cwd="/")

    try:
        run(binaries / "initdb", "-D", data, "-U", "analyst", "-A", "scram-sha-256", f"--pwfile={secret}", "-N")
        options = f"-c listen_addresses=127.0.0.1 -p {port} -c unix_socket_directories={folder} -c fsync=off"
        # Its output goes to a file: a server that holds our pipe open would never let us see the end of it.
        run(binaries / "pg_ctl", "-D", data, "-w", "-t", "60", "-l", folder / "log", "-o", options, "start")
        try:
            url = f"postgresql://analyst:s3cret-w0rd@127.0.0.1:{port}/postgres"
            import psycopg

            with psycopg.connect(url) as connection:
                connection.execute(TABLE.encode())
            yield url
        finally:
            run(binaries / "pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def sqlite_file(tmp_path: Path) -> Path:
    path = tmp_path / "my records #1.db"
    connection = sqlite3.connect(path)
    connection.execute("create table sessions (id integer, start text, kwh real, mixed)")
    connection.executemany(
        "insert into sessions values (?, ?, ?, ?)",
        [(1, "2024-05-01 10:00", 7.5, 1), (2, "2024-05-01 11:00", None, "two"), (3, None, 3.0, b"\x03")],
    )
    connection.commit()
    connection.close()
    return path


def test_types_of_postgresql_become_types_of_a_table(postgres: str):
    frame = read_sql(postgres, "select * from sessions order by plug_in nulls last")
    assert frame.schema == {
        "id": pl.String,
        "plug_in": pl.Datetime("ms", "UTC"),
        "local_time": pl.Datetime("ms"),
        "day": pl.Date,
        "kwh": pl.Float64,
        "power": pl.Float64,
        "plugs": pl.Int64,
        "ok": pl.Boolean,
        "station": pl.String,
        "extra": pl.String,
        "note": pl.String,
    }
    assert frame.row(0) == (
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC),
        dt.datetime(2024, 3, 31, 3, 30),
        dt.date(2024, 3, 31),
        12.345,
        22.0,
        2,
        True,
        "Gent Zuid",
        '{"a": 1}',
        None,
    )
    assert frame.row(1)[1:] == (None,) * 10


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg", "postgresql+psycopg2"])
def test_every_spelling_of_the_url_works(postgres: str, scheme: str):
    url = postgres.replace("postgresql", scheme, 1)
    assert read_sql(url, "-- how many?\n(select count(*) as n from sessions)").item() == 2


def test_percent_signs_and_colons_are_the_querys_own(postgres: str):
    query = "select ':a' as colon, '10:30'::text as time, '%s' as percent from sessions where station like 'Gent%';"
    assert read_sql(postgres, query).row(0) == (":a", "10:30", "%s")


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("select wipe()", "read-only transaction"),
        ("select 1; delete from sessions", "multiple commands"),
        ("with gone as (delete from sessions returning 1) select * from gone", "data-modifying"),
        ("delete from sessions", "does not read rows"),
        ("select * into copy from sessions", "INTO"),
    ],
)
def test_nothing_can_be_changed(postgres: str, query: str, says: str):
    with pytest.raises(InputError, match=says):
        read_sql(postgres, query)
    assert read_sql(postgres, "select count(*) from sessions").item() == 2


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("select * from nowhere", 'relation "nowhere" does not exist'),
        ("select from sessions", "gives no columns"),
        ("select * from sessions where false", "gives no rows"),
        ("select id, id from sessions", "two columns 'id'"),
        ("select 1/0", "division by zero"),
        ("select 'infinity'::timestamptz as t", "timestamp too large"),
        ("select (", "syntax error"),
        ("", "does not read rows"),
    ],
)
def test_a_query_that_fails_is_one_sentence(postgres: str, query: str, says: str):
    with pytest.raises(InputError, match=says) as caught:
        read_sql(postgres, query)
    assert "\n" not in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_batches_of_different_types_join(postgres: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sql, "_BATCH", 7)
    query = """select n, case when n > 10 then n::numeric / 2 end as half, case when n > 20 then now() end as later
               from generate_series(1, 40) as n"""
    sizes = []
    real = sql._frame
    monkeypatch.setattr(sql, "_frame", lambda names, rows: sizes.append(len(rows)) or real(names, rows))
    frame = read_sql(postgres, query)
    assert sizes == [7, 7, 7, 7, 7, 5]
    assert frame["n"].to_list() == list(range(1, 41))
    assert frame["half"].to_list() == [None if n <= 10 else n / 2 for n in range(1, 41)]
    assert frame.schema["later"] == pl.Datetime("ms", "UTC")


def test_a_wrong_password_is_not_told(postgres: str):
    wrong = postgres.replace("s3cret-w0rd", "gu%40ess")
    with pytest.raises(InputError, match=r"password authentication failed.*check the address") as caught:
        read_sql(wrong, "select 1")
    assert not any(secret in str(caught.value) for secret in ("gu%40ess", "gu@ess"))
    assert "analyst:***@127.0.0.1" in str(caught.value)


def test_no_server_is_one_sentence():
    with socket.socket() as taken:  # bound but not listening: nothing else can answer there
        taken.bind(("127.0.0.1", 0))
        url = f"postgresql://me:hidden@127.0.0.1:{taken.getsockname()[1]}/db"
        with pytest.raises(InputError, match="refused") as caught:
            read_sql(url, "select 1")
    assert "hidden" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nonsense", "is not the URL of a database"),
        ("me:hidden", "^--sql is not the URL of a database"),
        ("postgresql://me:hidden@host:port/db", "is not the URL of a database"),
        ("mysql://me:hidden@host/db", "not a supported database"),
        ("postgresql://me:hid@den@host/db", "write %40 for @"),
        ("postgresql://me:hid/den@host/db", "%2F for /"),
        ("sqlite://", "no SQLite file"),
        ("sqlite:///nowhere.db", "There is no SQLite file nowhere.db"),
    ],
)
def test_a_wrong_url_is_one_sentence_without_the_password(url: str, says: str):
    with pytest.raises(InputError, match=says) as caught:
        read_sql(url, "select 1")
    assert "hid" not in str(caught.value)
    assert "den" not in str(caught.value)


def test_passwords_are_masked():
    assert masked_url("postgresql://me:pa:ss@host/db") == "postgresql://me:***@host/db"
    assert masked_url("postgresql://host/db?user=me&password=x&a=b") == "postgresql://host/db?user=me&password=***&a=b"
    assert masked_url("postgresql://me@host/db") == "postgresql://me@host/db"
    assert masked_url("sqlite:///a.db") == "sqlite:///a.db"


def test_sqlite_files_are_read(sqlite_file: Path):
    frame = read_sql(f"sqlite:///{sqlite_file}", "select * from sessions order by id")
    assert frame.to_dict(as_series=False) == {
        "id": [1, 2, 3],
        "start": ["2024-05-01 10:00", "2024-05-01 11:00", None],
        "kwh": [7.5, None, 3.0],
        "mixed": ["1", "two", "03"],
    }


def test_sqlite_batches_of_different_types_join(sqlite_file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sql, "_BATCH", 1)
    frame = read_sql(
        f"sqlite:///{sqlite_file}", "select id, kwh, mixed, id * iif(id > 1, 0.5, 1) as half from sessions"
    )
    assert frame.schema == {"id": pl.Int64, "kwh": pl.Float64, "mixed": pl.String, "half": pl.Float64}
    assert frame["mixed"].to_list() == ["1", "two", "03"]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("with x as (select 1) insert into sessions(id) select * from x", "readonly database"),
        ("select 1; drop table sessions", "one statement at a time"),
        ("drop table sessions", "does not read rows"),
        ("select * from nowhere", "no such table"),
        ("select * from sessions where 0", "no rows"),
    ],
)
def test_sqlite_files_stay_as_they_are(sqlite_file: Path, query: str, says: str):
    before = sqlite_file.read_bytes()
    with pytest.raises(InputError, match=says):
        read_sql(f"sqlite:///{sqlite_file}", query)
    assert sqlite_file.read_bytes() == before


def test_a_file_that_is_no_database_is_one_sentence(tmp_path: Path):
    (tmp_path / "x.db").write_text("start,end\n" * 200)
    with pytest.raises(InputError, match="not a database"):
        read_sql(f"sqlite:///{tmp_path / 'x.db'}", "select 1 from sessions")


@pytest.mark.parametrize("module", ["sqlalchemy", "psycopg"])
def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, module: str):
    real = builtins.__import__

    def without(name: str, *args: Any, **more: Any) -> Any:
        if name.split(".")[0] == module:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"pip install 'unmet\[sql\]'"):
        read_sql("postgresql://me@127.0.0.1/db", "select 1")
