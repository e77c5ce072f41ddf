"""Make text from users' files safe: Plotly could render it as links, and spreadsheets could run it as formulas."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

__all__ = ["harmless_figure", "spreadsheet_safe"]

# All tags except those that figures use themselves, which have no attributes; `extra` is Plotly's own.
_OTHER_TAG = re.compile(r"<(?!/?(?:b|br|i|sub|sup|extra)\s*/?>)", re.IGNORECASE)


def harmless_figure(figure: go.Figure) -> dict[str, Any]:
    """A figure as a dictionary, with every tag escaped except line breaks, bold and the like."""
    cleaned: dict[str, Any] = _harmless(figure.to_plotly_json())
    return cleaned


def _harmless(value: Any) -> Any:
    if isinstance(value, str):
        return _OTHER_TAG.sub("&lt;", value)
    if isinstance(value, dict):
        return {name: _harmless(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_harmless(part) for part in value]
    if isinstance(value, np.ndarray) and value.dtype.kind in "OUS":
        return _harmless(value.tolist())
    return value


_FORMULA = r"^[=+\-@\t\r]"
_PLAIN_NUMBER = r"^[+-]?\d+([.,]\d+)?$"


def spreadsheet_safe(table: pl.DataFrame) -> pl.DataFrame:
    """A table in which text that a spreadsheet would take for a formula starts with an apostrophe.

    Source: OWASP, CSV Injection. Parquet files keep the original text.
    """
    cells = {name: pl.col(name) for name, dtype in table.schema.items() if dtype == pl.String}
    return table.with_columns(
        pl.when(text.str.contains(_FORMULA) & ~text.str.contains(_PLAIN_NUMBER))
        .then(pl.concat_str(pl.lit("'"), text))
        .otherwise(text)
        .alias(name)
        for name, text in cells.items()
    )
