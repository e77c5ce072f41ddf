"""One car at a time on a plug, against a plain loop; and what the document says, against the code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unmet.records.cells import REASONS
from unmet.records.cleaning import _one_at_a_time
from unmet.records.formats import format_names
from unmet.records.mapping import Mapping
from unmet.records.stations import STATIONS

DOCUMENT = Path(__file__).parents[2] / "docs" / "records.md"


def loop(sessions: list[tuple[int, int, int]]) -> list[int]:
    """Ends, one session after the other, for sessions sorted by plug and start."""
    kept: list[list[int]] = []
    for plug, start, end in sessions:
        inside = [other for other in kept if other[0] == plug and other[2] >= end and other[1] <= start]
        if inside:
            kept.append([plug, start, start])
            continue
        for other in kept:
            if other[0] == plug and other[2] > start:
                other[2] = start
        kept.append([plug, start, end])
    return [end for _, _, end in kept]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=25))
def test_ends_are_those_of_a_plain_loop(rows):
    sessions = sorted((plug, start, start + length) for plug, start, length in rows)
    plug, start, end = (np.array(column, dtype=np.int64) for column in zip(*sessions, strict=True))
    cut = _one_at_a_time(plug, start, end)
    assert cut.tolist() == loop(sessions)


def test_the_document_names_every_format_reason_and_column():
    text = DOCUMENT.read_text(encoding="utf-8")
    for key in REASONS:
        assert f"`{key}`" in text, key
    for name in format_names():
        assert f"`{name}`" in text, name
    for field in Mapping.model_fields:
        assert f"`{field}`" in text, field
    for column in STATIONS.columns:
        assert all(f"`{name}`" in text for name in (column.name, *column.aliases)), column.name
    assert max(map(len, text.splitlines())) <= 120
