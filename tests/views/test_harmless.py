"""Names from outside are shown as plain text, on pages and in spreadsheets."""

from __future__ import annotations

import json
import re

import plotly.graph_objects as go
import polars as pl
import pytest

from unmet.records.inspection import inspect_files
from unmet.views.figures.base import Figure
from unmet.views.harmless import harmless_figure, spreadsheet_safe
from unmet.views.inspection import print_inspections
from unmet.views.page import render_page
from unmet.views.report_sections import csv_of
from unmet.views.terminal import print_summary, report_set_aside

NAMES = (
    "<a href='https://evil.example'>r0</a>",
    '<A HREF="javascript:alert(1)">',
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "<span style='font-size:900px'>",
    "<b onclick=alert(1)>",
    "a < b",
)


def test_figures_keep_their_own_tags_and_escape_all_others():
    figure = go.Figure(go.Bar(x=list(NAMES), y=[1] * len(NAMES), hovertemplate="<b>%{x}</b><br>%{y}<extra></extra>"))
    figure.update_layout(title=f"Region {NAMES[0]}", annotations=[{"text": name} for name in NAMES])
    text = json.dumps(harmless_figure(figure))
    assert set(re.findall(r"<[^>]*>", text)) == {"<b>", "</b>", "<br>", "<extra>", "</extra>"}
    assert "Region &lt;a href" in text


@pytest.mark.parametrize("name", NAMES)
def test_tags_in_names_are_escaped_on_pages(name):
    def draw(_: object) -> go.Figure:
        return go.Figure(go.Scatter(x=[1], y=[1], name=name)).update_layout(title=name)

    figure = Figure("f", name, draw, lambda _: name)
    page = render_page(None, [figure], title=name, headline=name, lead=name, facts=[(name, name)], footer=name)
    body = page.split("</script>", 1)[1]  # after Plotly's own code
    for tag in ("<a ", "<A ", "<img", "<span style='font-size:900px'", "<b onclick", "<script>alert"):
        assert tag not in body


def test_downloads_of_a_report_are_safe_in_a_spreadsheet():
    assert (
        csv_of(pl.DataFrame({"name": ["=1+1", "ok"], "kwh": [-1.23456789, 2.0]}))
        == "name,kwh\n'=1+1,-1.23457\nok,2.0\n"
    )


def test_formulas_in_cells_become_text():
    frame = pl.DataFrame(
        {"id": ["=cmd|' /C calc'!A0", "+1", "-2+3", "@SUM(A1)", "\t=1", "ok", None, "-7"], "kwh": [-1.0] * 8}
    )
    safe = spreadsheet_safe(frame)
    assert safe["id"].to_list() == ["'=cmd|' /C calc'!A0", "+1", "'-2+3", "'@SUM(A1)", "'\t=1", "ok", None, "-7"]
    assert safe["kwh"].equals(frame["kwh"])
    two = pl.DataFrame({"a": ["=1", "b"], "b": ["c", "@d"]})
    assert spreadsheet_safe(two).rows() == [("'=1", "c"), ("b", "'@d")]
    assert spreadsheet_safe(pl.DataFrame({"kwh": [1.0]})).rows() == [(1.0,)]


def test_escape_codes_in_files_do_not_reach_the_terminal(tmp_path, capsys):
    code = "\x1b]0;owned\x07"
    row = f"1{code},s{code},2024-03-04T08:00:00Z,2024-03-04T09:00:00Z,7\n"
    (tmp_path / "s.csv").write_text(
        f"session_id,station_id,start,end,energy_kwh,{code}\n{row}{row.replace(',7', ',x')}"
    )
    print_inspections(inspect_files(tmp_path / "s.csv"), as_json=False)
    print_inspections(inspect_files(tmp_path / "s.csv"), as_json=True)
    print_summary("Records", {"stations": code, "notes": [code]}, as_json=False)
    print_summary("Records", {"stations": code}, as_json=True)
    report_set_aside(pl.DataFrame({"file": code, "line": [1], "column": code, "value": code, "reason": code}))
    printed = capsys.readouterr()
    assert "\x1b" not in printed.out + printed.err
    assert r"\x1b]0;owned\x07" in printed.out
    assert r"\x1b]0;owned\x07" in printed.err
