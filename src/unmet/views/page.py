"""Pages: self-contained HTML that opens without a network."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from gzip import compress
from importlib.resources import files

from markupsafe import Markup, escape

from unmet.views.figures.base import Figure
from unmet.views.harmless import harmless_figure

__all__ = ["PageBar", "PageSection", "PageTable", "data_link", "render_page"]

MAX_PLAIN_BYTES = 20_000
"""Downloads with more bytes than this are gzipped within the page."""


@dataclass(frozen=True, slots=True)
class PageBar:
    """A cell with a mark on a band, in percent of the cell's width; a mark over 100 becomes an arrow at the end."""

    at: float
    low: float
    high: float


PageCell = str | tuple[str, str] | PageBar
"""Text, a pair of texts whose second is printed small and grey, or a bar."""


@dataclass(frozen=True, slots=True)
class PageTable:
    """The table at the top of a page, or below its figures if it has a heading."""

    heads: Sequence[str]
    rows: Sequence[Sequence[PageCell]]
    note: str
    heading: str = ""
    csv: str = ""
    """The whole table as CSV, for download; by default, the download contains the cells shown."""
    file: str = "table.csv"
    """Name of the downloaded file."""
    is_cut: bool = False
    """Whether the download holds only the first rows."""


@dataclass(frozen=True, slots=True)
class PageSection:
    """A part of a page: paragraphs, a table, figures, then a list."""

    name: str
    heading: str
    paragraphs: Sequence[str] = ()
    table: PageTable | None = None
    items: Sequence[str] = ()
    figures: Sequence[tuple[Figure, object]] = ()
    """Figures, each with the result that it draws."""
    half: bool = False
    """Whether it stands next to another section, if the window is wide enough."""
    tall: bool = False
    """Whether it stands next to two other sections, if it is half."""


def render_page(
    result: object,
    figures: Sequence[Figure],
    *,
    title: str,
    headline: str,
    lead: str,
    facts: Sequence[tuple[str, str]],
    footer: str,
    table: PageTable | None = None,
    warning: str = "",
    before: Sequence[PageSection] = (),
    after: Sequence[PageSection] = (),
    contents: bool = False,
) -> str:
    """One page: the answer, the numbers, then the figures of `result`.

    Args:
        result: the object that the figures draw.
        figures: the figures, in order.
        title: title of the window.
        headline: the answer in one sentence.
        lead: what the answer is based on.
        facts: numbers, each with its meaning.
        footer: where the page comes from.
        table: a table at the top, or below the figures if it has a heading.
        warning: a sentence that must be read before the headline.
        before: sections between the facts and the figures.
        after: sections below the figures.
        contents: whether to list the sections at the top, as links.
    """
    from jinja2 import Environment
    from plotly.offline import get_plotlyjs

    # Names of stations and files are not trusted, so they are escaped.
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["prose"] = _prose
    template = environment.from_string(files("unmet.views").joinpath("page.html.j2").read_text(encoding="utf-8"))
    environment.filters["data_link"] = data_link
    environment.globals["drawn"] = _drawn
    drawn = [_drawn(figure, result) for figure in figures]
    parts = [*before, *after]
    needs_plotly = bool(figures) or any(part.figures for part in parts)
    return template.render(
        title=title,
        headline=headline,
        lead=lead,
        facts=facts,
        table=table,
        warning=warning,
        before=before,
        after=after,
        figures=drawn,
        footer=footer,
        contents=[part for part in parts if part.heading] if contents else [],
        page_js=files("unmet.views").joinpath("page.js").read_text(encoding="utf-8"),
        plotly_js=get_plotlyjs() if needs_plotly else "",
    )


def _drawn(figure: Figure, result: object) -> dict[str, object]:
    """A figure in the form that the template expects."""
    from plotly.io import to_html

    return {
        "name": figure.name,
        "title": figure.title,
        "caption": figure.caption(result),
        "alt": figure.alternative(result),
        "wide": figure.wide,
        "html": Markup(  # noqa: S704
            to_html(
                harmless_figure(figure.draw(result)),
                full_html=False,
                validate=False,
                include_plotlyjs=False,
                div_id=f"plot-{figure.name}",
                config={"displayModeBar": False, "responsive": True},
            )
        ),
    }


def data_link(csv: str) -> str:
    """A data URL with the text as its content, gzipped if long, so that a page without a server can offer a file."""
    data, kind = csv.encode("utf-8-sig"), "text/csv;charset=utf-8"
    if len(data) > MAX_PLAIN_BYTES:
        data, kind = compress(data, mtime=0), "application/gzip"
    return f"data:{kind};base64,{b64encode(data).decode('ascii')}"


def _prose(text: str) -> Markup:
    """Text as HTML: no line break between a number and its unit, and commands and options set as code."""
    kept = re.sub(r"(?<=\d) (%|kWh|MWh)", "\N{NO-BREAK SPACE}\\1", str(escape(text)))
    return Markup(re.sub(r"`([^`]+)`|(?<![\w-])(--[a-z][a-z-]*)", r"<code>\1\2</code>", kept))  # noqa: S704
