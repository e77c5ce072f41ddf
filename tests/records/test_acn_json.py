"""ACN-Data's JSON: every session of the file is a row with the file's own values, or set aside with a reason."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unmet.csv_files import LINE
from unmet.errors import InputError
from unmet.records.formats import json_text
from unmet.records.formats.acn_json import ACN_JSON
from unmet.records.formats.base import Head, Raw

SESSION: dict[str, Any] = {
    "_id": "5bc90cb9f9af8b0d7fe77cd2",
    "clusterID": "0039",
    "connectionTime": "Wed, 25 Apr 2018 11:08:04 GMT",
    "disconnectTime": "Wed, 25 Apr 2018 13:20:10 GMT",
    "doneChargingTime": None,
    "kWhDelivered": 7.932,
    "sessionID": "2_39_78_362_2018-04-25 11:08:04.400812",
    "siteID": "0002",
    "stationID": "2-39-78-362",
    "userID": None,
    "userInputs": [{"kWhRequested": 20.0}],
}


def head_of(path: Path) -> Head:
    raw = path.read_bytes()
    text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    return Head(path, "json", (), text.decode("utf-8", "replace")[:50_000])


def written(folder: Path, content: Any) -> Head:
    path = folder / "sessions.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return head_of(path)


def test_the_real_file_comes_in_whole(shared_data: Path):
    path = shared_data / "sessions" / "acn_caltech_2021-05.json.gz"
    with gzip.open(path) as file:
        truth = json.load(file)
    head = head_of(path)
    assert ACN_JSON.matches(head)
    raw = ACN_JSON.read(head)
    sessions, mapping = raw.sessions, raw.mapping
    assert sessions is not None
    assert sessions.height == len(truth) == 2114
    assert raw.rejected.is_empty()
    assert sessions[LINE].to_list() == list(range(1, len(truth) + 1))
    assert sessions[mapping.energy_kwh].cast(float).sum() == pytest.approx(sum(item["kWhDelivered"] for item in truth))
    for column, name in (("start", "connectionTime"), ("charged", "doneChargingTime"), ("vehicle_id", "userID")):
        assert sessions[getattr(mapping, column)].to_list() == [item[name] for item in truth]
    assert sessions[mapping.plug_id].n_unique() == len({item["stationID"] for item in truth})
    assert set(sessions[mapping.station_id]) == {"0002"}


@pytest.mark.parametrize(
    "content",
    [
        [SESSION, SESSION | {"sessionID": "other"}],
        {"_items": [SESSION, SESSION | {"sessionID": "other"}], "_meta": {"page": 1, "total": 2}, "_links": {}},
        {"_meta": {"page": 1}, "_items": [SESSION, SESSION | {"sessionID": "other"}]},
        f"{json.dumps(SESSION)}\n{json.dumps(SESSION | {'sessionID': 'other'})}\n",
        "\ufeff" + json.dumps([SESSION, SESSION | {"sessionID": "other"}]),
    ],
    ids=["array", "envelope", "envelope, other order", "lines", "with a byte order mark"],
)
def test_every_way_to_wrap_sessions_reads_alike(tmp_path: Path, content: Any):
    head = written(tmp_path, content)
    assert ACN_JSON.matches(head)
    raw = ACN_JSON.read(head)
    assert raw.sessions is not None
    assert raw.sessions["sessionID"].to_list() == [SESSION["sessionID"], "other"]
    assert raw.sessions["kWhDelivered"].to_list() == ["7.932", "7.932"]
    assert "userInputs" not in raw.sessions.columns


def test_members_without_shape_are_set_aside(tmp_path: Path):
    bad = [5, None, "text", [SESSION], SESSION | {"kWhDelivered": {"value": 3}}, SESSION]
    raw = ACN_JSON.read(written(tmp_path, bad))
    assert raw.sessions is not None
    assert raw.sessions[LINE].to_list() == [6]
    assert raw.rejected.rows() == [
        (1, "", "5", "is not an object"),
        (2, "", None, "is not an object"),
        (3, "", "text", "is not an object"),
        (4, "", "[...]", "is not an object"),
        (5, "kWhDelivered", "{...}", "is not a single value"),
    ]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is empty"),
        ("   \n", "is empty"),
        ("start,end\n1,2\n", "is not JSON at character 1"),
        ('[{"connectionTime": 1},]', "is not JSON at character 24"),
        ('[{"connectionTime": 1} {"connectionTime": 2}]', "is not JSON at character 24"),
        ('[{"connectionTime": 1}, {"connectionTime"', "breaks off in the middle"),
        ('[{"connectionTime": 1}', "breaks off in the middle"),
        ('{"_items": [{"connectionTime": 1}], "_meta"', "breaks off in the middle"),
        ('{"_items": [{"connectionTime": 1}]', "breaks off in the middle"),
        ('[{"connectionTime": tru}]', "is not JSON at character"),
        ("[" * 100_000, "nested too deeply"),
        ("[" + "1" * 5000 + "]", "is not JSON at character"),
    ],
)
def test_what_is_not_json_is_one_sentence(tmp_path: Path, content: str, says: str):
    with pytest.raises(InputError, match=says) as caught:
        ACN_JSON.read(written(tmp_path, content))
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


def test_broken_files_are_one_sentence(tmp_path: Path):
    whole = gzip.compress(json.dumps([SESSION] * 200).encode())
    broken = {
        "half.json.gz": (whole[: len(whole) // 2], "check that the file is whole"),
        "latin.json": ('[{"connectionTime": "é"}]'.encode("latin-1"), "not JSON in UTF-8"),
        "garbled.json.gz": (whole[:20] + b"\x00" * 40 + whole[60:], "check that the file is whole"),
    }
    for name, (content, says) in broken.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=says):
            ACN_JSON.read(Head(tmp_path / name, "json", (), ""))
    with pytest.raises(InputError, match="There is no file"):
        ACN_JSON.read(Head(tmp_path / "none.json", "json", (), ""))


@pytest.mark.parametrize("chunk", [1, 2, 7, 64])
def test_where_the_text_is_cut_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int):
    members = [123456, -1.5e-7, True, None, 'a\\"b\u00e9\U0001f50c', [1, [2]], {}, SESSION, SESSION | {"n": 12}]
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"page": 31, "data": members, "end": [10]}, indent=1))
    monkeypatch.setattr(json_text, "_CHUNK", chunk)
    envelopes: list[dict[str, Any]] = []
    assert [member for _, member in json_text.read_members(path, "data", envelopes)] == members
    assert envelopes == [{"page": 31, "end": [10]}]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters()),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=8,
)
ODD_SESSION = st.dictionaries(st.sampled_from([*SESSION, LINE, "", "\ud800", "a.b"]), JSON).map(
    lambda odd: SESSION | odd
)


def counted(raw: Raw) -> list[int]:
    assert raw.sessions is not None
    return sorted(raw.sessions[LINE].to_list() + raw.rejected["line"].to_list())


@settings(database=None, max_examples=60)
@given(members=st.lists(JSON | ODD_SESSION, max_size=6))
def test_every_member_is_a_row_or_set_aside(tmp_path_factory: pytest.TempPathFactory, members: list[Any]):
    head = written(tmp_path_factory.mktemp("acn"), members)
    assert counted(ACN_JSON.read(head)) == list(range(1, len(members) + 1))


def test_batches_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(json_text, "_BATCH", 2)
    raw = ACN_JSON.read(written(tmp_path, [SESSION | {f"extra{n}": n} for n in range(5)]))
    assert raw.sessions is not None
    assert raw.sessions["extra4"].to_list() == [None] * 4 + ["4"]
    assert raw.sessions["siteID"].to_list() == ["0002"] * 5
