"""The `unmet` command: verbs only. What they do lives in the rooms, which are imported when a verb is called."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from unmet import __version__
from unmet.cli import city, model, records, report, serve, sources, study
from unmet.cli.help import GroupedCommand, GroupedVerbs
from unmet.cli.options import BACKBONES, LIKELIHOODS, QUEUES
from unmet.errors import InputError

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
    ("Models of true demand", (model.fit, model.forecast, model.evaluate)),
    ("Simulated cities", (city.trips, city.simulate)),
):
    for _verb in _verbs:
        app.command(cls=GroupedCommand, rich_help_panel=_heading)(_verb)
app.add_typer(study.app, name="study", rich_help_panel="Research")


def main() -> None:
    """Run the command; input that cannot be used gives one sentence and exit code 2."""
    try:
        app()
    except InputError as error:
        print(f"unmet: {error}", file=sys.stderr)
        sys.exit(2)


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
