from __future__ import annotations

from pathlib import Path

import pytest

from unmet.errors import InputError
from unmet.runs import MANIFEST, atomic_file, cache_folder, run_folder


def test_a_folder_takes_its_name_only_when_all_is_written(tmp_path):
    out = tmp_path / "deep" / "run"
    with run_folder(out) as folder:
        (folder / "table").write_text("1")
        assert not out.exists()
    assert (out / "table").read_text() == "1"
    assert (out / MANIFEST).read_text() == "table\n"
    assert [p.name for p in out.parent.iterdir()] == ["run"]


def test_nothing_is_left_of_a_run_that_failed(tmp_path):
    def fail():
        with run_folder(tmp_path / "run") as folder:
            (folder / "table").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_something_in_it_is_left_alone_unless_told(tmp_path):
    with run_folder(tmp_path / "run") as folder:
        (folder / "old").write_text("1")
    with pytest.raises(InputError, match="--overwrite"), run_folder(tmp_path / "run"):
        pass
    with run_folder(tmp_path / "run", overwrite=True) as folder:
        (folder / "new").write_text("2")
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [MANIFEST, "new"]
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_what_no_run_wrote_is_never_replaced(tmp_path, monkeypatch):
    with run_folder(tmp_path / "run") as folder:
        (folder / "old").write_text("1")
    (tmp_path / "run" / "thesis").write_text("precious")
    with pytest.raises(InputError, match="thesis"), run_folder(tmp_path / "run", overwrite=True):
        pass
    assert (tmp_path / "run" / "thesis").read_text() == "precious"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="no run"), run_folder(Path(), overwrite=True):
        pass
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"), run_folder(tmp_path / "file", overwrite=True):
        pass


def test_an_empty_folder_may_be_used(tmp_path):
    (tmp_path / "run").mkdir()
    with run_folder(tmp_path / "run") as folder:
        (folder / "new").write_text("2")
    assert (tmp_path / "run" / "new").exists()


def test_a_place_that_cannot_be_written_to(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError), run_folder(tmp_path / "file" / "run"):
        pass


def test_a_file_is_whole_or_as_it_was(tmp_path):
    path = tmp_path / "f"
    path.write_text("old")

    def fail():
        with atomic_file(path) as draft:
            draft.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    with atomic_file(path) as draft:
        draft.write_text("new")
    assert path.read_text() == "new"
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_the_cache_can_be_put_elsewhere(monkeypatch, tmp_path):
    monkeypatch.setenv("UNMET_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("UNMET_CACHE")
    assert cache_folder().name == "unmet"
