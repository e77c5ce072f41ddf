from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from unmet.claims import SUFFIX, hold, is_claimed, settle
from unmet.errors import InputError
from unmet.manifest import read_manifest, verify
from unmet.runs import MANIFEST, atomic_file, cache_folder, run_folder


def test_a_folder_gets_its_name_only_when_everything_is_written(tmp_path):
    out = tmp_path / "deep" / "run"
    with run_folder(out) as folder:
        (folder / "table").write_text("1")
        assert not out.exists()
    assert (out / "table").read_text() == "1"
    assert read_manifest(out).files == {"table": hashlib.sha256(b"1").hexdigest()}
    assert [p.name for p in out.parent.iterdir()] == ["run"]


def test_a_failed_run_leaves_nothing_behind(tmp_path):
    def fail():
        with run_folder(tmp_path / "run") as folder:
            (folder / "table").write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_empty_is_replaced_only_with_overwrite(tmp_path):
    with run_folder(tmp_path / "run") as folder:
        (folder / "old").write_text("1")
    with pytest.raises(InputError, match="--overwrite"), run_folder(tmp_path / "run"):
        pass
    with run_folder(tmp_path / "run", overwrite=True) as folder:
        (folder / "new").write_text("2")
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [MANIFEST, "new"]
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_files_that_no_run_wrote_are_never_replaced(tmp_path, monkeypatch):
    with run_folder(tmp_path / "run") as folder:
        (folder / "old").write_text("1")
    (tmp_path / "run" / "thesis").write_text("precious")
    with pytest.raises(InputError, match="thesis"), run_folder(tmp_path / "run", overwrite=True):
        pass
    assert (tmp_path / "run" / "thesis").read_text() == "precious"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="did not write"), run_folder(Path(), overwrite=True):
        pass
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"), run_folder(tmp_path / "file", overwrite=True):
        pass


def test_an_empty_folder_may_be_used(tmp_path):
    (tmp_path / "run").mkdir()
    with run_folder(tmp_path / "run") as folder:
        (folder / "new").write_text("2")
    assert (tmp_path / "run" / "new").exists()


def test_a_path_below_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError), run_folder(tmp_path / "file" / "run"):
        pass


def test_a_file_is_complete_or_unchanged(tmp_path):
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


def test_an_environment_variable_moves_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("UNMET_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("UNMET_CACHE")
    assert cache_folder().name == "unmet"


def write(out: Path, text: str, **options: bool) -> None:
    with run_folder(out, **options) as folder:
        (folder / "table").write_text(text)


def test_a_folder_that_another_process_fills_meanwhile_is_not_touched(tmp_path):
    out = tmp_path / "run"

    def work(**options: bool) -> None:
        with run_folder(out, **options) as folder:
            (folder / "table").write_text("mine")
            out.mkdir(exist_ok=True)
            (out / "thesis").write_text("precious")

    with pytest.raises(InputError, match=r"the result is in .*run-1"):
        work()
    assert (out / "thesis").read_text() == "precious"
    assert (tmp_path / "run-1" / "table").read_text() == "mine"
    (out / "thesis").unlink()
    out.rmdir()
    write(out, "old")
    with pytest.raises(InputError, match=r"the result is in .*run-2"):
        work(overwrite=True)
    assert (out / "thesis").read_text() == "precious"
    assert (out / "table").read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run", "run-1", "run-2"]


def test_a_second_writer_is_refused_at_once(tmp_path):
    with run_folder(tmp_path / "run") as folder:
        (folder / "table").write_text("first")
        with pytest.raises(InputError, match="Another process is writing"), run_folder(tmp_path / "run"):
            pass
        assert is_claimed(tmp_path / "run")
    assert (tmp_path / "run" / "table").read_text() == "first"
    assert not is_claimed(tmp_path / "run")
    handle = hold(tmp_path / "run")
    with pytest.raises(InputError, match="Another process"):
        hold(tmp_path / "run")
    os.close(handle)
    os.close(hold(tmp_path / "run"))


@pytest.mark.parametrize(
    "marker",
    [
        "table\nthesis\n",
        json.dumps({"format": 2, "unmet": "0.1.0", "libraries": {}, "files": {"table": "", "thesis": "0" * 64}}),
        "[" * 100_000,
    ],
)
def test_a_forged_manifest_does_not_make_a_folder_replaceable(tmp_path, marker):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis").write_text("precious")
    (tmp_path / "mine" / MANIFEST).write_text(marker)
    with pytest.raises(InputError, match="thesis"):
        write(tmp_path / "mine", "new", overwrite=True)
    assert (tmp_path / "mine" / "thesis").read_text() == "precious"


def test_a_changed_file_a_link_and_an_empty_folder_keep_a_run_from_being_replaced(tmp_path):
    out = tmp_path / "run"
    write(out, "old")
    (out / "empty").mkdir()
    with pytest.raises(InputError, match="empty"):
        write(out, "new", overwrite=True)
    (out / "empty").rmdir()
    (out / "link").symlink_to(tmp_path)
    with pytest.raises(InputError, match="link"):
        write(out, "new", overwrite=True)
    (out / "link").unlink()
    (out / "table").write_text("corrected by hand")
    assert verify(out).changed == ("table",)
    with pytest.raises(InputError, match="table"):
        write(out, "new", overwrite=True)
    assert (out / "table").read_text() == "corrected by hand"


KILLED = """
import os, signal, sys
from pathlib import Path
from unmet.runs import run_folder

steps = int(sys.argv[2])
rename = Path.rename
def step(path, target):
    global steps
    steps -= 1
    if steps < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(path, target)
Path.rename = step
with run_folder(Path(sys.argv[1]), overwrite=True) as folder:
    (folder / "table").write_text("new")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize(("renames", "kept"), [(0, "old"), (1, "new"), (2, "new")])
def test_the_next_writer_settles_what_a_killed_one_left_behind(tmp_path, renames, kept):
    out = tmp_path / "run"
    write(out, "old")
    killed = subprocess.run([sys.executable, "-c", KILLED, out, str(renames)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert out.exists() == (renames != 1)
    settle(out)
    assert (out / "table").read_text() == kept
    assert verify(out).is_whole
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    write(out, "newer", overwrite=True)
    assert (out / "table").read_text() == "newer"


@pytest.fixture
def interrupted(tmp_path):
    """A run whose replacement was interrupted between the two renames: its path, and the hidden folder."""
    out, work = tmp_path / "run", tmp_path / f".run{SUFFIX}"
    write(out, "old")
    write(tmp_path / "other", "new")
    work.mkdir()
    out.rename(work / "old")
    (tmp_path / "other").rename(work / "new")
    return out, work


def test_an_interrupted_replacement_is_undone_if_the_new_version_is_incomplete(interrupted, tmp_path):
    out, work = interrupted
    (work / "new" / "table").write_text("half")
    write(tmp_path / "unrelated", "1")  # any later run in the same folder settles it
    assert (out / "table").read_text() == "old"
    assert not work.exists()


def test_both_versions_are_kept_if_the_name_has_been_used_since(interrupted):
    out, work = interrupted
    out.mkdir()
    with pytest.raises(InputError, match="was interrupted"):
        write(out, "newer", overwrite=True)
    assert (work / "old" / "table").read_text() == "old"
    assert (work / "new" / "table").read_text() == "new"


def test_a_folder_that_only_looks_like_a_draft_is_never_touched(tmp_path):
    work = tmp_path / f".run{SUFFIX}"
    work.mkdir()
    (work / "thesis").write_text("precious")
    with pytest.raises(InputError, match="is needed for drafts"):
        write(tmp_path / "run", "1")
    (work / "thesis").rename(tmp_path / "thesis")
    work.rmdir()
    work.symlink_to(tmp_path)
    with pytest.raises(InputError, match="is needed for drafts"):
        write(tmp_path / "run", "1")
    assert (tmp_path / "thesis").read_text() == "precious"


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_full_disk_gives_one_sentence_and_leaves_nothing_behind(tmp_path, kind):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def work() -> None:
        writer = run_folder(tmp_path / "out") if kind == "folder" else atomic_file(tmp_path / "out")
        with writer as draft:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
            (draft / "table" if kind == "folder" else draft).write_bytes(bytes(10_000))

    try:
        with pytest.raises(InputError, match="Free some space"):
            work()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_recognised_in_the_words_of_other_libraries(tmp_path):
    for error in (RuntimeError("IO error: No space left on device (os error 28)"), OSError(28, "No space left")):
        error.add_note("Half of it is kept.")
        with pytest.raises(InputError, match="Free some space") as refused, run_folder(tmp_path / "out"):
            raise error
        assert refused.value.__notes__ == ["Half of it is kept."]
    with pytest.raises(RuntimeError), run_folder(tmp_path / "out"):
        raise RuntimeError("something else")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_another_process_writes_meanwhile_is_not_touched(tmp_path):
    def work() -> None:
        with atomic_file(tmp_path / "f", overwrite=False) as draft:
            draft.write_text("mine")
            (tmp_path / "f").write_text("precious")

    with pytest.raises(InputError, match="already exists"):
        work()
    assert (tmp_path / "f").read_text() == "precious"
    with atomic_file(tmp_path / "g", overwrite=False) as draft:
        draft.write_text("mine")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f", "g"]
    assert (tmp_path / "g").stat().st_nlink == 1


def test_verify_finds_changed_missing_and_added_files(tmp_path):
    out = tmp_path / "run"
    with run_folder(out) as folder:
        for name in ("a", "b", "c"):
            (folder / name).write_text(name)
    assert verify(out).is_whole
    (out / "a").unlink()
    (out / "b").write_text("B")
    (out / "d").write_text("mine")
    found = verify(out)
    assert (found.missing, found.changed, found.foreign) == (("a",), ("b",), ("d",))
    assert not found.is_whole
    assert found.manifest.libraries["numpy"]
    (out / MANIFEST).write_text("a\nb\n")
    with pytest.raises(InputError, match="before manifests had hashes"):
        verify(out)
