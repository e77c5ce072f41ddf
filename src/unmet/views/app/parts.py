"""Components that pages of the app share: figures, facts, tables, the progress of jobs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dash import dcc, html

from unmet.views.app.jobs import Job
from unmet.views.app.wording import on_page
from unmet.views.figures.base import Figure
from unmet.views.page import PageBar, PageTable

__all__ = [
    "aria_label",
    "control_box",
    "facts",
    "field",
    "figure_box",
    "graph",
    "job_box",
    "labelled",
    "plain_table",
    "problem",
    "prose",
]

FEW_COLUMNS = 3  # largest number of columns that fit on a phone
CONFIG: Any = {"displayModeBar": False, "responsive": True}


def aria_label(text: str) -> dict[str, Any]:
    """The name of a component for screen readers, as a keyword argument."""
    return {"aria-label": text}


def graph(figure: Figure, result: object, graph_id: str) -> list[Any]:
    """A figure with its heading, its caption and its alternative text."""
    drawn = figure.draw(result)
    sized: dict[str, Any] = {"style": {"height": f"{drawn.layout.height}px"}}
    if drawn.layout.yaxis.scaleanchor:  # a map, whose height follows from its width
        (left, right), (bottom, top) = drawn.layout.xaxis.range, drawn.layout.yaxis.range
        sized = {"className": "map", "style": {"--ratio": f"{(top - bottom) / (right - left):.3f}"}}
    place = dcc.Graph(id=graph_id, figure=drawn.update_layout(height=None), config=CONFIG)
    return [
        html.H3(figure.title),
        html.Div(html.Div(place, **sized), role="img", className="drawn", **aria_label(figure.alternative(result))),
        html.P(prose(figure.caption(result)), className="note"),
    ]


def figure_box(graph_id: str, title: str, height: int) -> Any:
    """A box of fixed height [px] for a figure and a caption that callbacks fill in."""
    place = dcc.Graph(id=graph_id, config=CONFIG, style={"height": f"{height}px"})
    caption = html.P(id=f"{graph_id}-caption", className="note")
    described: dict[str, Any] = {"aria-label": title, "aria-describedby": f"{graph_id}-caption"}
    return html.Section([html.H3(title, id=f"{graph_id}-title"), place, caption], **described)


def control_box(title: str, controls: list[Any]) -> Any:
    """Controls under a title; on a phone they are folded away, so that the answer comes first."""
    return html.Details([html.Summary(title), *controls], className="controls", open=True)


def facts(pairs: Sequence[tuple[str, str]]) -> Any:
    """Numbers, each with its meaning."""
    return html.Div(
        [html.Div([html.B(value), html.Span(text)], className="fact") for value, text in pairs], className="facts"
    )


def field(label: str, control: Any, hint: str = "") -> Any:
    """A control under its label."""
    parts = [html.Label(label, htmlFor=control.id, id=f"{control.id}-label"), control]
    return html.Div([*parts, html.Small(hint)] if hint else parts, className="field")


def labelled(label: str, control: Any) -> Any:
    """A slider under its label; `assets/names.js` gives its thumb the same name for screen readers."""
    group: dict[str, Any] = {"role": "group", "aria-labelledby": f"{control.id}-label"}
    return html.Div([html.Div(label, id=f"{control.id}-label", className="label"), control], className="field", **group)


def plain_table(table: PageTable) -> Any:
    """A table, which scrolls sideways if it is too wide."""
    head = html.Thead(html.Tr([html.Th(name, scope="col") for name in table.heads]))
    body = html.Tbody([html.Tr([html.Td(_cell(cell)) for cell in row]) for row in table.rows])
    parts = [
        html.Table([head, body], **_table_attributes(len(table.heads))),
        html.P(prose(table.note), className="note"),
    ]
    return html.Div(
        parts, className="scroll", tabIndex=0, role="region",
        **aria_label(f"Table: {', '.join(map(str, table.heads))}"),
    )  # fmt: skip


def _table_attributes(n_columns: int) -> dict[str, Any]:
    """Attributes of a table; a table with many columns is laid out differently on a phone."""
    return {"className": "many", "style": {"--columns": str(n_columns)}} if n_columns > FEW_COLUMNS else {}


def _cell(cell: Any) -> Any:
    """A cell of a table: a bar, a text, or a pair of a text and a remark in small print."""
    if isinstance(cell, PageBar):
        band = html.I(style={"left": f"{cell.low:.1f}%", "width": f"{cell.high - cell.low:.1f}%"})
        mark = (
            html.Em("\N{BLACK RIGHT-POINTING SMALL TRIANGLE}")
            if cell.at > 100
            else html.B(style={"left": f"{cell.at:.1f}%"})
        )
        return html.Span([band, mark], className="bar")
    return cell if isinstance(cell, str) else [cell[0], html.Small(prose(cell[1]))]


def prose(text: str) -> str:
    """The text in the wording of the app, without line breaks between a number and its unit."""
    return re.sub(r"(?<=\d) (%|kWh|MWh)", "\N{NO-BREAK SPACE}\\1", on_page(text))


def problem(text: str) -> Any:
    """A warning about something that went wrong, in one sentence."""
    return html.P(on_page(text), className="warning", role="alert")


def job_box(job: Job | None) -> Any:
    """The progress of a job."""
    if job is None or job.state in ("done", "cancelled"):
        return html.P("Cancelled." if job else "", role="status")
    if job.state == "failed":
        return problem(job.error)
    return html.Div(
        [
            html.P(f"{job.doing} …", role="status"),
            html.Progress(value=str(job.progress), max="1", **aria_label("Progress")),
        ],
        className="job",
    )
