"""Every code block of the documentation runs: page by page, in order, in a folder with the files that pages name."""

from __future__ import annotations

import os
import re
import sqlite3
from pathlib import Path

import polars as pl
import pytest

from tests import small_network
from tests.code_blocks import PAGES, ROOT, Block, blocks_of, check_command, commands_of, run_command
from tests.simulation.cities import small_city
from unmet.records.formats import FORMATS

FIXTURES = ROOT / "tests" / "fixtures"
WITH_CODE = [page for page in PAGES if blocks_of(page)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Small files under the names that pages use."""
    folder = tmp_path_factory.mktemp("files")
    sessions, _ = small_network.records(days=42)
    sessions.with_columns(session_id=pl.int_range(pl.len())).write_csv(folder / "sessions.csv")
    sessions.write_csv(folder / "mine.csv")
    small_network.STATIONS.write_csv(folder / "stations.csv")
    own = small_network.STATIONS.with_columns(operator=pl.lit("Mine"))
    others = own.head(2).with_columns(station_id="other-" + pl.col("station_id"), operator=pl.lit("Another"))
    pl.concat([own, others]).write_csv(folder / "everybody.csv")
    city = small_city(1, 60, 40, 6, 2)
    city.trips.write_csv(folder / "trips.csv")
    city.stations.write_csv(folder / "charging.csv")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def working_folder(files: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with those files, a database, and the fixtures at the same path as in a clone."""
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "points.csv").write_text(_example("gps.md", "csv"), encoding="utf-8")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "fixtures").symlink_to(FIXTURES)
    with sqlite3.connect(tmp_path / "records.db") as database:
        rows = pl.read_csv(files["sessions.csv"])
        database.execute(f"create table sessions ({', '.join(rows.columns)})")
        database.executemany(f"insert into sessions values ({', '.join('?' * rows.width)})", rows.rows())  # noqa: S608
    database.close()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setattr(FORMATS, "_parts", dict(FORMATS._parts))
    return tmp_path


def _example(page: str, language: str) -> str:
    """The first block of a language on a page: a file that the reader is asked to save."""
    return (ROOT / "docs" / page).read_text(encoding="utf-8").split(f"```{language}\n")[1].split("```")[0]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_blocks_of_a_page_run(page: Path, working_folder: Path):
    names: dict[str, object] = {"__name__": "page"}
    for block in blocks_of(page):
        if block.language == "python":
            code = compile(block.code, str(block), "exec")
            if block.mode == "run":
                exec(code, names)  # noqa: S102
        elif block.mode != "not run":
            for words in commands_of(block.code):
                (run_command if block.mode == "run" else check_command)(words)


def test_blocks_that_are_not_run_say_why():
    unrun = [block for page in PAGES for block in blocks_of(page) if block.mode != "run"]
    assert unrun
    for block in unrun:
        assert len(block.reason) > 10, block
        for test in re.findall(r"tests/\S+\.py", block.reason):
            assert (ROOT / test).exists(), f"{block} names {test}"


def test_a_wrong_command_is_detected():
    with pytest.raises(Exception, match="--no-such-option"):
        check_command(["unmet", "recover", "sessions.csv", "--no-such-option", "1"])
    with pytest.raises(AssertionError, match="not a command"):
        check_command(["unmeat", "recover"])


def test_a_mark_belongs_to_the_block_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    page = tmp_path / "page.md"
    page.write_text("```sh\na\n```\n\n<!-- not run: needs the moon -->\n```python\n1 / 0\n```\n")
    monkeypatch.setattr("tests.code_blocks.ROOT", tmp_path)
    first, second = blocks_of(page)
    assert (first.mode, second.mode, second.reason) == ("run", "not run", "needs the moon")
    assert isinstance(second, Block)
    assert str(second) == "page.md:5"
