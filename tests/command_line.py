"""Commands of `unmet`, run in this process or in one of their own, and the small records that they are tried on."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from typer.testing import CliRunner

from tests.small_network import STATIONS, records
from unmet.cli import app, main

__all__ = ["Done", "run", "unmet", "unmet_process", "write_records"]

WIDE = {"COLUMNS": "200", "NO_COLOR": "1"}


class Done(NamedTuple):
    """What a command left: its exit code and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def unmet(*arguments: object) -> Done:
    """Run `unmet` in this process, from the reading of its arguments to its exit code.

    A process of its own would import and load compiled code for seconds first; `tests/test_cli.py` tests that too.
    """
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        mock.patch.dict(os.environ, WIDE),
        mock.patch.object(sys, "argv", ["unmet", *map(str, arguments)]),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return Done(code, out.getvalue(), err.getvalue())


def unmet_process(*arguments: object, **environment: str) -> Done:
    """Run `unmet` in a process of its own, as people and scripts do."""
    command = [sys.executable, "-m", "unmet", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | WIDE | environment, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


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
