"""Commands of `unmet`, run in this process, and the small records that they are tried on."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from tests.small_network import STATIONS, records
from unmet.cli import app

__all__ = ["run", "write_records"]


def run(*arguments: object) -> str:
    """Run a command that must succeed, and return its standard output."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "250"})
    assert done.exit_code == 0, done.exception or done.output
    return done.stdout


def write_records(folder: Path) -> tuple[object, ...]:
    """Write the small network's sessions and stations, and return the arguments that name them to a command."""
    records()[0].write_csv(folder / "sessions.csv")
    STATIONS.write_csv(folder / "stations.csv")
    options = ("--stations", folder / "stations.csv", "--regions", 2, "--time-zone", "Europe/Copenhagen")
    return folder / "sessions.csv", *options
