"""What a benchmark found, and the page that keeps it."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PAGE", "Result", "write_page"]

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the page: what was measured, the number, and whether it is as good as promised."""

    what: str
    measured: str
    promised: str
    kept: bool


def write_page(sections: Sequence[tuple[str, str, Sequence[Result]]], path: Path = PAGE) -> None:
    """Write the page of results; a section is its title, its explanation and its lines."""
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`. Times on shared machines vary, so what counts are ratios to a peer in the same run.",
        f"This run: Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores.",
    ]
    for title, text, results in sections:
        lines += ["", f"## {title}", "", text, "", "| what | measured | promised | kept |", "| --- | --- | --- | --- |"]
        lines += [f"| {r.what} | {r.measured} | {r.promised} | {'yes' if r.kept else 'NO'} |" for r in results]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
