"""Broken files: one clear sentence that names the file, or rows set aside; never a traceback, never a lost row."""

from __future__ import annotations

import contextlib
import gzip
import io

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmet.errors import InputError
from unmet.records.sessions import read_sessions

HEADER = "session_id,station_id,start,end,energy_kwh"
GOOD = "1,A,2018-01-02 10:00:00,2018-01-02 12:00:00,20"
OTHER = "2,B,2018-01-02 10:00:00,2018-01-02 12:00:00,20"
TEXT = f"{HEADER}\n{GOOD}\n{OTHER}\n"


def parquet(**columns: object) -> bytes:
    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer)
    return buffer.getvalue()


UNREADABLE = {
    "empty": (b"", "is empty"),
    "blank lines only": (b"\n\n  \n", "is empty"),
    "empty gzip": (gzip.compress(b""), "is empty"),
    "binary": (bytes(range(256)) * 20, "binary"),
    "NUL bytes": (b"\x00" * 1000, "binary"),
    "NUL bytes in text": (TEXT.replace("A", "\x00").encode(), "binary"),
    "truncated gzip": (gzip.compress(TEXT.encode() * 1000)[:-30], "check that the file is whole"),
    "gzip with a wrong byte": (gzip.compress(TEXT.encode())[:40] + b"\xff" * 20, "check that the file is whole"),
    "a zip file": (b"PK\x03\x04" + b"\x00" * 100, r"unpack it, or name it \.xlsx"),
    "a broken Parquet file": (b"PAR1" + b"\x00" * 100, "check that the file is whole"),
    "wrong columns": (
        b"a,b,c\n1,2,3\n",
        "no columns start, end, energy_kwh, station_id.*--map start=COLUMN.*a, b, c",
    ),
    "no energy": (b"station_id,start,end\nA,1,2\n", "has no column energy_kwh"),
    "no station": (b"start,end,energy_kwh\n1,2,3\n", "has no column station_id"),
    "one column": (b"hello\nworld\n", "has no column"),
    "a duplicated column": (TEXT.replace("session_id", "start").encode(), "two columns 'start'"),
    "Parquet with wrong columns": (parquet(a=[1]), "has no column"),
    "unknown JSON": (b'{"hello": "world"}', "JSON file of no known format"),
    "HTML": (b"<!DOCTYPE html><html><body>Log in</body></html>", "has no column"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_file_that_cannot_be_read_gives_one_sentence(tmp_path, kind):
    content, sentence = UNREADABLE[kind]
    path = tmp_path / "file.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=rf"(?s)file\.csv.*{sentence}|{sentence}.*file.csv") as error:
        read_sessions([path])
    assert "\n" not in str(error.value)


def test_no_file_and_a_folder_give_one_sentence(tmp_path):
    with pytest.raises(InputError, match=r"no file .*gone\.csv"):
        read_sessions([tmp_path / "gone.csv"])
    with pytest.raises(InputError, match="folder"):
        read_sessions([tmp_path])


LONG = "x" * 10_000
READABLE = {  # content, rows kept, rows set aside
    "good": (TEXT.encode(), 2, 0),
    "only a header": (f"{HEADER}\n".encode(), 0, 0),
    "only a header, no newline": (HEADER.encode(), 0, 0),
    "gzip": (gzip.compress(TEXT.encode()), 2, 0),
    "UTF-8 with a mark": (TEXT.encode("utf-8-sig"), 2, 0),
    "UTF-16": (TEXT.encode("utf-16"), 2, 0),
    "UTF-16 without a mark": (TEXT.encode("utf-16-le"), 2, 0),
    "UTF-16, zipped": (gzip.compress(TEXT.encode("utf-16")), 2, 0),
    "latin-1": (TEXT.replace("B", "Café").encode("latin-1"), 2, 0),
    "cp1252": (TEXT.replace("B", "10 € place").encode("cp1252"), 2, 0),
    "latin-1 far down": ((TEXT + GOOD.replace("A", "A" * 50) + "\n").encode() * 2000 + b"9,Caf\xe9,,,\n", 3, 7997),
    "semicolons": (TEXT.replace(",", ";").encode(), 2, 0),
    "tabs": (TEXT.replace(",", "\t").encode(), 2, 0),
    "Windows lines": (TEXT.replace("\n", "\r\n").encode(), 2, 0),
    "old Macintosh lines": (TEXT.replace("\n", "\r").encode(), 2, 0),
    "blank lines between": (TEXT.replace("\n", "\n\n").encode(), 2, 0),
    "blank lines first": (b"\n\n" + TEXT.encode(), 2, 0),
    "no newline at the end": (TEXT.strip().encode(), 2, 0),
    "a row too long": (f"{TEXT}3,C,2018-01-02 10:00:00,2018-01-02 12:00:00,20,9,9\n".encode(), 2, 1),
    "a row too short": (f"{TEXT}3,C,2018-01-02 10:00:00\n".encode(), 2, 1),
    "cut in the last row": (TEXT.encode()[:-25], 1, 1),
    "separators at the end of rows": (TEXT.replace("20\n", "20,\n").encode(), 2, 0),
    "the header again": (f"{TEXT}{TEXT}".encode(), 2, 3),
    "an open quote": (f'{TEXT}3,"C,2018-01-02 10:00:00,2018-01-02 12:00:00,20\n'.encode(), 2, 1),
    "quotes within": (TEXT.replace("B", 'B"x"').encode(), 2, 0),
    "a cell of two lines": (TEXT.replace("A", '"A\nA"').encode(), 2, 0),
    "NaN": (TEXT.replace("00,20\n2", "00,NaN\n2").encode(), 1, 1),
    "fields of 10,000 characters": (f"{TEXT}{LONG},{LONG},{LONG},{LONG},{LONG}\n".encode(), 2, 1),
    "future dates": (TEXT.replace("2018", "2918").encode(), 0, 2),
    "dates of 1970": (TEXT.replace("2018", "1970").encode(), 0, 2),
    "mixed zones": (TEXT.replace("10:00:00", "10:00:00+01:00").encode(), 2, 0),
    "all cells empty": (f"{HEADER}\n,,,,\n,,,,\n{GOOD}\n".encode(), 1, 0),
    "numbers for times": (f"{HEADER}\n1,A,1514887200,1514894400000,20\n".encode(), 1, 0),
    "NUL bytes far down": ((TEXT * 2000).encode() + b"9,\x00,\x00,,\n", 2, 5998),
    "a decimal comma": (TEXT.replace(",", ";").replace("20\n", "20,5\n").encode(), 2, 0),
    "spaces around": (TEXT.replace(",", " , ").encode(), 2, 0),
    "a header of two lines": (TEXT.replace("energy_kwh", '"energy\n(kWh)"').encode(), 2, 0),
    "columns without names": (TEXT.replace("\n", ",,\n").encode(), 2, 0),
    "a column named *": (TEXT.replace("\n", ",\n").replace(",\n", ",*\n", 1).encode(), 2, 0),
    "emoji": (TEXT.replace("A", "🔌").encode(), 2, 0),
    "Parquet": (
        parquet(station_id=[1], start=["2018-01-02 10:00"], end=["2018-01-02 11:00"], energy_kwh=[None]),
        *(0, 1),
    ),
}


@pytest.mark.parametrize("kind", READABLE)
def test_a_file_that_can_be_read_loses_no_row(tmp_path, kind):
    content, kept, aside = READABLE[kind]
    path = tmp_path / "file.csv"
    path.write_bytes(content)
    records = read_sessions([path])
    assert (records.sessions.height, records.rejected.height) == (kept, aside)
    assert records.counts["rows_in"] == kept + aside
    assert (records.rejected["value"].str.len_chars().fill_null(0) <= 200).all()
    assert (records.rejected["reason"].str.len_chars() > 5).all()


def test_lines_are_those_of_the_file(tmp_path):
    path = tmp_path / "file.csv"
    bad = "9,C,never,2018-01-02 12:00:00,20"
    for content, line in (
        (f"{HEADER}\n{GOOD}\n{bad}\n", 3),
        (f"\n\n{HEADER}\n{GOOD}\n\n{bad}\n", 6),
        (f"{HEADER}\n{GOOD}\n{bad}\n{GOOD},,,1\n", 3),
        (f"{HEADER}\n{GOOD.replace('A', chr(34) + 'A' + chr(10) + 'A' + chr(34))}\n{bad}\n", 4),
        (f"{HEADER}\n{GOOD}\n3,C\n{bad}\n", 4),
        (HEADER.replace("start", '"start\ntime"') + f"\n{GOOD}\n{bad}\n\n\n", 4),
    ):
        path.write_text(content)
        rejected = read_sessions([path]).rejected
        assert rejected.filter(pl.col("value") == "never")["line"].to_list() == [line]


rows = st.lists(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), max_size=6), min_size=1, max_size=7),
    max_size=12,
)


@given(rows, st.sampled_from([",", ";", "\t"]))
def test_random_garbage_under_a_good_header(tmp_path_factory, rows, separator):
    path = tmp_path_factory.mktemp("garbage") / "file.csv"
    lines = [separator.join(HEADER.split(",")), *(separator.join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    records = read_sessions([path])
    assert records.counts["rows_in"] == records.sessions.height + records.rejected.height


@given(st.binary(max_size=300))
def test_random_bytes(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("bytes") / "file"
    path.write_bytes(content)
    with contextlib.suppress(InputError):
        records = read_sessions([path])
        assert records.counts["rows_in"] == records.sessions.height + records.rejected.height


def test_a_column_of_lists_is_refused(tmp_path):
    path = tmp_path / "lists.parquet"
    path.write_bytes(parquet(station_id=["A"], start=[[1, 2]], end=["2018-01-02 11:00"], energy_kwh=[1]))
    with pytest.raises(InputError, match="column start holds List"):
        read_sessions([path])


def test_a_mark_of_utf_8_before_text_that_is_not(tmp_path):
    """A byte order mark, and yet a byte of Latin-1: in the beginning, or after it."""
    header = b"session_id,station_id,start,end,energy_kwh\n"
    rows = [b"%d,s\xe6by,2024-01-0%dT10:00:00Z,2024-01-0%dT11:00:00Z,5\n" % (i, i, i) for i in range(1, 9)]
    plain = [row.replace(b"\xe6", b"") for row in rows]
    for early in (True, False):
        path = tmp_path / f"{early}.csv"
        path.write_bytes(b"\xef\xbb\xbf" + header + b"".join(rows if early else plain * 400 + rows))
        records = read_sessions(path)
        assert "s\xe6by" in records.sessions["station_id"].to_list()
        assert "session_id" in records.sessions.columns


def test_names_of_columns_have_a_greatest_length_and_only_some_are_guessed_from(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text(f"station_id,start,end,{'N' * 1001}\nA,2024-03-04 08:00,2024-03-04 09:00,7\n")
    with pytest.raises(InputError, match="column name of 1,001 characters"):
        read_sessions(path)
    fillers = ",".join(f"c{i}" for i in range(300))
    path.write_text(
        f"station_id,end,energy_kwh,{fillers},Beginning\nA,2024-03-04 09:00,7{',' * 300},2024-03-04 08:00\n"
    )
    with pytest.raises(InputError, match="no column start: say which with --map start=COLUMN"):
        read_sessions(path)
