"""The `unmet` command: verbs only. What they do lives in the rooms, which are imported when a verb is called."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from unmet import __version__
from unmet.cli import check, city, model, records, sources, study
from unmet.cli.options import BACKBONES, LIKELIHOODS, QUEUES
from unmet.errors import InputError

__all__ = ["BACKBONES", "LIKELIHOODS", "QUEUES", "app", "main"]

app = typer.Typer(
    help="See the electric-vehicle charging demand that charging records do not show.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _verb in (
    *(city.demo, city.trips, city.simulate),
    *(sources.inspect, sources.fetch, records.panel, records.recover),
    *(model.fit, model.forecast, model.evaluate),
    check.check,
):
    app.command()(_verb)
app.add_typer(study.app, name="study")


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
