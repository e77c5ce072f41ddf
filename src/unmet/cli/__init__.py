"""The `unmet` command: verbs only. What they do lives in the rooms, which are imported when a verb is called."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from unmet import __version__
from unmet.cli import check, city, model, planning, records, report, serve, sources, study
from unmet.cli.gate import run_guarded
from unmet.cli.help import GroupedCommand, GroupedVerbs
from unmet.cli.options import BACKBONES, LIKELIHOODS, QUEUES, with_memory_limit
from unmet.cli.planning_study import study_planning

__all__ = ["BACKBONES", "LIKELIHOODS", "QUEUES", "app", "main"]

app = typer.Typer(
    cls=GroupedVerbs,
    help="See the electric-vehicle charging demand that charging records do not show.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _heading, _verbs in (
    ("Start here", (city.demo, serve.serve)),
    ("Your records", (sources.inspect, sources.fetch, records.recover, records.panel, report.report)),
    ("What to build", (planning.plan,)),
    ("Models of true demand", (model.fit, model.forecast, model.evaluate)),
    ("Simulated cities", (city.trips, city.simulate)),
    ("Runs", (check.check,)),
):
    for _verb in _verbs:
        app.command(cls=GroupedCommand, rich_help_panel=_heading)(with_memory_limit(_verb))
study.app.command("planning", cls=GroupedCommand)(study_planning)
for _command in study.app.registered_commands:
    if _command.callback:
        _command.callback = with_memory_limit(_command.callback)
app.add_typer(study.app, name="study", rich_help_panel="Research")


def main() -> None:
    """Run the command; input that cannot be used gives one sentence and exit code 2."""
    run_guarded(app, sys.argv[1:])


def _version(asked: bool) -> None:
    if asked:
        print(f"unmet {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    pass
