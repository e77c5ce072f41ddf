"""The size of a page: downloads are cut, then figures are left out, until it is small enough to email."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import polars as pl

from unmet.views.figures.base import Figure
from unmet.views.page import PageSection, PageTable, data_link

__all__ = ["light_page"]

Render = Callable[[Sequence[PageSection]], str]
NOTE_BYTES = 300  # room for the note on rows left out
MAX_COMPRESSION = (
    12  # a table is at most about this many times as long as its gzipped link; gives the first guess of rows
)


def light_page(render: Render, sections: Sequence[PageSection], max_bytes: int) -> str:
    """Render sections to a page of at most this many bytes.

    Downloads that exceed a common limit are cut first; the limit is chosen so that all of them fit. Then figures are
    left out, the heaviest first. A sentence says what is missing and where to find it.
    """
    page = render(sections)
    excess = len(page.encode()) - max_bytes
    if excess <= 0:
        return page
    lengths = [len(data_link(section.table.csv)) for section in sections if section.table and section.table.csv]
    room = sum(lengths) - excess - NOTE_BYTES * len(lengths)
    lighter = [_cut(section, _common_limit(lengths, max(room, 0))) for section in sections]
    page = render(lighter)
    while len(page.encode()) > max_bytes and any(section.figures for section in lighter):
        lighter = _without_heaviest(render, lighter)
        page = render(lighter)
    return page


def _common_limit(lengths: Sequence[int], room: int) -> int:
    """The largest limit such that lengths, each cut to it, sum to at most `room`."""
    left = room
    for i, length in enumerate(sorted(lengths)):
        share = left // (len(lengths) - i)
        if length > share:
            return share
        left -= length
    return max(lengths, default=0)


def _cut(section: PageSection, longest: int) -> PageSection:
    """The section with its download cut to a link of at most this many bytes."""
    table = section.table
    if table is None or not table.csv or len(data_link(table.csv)) <= longest:
        return section
    rows = pl.read_csv(table.csv.encode(), infer_schema=False)
    kept = int(min(rows.height, rows.height * MAX_COMPRESSION * longest / len(table.csv)))
    text = rows.head(kept).write_csv()
    while kept and (size := len(data_link(text))) > longest:
        kept = int(min(kept * longest / size, 0.98 * kept))  # rows differ in length: try again if it is too many
        text = rows.head(kept).write_csv()
    cut_note = (
        f"To keep this page small, the download holds the first {kept:,} of {rows.height:,} rows; the folder of the "
        "run holds all."
    )
    cut: PageTable = replace(table, csv=text, is_cut=True, note=f"{table.note} {cut_note}".strip())
    return replace(section, table=cut)


def _without_heaviest(render: Render, sections: Sequence[PageSection]) -> list[PageSection]:
    """The sections without the heaviest figure."""
    pairs = [(i, pair) for i, section in enumerate(sections) for pair in section.figures]
    place, heaviest = max(pairs, key=lambda found: len(render([PageSection("", "", figures=[found[1]])])))
    return [_without(section, heaviest) if i == place else section for i, section in enumerate(sections)]


def _without(section: PageSection, left_out: tuple[Figure, object]) -> PageSection:
    omitted = f"The figure “{left_out[0].title}” is left out, because it would make this page too large to send."
    kept = [pair for pair in section.figures if pair is not left_out]
    return replace(section, figures=kept, paragraphs=[*section.paragraphs, omitted])
