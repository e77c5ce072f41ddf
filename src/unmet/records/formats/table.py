"""Formats that are tables with known columns, defined by a mapping."""

from __future__ import annotations

from unmet.records.formats.base import Format, Head, Raw
from unmet.records.formats.files import read_table
from unmet.records.mapping import Mapping

__all__ = ["table_format"]


def table_format(name: str, title: str, columns: tuple[str, ...], mapping: Mapping) -> Format:
    """A format that is recognised by its columns, all of which a file must have."""

    def matches(head: Head) -> bool:
        return head.kind != "json" and set(columns) <= set(head.columns)

    def read(head: Head) -> Raw:
        sessions, rejected = read_table(head)
        return Raw(mapping, sessions=sessions, rejected=rejected)

    return Format(name, title, matches, read)
