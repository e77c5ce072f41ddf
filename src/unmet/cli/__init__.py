"""The `unmet` program. Its commands import the modules they need only when they are called, so that it starts fast."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from unmet import __version__
from unmet.cli import check, city, fit, model, planning, records, report, serve, simulation, sources
from unmet.cli.gate import run_guarded
from unmet.cli.help import CommandGroup, GroupedCommand
from unmet.cli.option_groups import with_memory_limit
from unmet.cli.options import BACKBONES, LIKELIHOODS, QUEUES
from unmet.cli.planning_study import study_planning
from unmet.cli.study import study_commands

__all__ = ["BACKBONES", "LIKELIHOODS", "QUEUES", "app", "main"]

app = typer.Typer(
    cls=CommandGroup,
    help="See the electric-vehicle charging demand that charging records do not show.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _heading, _functions in (
    ("Start here", (city.demo, serve.serve)),
    ("Your records", (sources.inspect, sources.fetch, records.recover, records.panel, report.report)),
    ("What to build", (planning.plan,)),
    ("Models of true demand", (fit.fit, model.forecast, model.evaluate)),
    ("Simulated cities", (city.trips, simulation.simulate)),
    ("Runs", (check.check,)),
):
    for _function in _functions:
        app.command(cls=GroupedCommand, rich_help_panel=_heading)(with_memory_limit(_function))
study_commands.command("planning", cls=GroupedCommand)(study_planning)
for _command in study_commands.registered_commands:
    if _command.callback:
        _command.callback = with_memory_limit(_command.callback)
app.add_typer(study_commands, name="study", rich_help_panel="Research")


def main() -> None:
    """Run the program. Invalid input gives one sentence and exit code 2."""
    run_guarded(app, sys.argv[1:])


def _version(requested: bool) -> None:
    if requested:
        print(f"unmet {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass
