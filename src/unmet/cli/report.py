"""The command that writes a report on one or more runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unmet.cli.options import Json

__all__ = ["report"]


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Folders that `unmet recover`, `panel`, `plan` or `forecast` wrote."),
    ],
    out: Annotated[Path, typer.Option(help="HTML file to write.")] = Path("report.html"),
    price: Annotated[
        float | None, typer.Option(help="Sales price per kWh, to show lost energy in money as well.")
    ] = None,
    currency: Annotated[str, typer.Option(help="Currency of the price, such as EUR.")] = "",
    basemap: Annotated[
        Path | None, typer.Option(help="GeoJSON file of coasts, streets or borders to draw under maps.")
    ] = None,
    figures: Annotated[Path | None, typer.Option(help="Folder to write all figures to, as PNG and SVG.")] = None,
    title: Annotated[str, typer.Option(help="Title of the report, such as the town's name.")] = "",
    as_json: Json = False,
) -> None:
    """Write a report on one or more runs, as a single HTML file that works offline.

    It starts with the answer, then shows where and when demand was lost, how certain that is, what to build and what
    to expect, depending on the runs given.
    """
    from unmet.views.figures.map_layers import read_layers
    from unmet.views.picture_files import write_pictures
    from unmet.views.report import SalesPrice, report_figures, write_report
    from unmet.views.stored import read_runs
    from unmet.views.terminal import next_step, print_summary, progress

    money = None if price is None else SalesPrice.checked(price, currency)
    with progress("Reading runs"):
        read = read_runs(runs, read_layers(basemap) if basemap else None)
    with progress("Writing the report"):
        summary = write_report(read, out, money, title)
    if figures is not None:
        with progress("Drawing figures"):
            summary["figures"] = write_pictures(report_figures(read), figures)
    print_summary("Report", summary, as_json=as_json)
    if not as_json:
        next_step(f"open {out} in a browser; `unmet serve {' '.join(map(str, runs))}` shows the same in the app.")
