"""The output of commands in a terminal: progress on standard error, and a short table of results at the end."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import polars as pl
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from unmet.errors import printable, shortened
from unmet.finite import plain_json

if TYPE_CHECKING:
    from unmet.models.seeds import SeedProgress
    from unmet.study.execute import Progress as StudyProgress

__all__ = [
    "next_step",
    "print_summary",
    "progress",
    "report_grid",
    "report_set_aside",
    "say",
    "study_progress",
    "training_progress",
]


BAR_WIDTH = 16  # of a progress bar [characters]; it leaves room for the text after it

LABELS = {
    "rows_in": "rows read",
    "rows_kept": "rows used",
    "rows_set_aside": "rows set aside",
    "energy_kwh": "recorded energy [kWh]",
    "first_hour": "from (UTC)",
    "last_hour": "to (UTC)",
    "capacity": "cars that can charge at once",
    "capacity_from": "stations by source of that number",
    "mean_exposure": "share of drivers recorded",
    "censored_hours_percent": "hours in which demand was lost [%]",
    "true_kwh": "energy wanted [kWh]",
    "observed_kwh": "energy served [kWh]",
    "lost_kwh": "energy lost [kWh]",
    "lost_share_of_energy": "lost, of all energy wanted",
    "unserved_share_of_energy": "served nowhere, of all energy wanted",
    "wishes": "drivers who wanted to charge",
    "wishes_unserved_percent": "of them never served [%]",
    "mean_waited_minutes": "mean wait [minutes]",
    "expected_kwh": "expected energy [kWh]",
    "low_kwh": "low end of its interval [kWh]",
    "high_kwh": "high end of its interval [kWh]",
    "forecasts_true": "unserved drivers included",
    "most_in": "most in region",
    "most_kwh": "expected there [kWh]",
    "most_lost": "most lost at",
    "megabytes": "size [MB]",
    "out": "written to",
}
"""Keys of summaries, as shown to people, with units."""


def _text() -> TextColumn:
    return TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1))


def say(text: str) -> None:
    """Print a line for people on standard error."""
    print(printable(text), file=sys.stderr)


def next_step(text: str) -> None:
    """Print a hint on what to do next on standard error."""
    say(f"Next: {text}")


@contextmanager
def progress(task: str, total: int | None = None, parts: str | None = None) -> Iterator[Callable[[int], None]]:
    """Show progress while a task runs; yields a function to call with the number of parts done.

    Without a total, only that number is shown, if `parts` names the parts.
    """
    columns = [SpinnerColumn(), TextColumn("{task.description}")]
    if total:
        columns += [BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]
    elif parts:
        columns.append(TextColumn(f"{{task.completed:,.0f}} {parts}"))
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task_id = bar.add_task(task, total=total)
        yield lambda done: bar.update(task_id, completed=done)


@contextmanager
def training_progress(seeds: int, epochs: int) -> Iterator[Callable[[list[SeedProgress]], None]]:
    """Show the progress of training: time left, seeds done, and epoch and loss of the last seed that still trains."""
    console = Console(stderr=True)
    columns = [SpinnerColumn(), TimeRemainingColumn(), BarColumn(BAR_WIDTH), _text()]
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal, expand=True) as bar:
        task = bar.add_task(f"Training {seeds} seeds", total=seeds * epochs)

        def show(trainings: list[SeedProgress]) -> None:
            done = sum(epochs if training.done else training.epoch for training in trainings)
            running = [training for training in trainings if training.epoch and not training.done]
            text = f"Training {seeds} seeds, {sum(training.done for training in trainings)} done"
            if running:
                last = running[-1]
                text += f"; seed {last.seed}: epoch {last.epoch}, loss {last.loss:.4f}, best {last.best:.4f}"
            bar.update(task, completed=done, description=text)

        yield show


@contextmanager
def study_progress(title: str) -> Iterator[Callable[[StudyProgress], None]]:
    """Show the progress of a study: runs done, failed and left, time left, and the best model so far."""
    console = Console(stderr=True)
    columns = [SpinnerColumn(), TimeRemainingColumn(), BarColumn(BAR_WIDTH), MofNCompleteColumn(), _text()]
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal, expand=True) as bar:
        task = bar.add_task(title, total=None)

        def show(study: StudyProgress) -> None:
            best = f"; best so far: {study.best[0]} ({study.best[1]:.3f})" if study.best else ""
            failed = f", {len(study.failed)} failed" if study.failed else ""
            text = f"{title}: {study.left} runs left{failed}{best}"
            bar.update(task, total=study.total, completed=study.total - study.left, description=text)

        yield show


def print_summary(title: str, summary: dict[str, Any], *, as_json: bool) -> None:
    """Print the summary of a command: a table for people, or one line of JSON."""
    if as_json:
        print(printable(json.dumps(plain_json(summary), ensure_ascii=False)))
        return
    table = Table(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in summary.items():
        if value != {}:
            text = str(value) if name == "seed" else _readable(value)
            table.add_row(escape(LABELS.get(name, name.replace("_", " "))), escape(printable(text)))
    Console().print(table)


def report_grid(title: str, heads: list[str], rows: list[list[str]]) -> None:
    """Print a table with numbers in columns."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None, padding=(0, 2, 0, 0))
    for i, head in enumerate(heads):
        table.add_column(head, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(escape(printable(cell)) for cell in row))
    console = Console()
    # In a narrow terminal, let lines wrap instead of cutting numbers off.
    needed = console.measure(table, options=console.options.update(width=1000)).maximum
    Console(width=max(console.width, needed)).print(table)


def report_set_aside(
    rejected: pl.DataFrame, max_reasons: int = 5, listed: str = "in rejected.parquet", sessions: int | None = None
) -> None:
    """Print how many rows could not be used, the most common reasons, and where all of them are listed.

    The first `sessions` rows are from session records; rows of other tables are counted separately.
    """
    if sessions is not None and sessions < rejected.height:
        report_set_aside(rejected.head(sessions), max_reasons, listed)
        rejected = rejected.tail(rejected.height - sessions)
        say(f"In other tables, {rejected.height:,} row{_s(rejected.height)} could not be used as given:")
    elif rejected.is_empty():
        return
    else:
        were = "row was" if rejected.height == 1 else "rows were"
        say(f"{rejected.height:,} {were} set aside; all are listed {listed}:")
    source = next((name for name in ("file", "table") if name in rejected.columns), None)
    rows = rejected.with_columns(
        pl.col("reason").str.replace(r" on line \d+ of .*", " on an earlier line"),
        source=pl.col(source) if source else pl.lit("the file"),
    )
    reasons = rows.group_by("column", "reason", maintain_order=True).agg(pl.len(), pl.first("source", "line", "value"))
    for column, reason, count, where, line, value in reasons.sort("len", descending=True).head(max_reasons).rows():
        shown = "" if value is None else f": {shortened(repr(value))}"
        say(f"  {count:,} x {column or 'the row'} {reason}, for example in {where}, line {line}{shown}")
    if reasons.height > max_reasons:
        say(f"  and {reasons.height - max_reasons} other reason{_s(reasons.height - max_reasons)}")


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _readable(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(map(_readable, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_readable(part)}" for name, part in value.items()) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return f"{value:,}" if abs(value) >= 10_000 or isinstance(value, int) else f"{value:g}"
    return str(value)
