"""`--help` of every verb: it fits 80 columns, has groups and no types of Python; and commands end with a next step."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
import typer
from typer.testing import CliRunner

from tests.command_line import write_records
from unmet.cli import app

COLUMNS = 80


def _verbs() -> Iterator[list[str]]:
    def under(command, path: list[str]) -> Iterator[list[str]]:
        yield path
        for name, child in getattr(command, "commands", {}).items():
            yield from under(child, [*path, name])

    yield from under(typer.main.get_command(app), [])


VERBS = list(_verbs())


@pytest.mark.parametrize("verb", VERBS, ids=lambda path: " ".join(path) or "unmet")
def test_help_is_for_people(verb, monkeypatch):
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", COLUMNS)  # Typer reads TERMINAL_WIDTH once, when it is imported
    done = CliRunner().invoke(app, [*verb, "--help"], env={"COLUMNS": str(COLUMNS), "TERM": "dumb"})
    assert done.exit_code == 0
    text = re.sub(r"\x1b\[[0-9;]*m", "", done.output)
    assert max(len(line) for line in text.splitlines()) <= COLUMNS
    assert not re.search(r"<bool>|<list|<tuple|<typing", text)
    groups = re.findall(r"─ ([A-Z][^─]*?) ─", text)
    options = len(re.findall(r"^│ [* ]*--", text, re.MULTILINE))
    assert len(groups) >= (3 if options > 12 else 1), groups


def test_commands_end_with_a_next_step(tmp_path):
    records, run, plan = write_records(tmp_path), tmp_path / "run", tmp_path / "plan"
    for verb, *arguments in (
        ("inspect", *records[:3]),
        ("panel", *records, "--out", tmp_path / "panel"),
        ("recover", *records, "--out", run, "--draws", 20),
        ("plan", run, "--plugs", 3, "--out", plan, "--tables", "xlsx"),
        ("report", run, plan, "--out", tmp_path / "report.html"),
        ("check", plan),
    ):
        done = CliRunner().invoke(app, [verb, *map(str, arguments)])
        assert done.exit_code == 0, done.output
        assert done.output.rstrip().splitlines()[-1].startswith("Next: "), verb
        if verb == "recover":
            assert f"`unmet plan {run} --plugs 10 --out {run}-plan`" in done.output
        if verb == "plan":
            assert f"`unmet report {run} {plan}`" in done.output
    assert {path.suffix for path in plan.glob("gain.*")} == {".parquet", ".xlsx"}
