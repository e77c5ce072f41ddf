"""The results of benchmarks, and the page that they are written to."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PAGE", "Result", "Section", "read_sections", "write_or_print", "write_page"]

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"


@dataclass(frozen=True, slots=True)
class Result:
    """One row of the page: a measure, its value, the target promised to users, and whether it is kept."""

    what: str
    measured: str
    promised: str
    kept: bool


@dataclass(frozen=True, slots=True)
class Section:
    """The explanation and the results of one benchmark."""

    text: str
    results: Sequence[Result]

    def lines(self) -> list[str]:
        """The section as lines of Markdown, without its title."""
        rows = [f"| {r.what} | {r.measured} | {r.promised} | {'yes' if r.kept else 'NO'} |" for r in self.results]
        return [self.text, "", "| benchmark | measured | target | met |", "| --- | --- | --- | --- |", *rows]


def read_sections(path: Path = PAGE) -> dict[str, list[str]]:
    """The sections of the existing page, by title."""
    parts = path.read_text(encoding="utf-8").split("\n## ")[1:] if path.is_file() else []
    return {part.split("\n", 1)[0]: part.split("\n", 1)[1].strip().split("\n") for part in parts}


def write_or_print(text: str, path: Path, *, complete: bool) -> None:
    """Write a page of results if the run was complete; otherwise only print it."""
    if not complete:
        print(text)
        return
    path.write_text(text, encoding="utf-8")
    print(f"Written to {path}")


def write_page(sections: Sequence[tuple[str, list[str]]], path: Path = PAGE) -> None:
    """Write the page of results; a section is its title and its lines."""
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`. Times on shared machines vary, so compare ratios to a peer in the same run.",
        f"This run: Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores.",
    ]
    for title, text in sections:
        if any(line.strip() for line in text):  # a benchmark that has not run yet has no section
            lines += ["", f"## {title}", "", *text]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
