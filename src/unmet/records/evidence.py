"""Findings on how cells were read and on what evidence: one sentence per file, or one for many files read alike."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__all__ = ["Finding", "merge_findings", "merge_notes"]


@dataclass(frozen=True, slots=True)
class Finding:
    """How cells were read.

    >>> str(Finding("{} dates are read day first.", (12_000,)))
    '12,000 dates are read day first.'
    """

    sentence: str  # has {} for each count; nothing else in it differs from file to file
    counts: tuple[int, ...] = ()
    entry: tuple[str, Any] | None = None  # the equivalent entry of a mapping, such as ("day_first", False)

    def __str__(self) -> str:
        """The sentence with its counts."""
        first, *rest = self.sentence.split("{}")  # not str.format: names of columns may hold braces
        return first + "".join(f"{count:,}{text}" for count, text in zip(self.counts, rest, strict=True))


def merge_findings(found: Iterable[tuple[Finding, int]]) -> list[str]:
    """One line for each kind of finding, with counts summed, and the number of files if it differs between kinds.

    Args:
        found: findings, each with the number of files that it is about.

    >>> dates = "{} dates are read day first."
    >>> energies = Finding("energies are read in kWh.")
    >>> merge_findings([(Finding(dates, (5,)), 1), (energies, 3), (Finding(dates, (7,)), 1)])
    ['12 dates are read day first (2 files).', 'energies are read in kWh (3 files).']
    """
    sums: dict[str, tuple[tuple[int, ...], int]] = {}
    for finding, files in found:
        counts, before = sums.get(finding.sentence, ((0,) * len(finding.counts), 0))
        added = tuple(a + b for a, b in zip(counts, finding.counts, strict=True))
        sums[finding.sentence] = added, before + files
    are_equally_common = len({files for _, files in sums.values()}) == 1
    lines = []
    for sentence, (counts, files) in sums.items():
        line = str(Finding(sentence, counts))
        if not are_equally_common:
            line = f"{line.removesuffix('.')} ({files:,} {'file' if files == 1 else 'files'})."
        lines.append(line)
    return lines


def merge_notes(notes: dict[str, list[str]]) -> list[str]:
    """Each sentence once, preceded by its files; of sentences that differ only in numbers, the first is shown.

    Args:
        notes: the files that each sentence concerns.
    """
    alike: dict[str, list[tuple[str, str]]] = {}
    for note, names in notes.items():
        alike.setdefault(re.sub(r"\d[\d,.]*", "#", note), []).extend((name, note) for name in names)
    sentences = []
    for found in alike.values():
        name, note = found[0]
        files = len({name for name, _ in found})  # parts of a large file have its name
        others = f" and {files - 1:,} other file{'s' if files > 2 else ''}" if files > 1 else ""
        sentences.append(f"{name}{others}: {note}")
    return sentences
