"""The output of `unmet inspect`: files, their columns, parsed rows, and a mapping to start from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from unmet.errors import printable
from unmet.views.terminal import report_grid

if TYPE_CHECKING:
    from unmet.records.inspection import Inspection

__all__ = ["print_inspections"]


def print_inspections(found: list[Inspection], *, as_json: bool) -> None:
    """Print each file on standard output, as text for people or as JSON."""
    if as_json:
        print(json.dumps([inspection.to_dict() for inspection in found], default=str))
        return
    console = Console()
    for inspection in found:
        _print_one(inspection, console)


def _print_one(inspection: Inspection, console: Console) -> None:
    console.print(f"[bold]{escape(printable(inspection.name))}[/bold]: {inspection.format}", highlight=False)
    if inspection.problem:
        console.print(escape(printable(inspection.problem)), highlight=False)
    elif inspection.format == "stations":
        console.print(f"{inspection.rows:,} rows, {inspection.stations:,} stations", highlight=False)
    elif inspection.columns:
        console.print(f"{inspection.rows:,} rows, {inspection.kept:,} of them sessions", highlight=False)
    for sentence in [*inspection.readings, *inspection.notes, *inspection.reasons]:
        console.print(f"- {escape(printable(sentence))}", highlight=False)
    if inspection.columns:
        report_grid("Columns", ["column", "example"], [list(pair) for pair in inspection.columns.items()])
    if inspection.sample.height:
        cells = [["" if cell is None else _cell_text(cell) for cell in row] for row in inspection.sample.rows()]
        times = "" if inspection.format == "stations" else " (times in UTC)"
        report_grid(f"Parsed rows{times}", inspection.sample.columns, cells)
    if inspection.mapping and inspection.format == "stations":
        console.print(escape(printable(inspection.mapping)), highlight=False, soft_wrap=True)
    elif inspection.mapping:
        console.print("A mapping file to start from (--map-file):", highlight=False)
        console.print(escape(printable(inspection.mapping)), highlight=False)


def _cell_text(cell: object) -> str:
    return f"{cell:.3f}" if isinstance(cell, float) else str(cell)
