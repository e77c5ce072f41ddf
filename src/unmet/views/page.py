"""Pages: self-contained HTML that opens without a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from unmet.views.figures.base import Figure

__all__ = ["PageTable", "render_page"]


@dataclass(frozen=True, slots=True)
class PageTable:
    """The table at the top of a page, or below its figures if it has a heading.

    A cell is text, or a pair of which the second is printed small and grey.
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[str | tuple[str, str]]]
    note: str
    heading: str = ""


def render_page(
    result: object,
    figures: Sequence[Figure],
    *,
    title: str,
    headline: str,
    lead: str,
    facts: Sequence[tuple[str, str]],
    table: PageTable,
    footer: str,
) -> str:
    """One page: the answer, the numbers, then the figures of `result`."""
    from jinja2 import Environment
    from plotly.offline import get_plotlyjs

    # Autoescape is on: names of stations and files come from outside.
    template = Environment(autoescape=True).from_string(
        files("unmet.views").joinpath("page.html.j2").read_text(encoding="utf-8")
    )
    drawn = [
        {
            "name": figure.name,
            "title": figure.title,
            "caption": figure.caption(result),
            "html": figure.draw(result).to_html(
                full_html=False,
                include_plotlyjs=False,
                div_id=f"plot-{figure.name}",
                config={"displayModeBar": False, "responsive": True},
            ),
        }
        for figure in figures
    ]
    return template.render(
        title=title,
        headline=headline,
        lead=lead,
        facts=facts,
        table=table,
        figures=drawn,
        footer=footer,
        plotly_js=get_plotlyjs(),
    )
