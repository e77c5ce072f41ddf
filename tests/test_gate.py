"""The outermost layer of the command line: every exception becomes one sentence and exit code 2."""

from __future__ import annotations

import errno
import gzip
import os
from pathlib import Path

import polars as pl
import pytest
from polars.exceptions import PanicException

from unmet.cli.gate import run_guarded, sentence_on
from unmet.csv_files import read_frame
from unmet.errors import InputError, printable, shortened
from unmet.files import check_regular, parse_yaml, read_json, unpack
from unmet.memory import VARIABLE, allowed_bytes, free_bytes, parse_size, require_bytes
from unmet.parquet_files import read_parquet
from unmet.records.sessions import read_sessions
from unmet.simulation.scenario import read_scenario
from unmet.tables import check_table
from unmet.zones import checked_zone


def raising(error: BaseException):
    def command() -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (InputError("There is no file x."), "There is no file x."),
        (MemoryError(), "not enough memory"),
        (OSError(errno.ENOSPC, "No space left on device"), "disk is full"),
        (pl.exceptions.ComputeError("parquet: IO error: No space left on device (os error 28)"), "disk is full"),
        (PermissionError(errno.EACCES, "Permission denied", "secret.csv"), "secret.csv: Permission denied"),
        (PanicException("index out of range"), "PanicException: index out of range"),
        (RecursionError(), "nested too deeply"),
        (KeyError("a" * 10_000), "KeyError: 'aaa"),
        (ValueError("cannot reach postgresql://me:hunter2@host/db"), "postgresql://me:***@host/db"),
        (ValueError("\x1b]0;owned\x07"), r"\x1b]0;owned\x07"),
    ],
)  # fmt: skip
def test_every_exception_becomes_one_sentence(error, says, capsys):
    with pytest.raises(SystemExit) as ended:
        run_guarded(raising(error))
    assert ended.value.code == 2
    message = capsys.readouterr().err
    assert says in message
    assert message.startswith("unmet: ")
    assert message.count("\n") == 1
    assert len(message) < 1400
    assert "\x1b" not in message
    assert "hunter2" not in message


def test_what_a_command_has_left_on_disk_is_said():
    for error in (InputError("Too large."), MemoryError(), OSError(errno.ENOSPC, "No space"), KeyError("x")):
        error.add_note("Half of it is kept in x.")
        assert "Half of it is kept in x." in sentence_on(error)
        assert "Nothing was written" not in sentence_on(error)


def test_exit_and_ctrl_c_pass_through():
    for error in (SystemExit(3), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            run_guarded(raising(error))


def test_a_traceback_is_shown_on_request(monkeypatch, capsys):
    monkeypatch.setenv("UNMET_TRACEBACK", "1")
    with pytest.raises(SystemExit):
        run_guarded(raising(KeyError("x")))
    assert "Traceback" in capsys.readouterr().err


def test_messages_are_short_and_harmless():
    message = str(InputError(f"The id {'x' * 20_000} is unknown\x1b[2J: check it\x9b0m."))
    assert len(message) < 1300
    assert message.endswith(r"check it\x9b0m.")
    assert "\x1b" not in message
    assert printable("na\u00efve \u4f60\n\u202etxt.exe \ud800") == "na\u00efve \u4f60\n\\u202etxt.exe \\ud800"
    assert shortened("short") == "short"


def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for read in (check_regular, read_frame, read_scenario, unpack, read_json, read_parquet):
        with pytest.raises(InputError, match="pipe or a device"):
            read(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe or a device"):
        read_frame(Path("/dev/zero"))
    with pytest.raises(InputError, match="no file"):
        check_regular(tmp_path / "nul\x00l")


def test_a_file_that_unpacks_to_more_than_allowed_is_refused(tmp_path, monkeypatch):
    bomb = tmp_path / "bomb.csv.gz"
    with gzip.open(bomb, "wb") as file:
        for _ in range(64):
            file.write(bytes(1 << 20))
    assert bomb.stat().st_size < 100_000
    assert len(unpack(bomb)) == 1 << 26
    monkeypatch.setenv(VARIABLE, "100MB")
    for read in (read_frame, unpack, read_json):
        with pytest.raises(
            InputError, match=r"bomb.csv.gz, unpacked, would need .* 0\.1 GB are allowed by --max-memory"
        ):
            read(bomb)
    from unmet.records.sessions import read_sessions

    with pytest.raises(InputError, match="binary"):  # its first bytes are zeros
        read_sessions(bomb)


def test_a_parquet_file_that_does_not_fit_into_memory_is_refused_unread(tmp_path, monkeypatch):
    path = tmp_path / "many.parquet"
    pl.DataFrame({"a": pl.repeat(1, 2_000_000, eager=True)}).write_parquet(path)
    assert path.stat().st_size < 10_000
    assert read_parquet(path).height == 2_000_000
    monkeypatch.setenv(VARIABLE, "10MB")
    with pytest.raises(InputError, match="2,000,000 rows"):
        read_parquet(path)


def test_sizes_of_memory(monkeypatch):
    assert [parse_size(text) for text in ("8GB", "8", "500MB", "1.5 g", "10b")] == [8e9, 8e9, 5e8, 1.5e9, 10]
    for size in (10, 500_000_000, 8_000_000_000, 12_345_678_901_234):  # as `allow_bytes` passes them on
        assert parse_size(f"{size}B") == size
    for text in ("", "-1GB", "lots", "0GB", "1EB", "nan", "9" * 400):
        with pytest.raises(InputError, match="not a size of memory"):
            parse_size(text)
    monkeypatch.delenv(VARIABLE, raising=False)
    assert 0 < allowed_bytes() == pytest.approx(free_bytes(), rel=0.5)
    require_bytes(1, "A byte", "wait")
    with pytest.raises(InputError, match=r"A sea would need about .* GB are free: wait"):
        require_bytes(1e18, "A sea", "wait")


YAML = {
    "impossible date": "seed: 2001-02-30\n",
    "alias bomb": "a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]\n",
    "deep": "a: " + "[" * 500 + "]" * 500,
    "very deep": "[" * 100_000,
    "python": "a: !!python/object/apply:os.system [ls]\n",
    "latin-1": "a: \xe6".encode("latin-1"),
    "tab": "a:\n\t- b",
    "huge": "a: " + "x" * (1 << 20),
    "no mapping": "- 1",
    "nothing": "",
    "merge": "<<: {a: 1}\nseed: [",
    "huge number": "seed: 0x" + "f" * 5000,
    "date as a seed": "seed: 2001-02-03\n",
    "nan": "penetration: .nan\n",
}


@pytest.mark.parametrize("case", YAML)
def test_hostile_scenarios_and_mappings_give_one_sentence(case, tmp_path):
    from unmet.records.mapping import read_mapping

    text = YAML[case]
    path = tmp_path / "s.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    for read in (read_scenario, read_mapping):
        with pytest.raises(InputError) as refused:
            read(path)
        assert len(str(refused.value)) < 1300
    path.write_text("\ufeffqueue: first-come\n", encoding="utf-8")
    assert parse_yaml(path) == {"queue": "first-come"}


def test_deeply_nested_json_gives_an_error_without_a_traceback(tmp_path):
    path = tmp_path / "deep.json"
    path.write_text("[" * 200_000)
    with pytest.raises(ValueError, match=r"nested|Expecting"):
        read_json(path)


@pytest.mark.parametrize("zone", ["*", "", " ", "Europe", "../../etc/passwd", "/etc/localtime", "a\x00b", "x" * 5000])
def test_names_that_are_not_time_zones_are_refused(zone):
    with pytest.raises(InputError, match="no time zone"):
        checked_zone(zone)
    assert checked_zone("Europe/Copenhagen") == "Europe/Copenhagen"


@pytest.mark.parametrize("zone", ["*", "", "Mars/Olympus"])
def test_a_zone_is_checked_even_if_all_times_have_their_own(zone, tmp_path):
    rows = "session_id,station_id,start,end,energy_kwh\n1,a,2024-03-04T08:00:00Z,2024-03-04T09:00:00Z,7\n"
    (tmp_path / "s.csv").write_text(rows)
    assert read_sessions(tmp_path / "s.csv", time_zone="Europe/Rome").time_zone == "Europe/Rome"
    with pytest.raises(InputError, match="no time zone"):
        read_sessions(tmp_path / "s.csv", time_zone=zone)


def test_extreme_times_in_a_column_of_ids_are_rejected():
    from unmet.city.gates import STATIONS

    times = pl.Series([0, 2**62, -(2**62)]).cast(pl.Datetime("us"))
    checked = check_table(pl.DataFrame({"station_id": times, "lat": [1.0] * 3, "lon": [1.0] * 3}), STATIONS)
    assert checked.kept["station_id"].to_list() == ["1970-01-01 00:00:00.000000"]
    assert checked.rejected["reason"].to_list() == ["is not text"] * 2


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2@[host/db",
        "postgresql//me:hunter2@host/db",
        "me:hunter2@host",
        "postgresql:me:hunter2@h",
        "postgresql://me:hunter2",
        "mysql://me:hunter2@host/db",
        "postgresql://me:hun@hunter2@host/db",
        "sqlite://me:hunter2@host/db",
        "postgresql://host/db?password=hunter2&x=@",
        "://:hunter2@",
    ],
)
def test_no_message_contains_a_password(url):
    from unmet.records.sql import masked_url, read_sql

    assert "hunter2" not in masked_url(url)
    with pytest.raises(InputError) as refused:
        read_sql(url, "select 1")
    assert "hunter2" not in str(refused.value)
    assert masked_url("postgresql://me@host:5432/db") == "postgresql://me@host:5432/db"
