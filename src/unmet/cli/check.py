"""The command that checks whether a run is complete and unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unmet.cli.options import Json

__all__ = ["check"]


def check(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder that an unmet command wrote.")],
    as_json: Json = False,
) -> None:
    """Check that the files of a run are unchanged, and show the versions that wrote them.

    The exit code is 1 if a file is missing or changed.
    """
    from unmet.errors import InputError
    from unmet.manifest import verify
    from unmet.views.terminal import next_step, print_summary, say

    if not run.is_dir():
        raise InputError(f"There is no folder {run}: give one that `unmet` wrote.")
    found = verify(run)
    summary = {
        "run": str(run),
        "whole": found.is_whole,
        "files": len(found.manifest.files),
        "missing": list(found.missing),
        "changed": list(found.changed),
        "not_written_by_the_run": list(found.foreign),
        "unmet": found.manifest.unmet,
        "libraries": found.manifest.libraries,
    }
    shown = {name: ", ".join(value) or "none" if isinstance(value, list) else value for name, value in summary.items()}
    print_summary("Check", summary if as_json else shown, as_json=as_json)
    if not found.is_whole:
        say(f"{run} is damaged: run the command that wrote it again.")
        raise typer.Exit(1)
    next_step(f"`unmet report {run}` or `unmet serve {run}` shows a panel, lost demand, a plan or a forecast.")
