"""Objects are displayed in notebooks with the figures of the report."""

from __future__ import annotations

from html import escape

import pytest

import unmet
from tests.small_network import STATIONS, records
from tests.views.runs import write_plan
from unmet.errors import InputError
from unmet.views.figures.plan_gain import PLAN_GAIN
from unmet.views.figures.plan_map import PLAN_MAP
from unmet.views.figures.site_map import SITE_MAP
from unmet.views.lost_report import LostReport
from unmet.views.plan_text import headline, planned_site_rows


@pytest.fixture(scope="module")
def panel() -> unmet.Panel:
    return unmet.Panel(records()[0], STATIONS, regions=2, time_zone="Europe/Copenhagen")


def test_a_panel_shows_its_records(panel):
    assert f"{panel.sessions.height:,}" in panel._repr_html_()
    assert sum(panel.plot().data[0].y) == pytest.approx(panel.sessions["energy_kwh"].sum(), rel=1e-3)


def test_lost_demand_shows_the_answer_and_figures_of_the_report(panel):
    lost = unmet.LostDemand(draws=60)
    assert "LostDemand" in lost._repr_html_()  # not fitted yet
    lost.fit(panel)
    bundle = lost._repr_mimebundle_()
    assert "of charging demand was lost" in bundle["text/html"].replace("\N{NO-BREAK SPACE}", " ")
    assert "Station &lt;West&gt;" in bundle["text/html"]
    assert lost.plot() == SITE_MAP.draw(LostReport.of(lost))
    for what in ("when", "weeks", "regions"):
        assert lost.plot(what).data
    with pytest.raises(InputError, match="choose one of map, when"):
        lost.plot("nothing")


def test_a_plan_shows_its_answer_and_sites(panel):
    planned = unmet.plan(unmet.LostDemand(draws=40).fit(panel), plugs=3)
    html = planned._repr_html_()
    assert headline(planned) in html
    assert all(f"<td>{escape(row[0])}</td>" in html for row in planned_site_rows(planned))
    assert planned.plot() == PLAN_GAIN.draw(planned)
    assert planned.plot("map") == PLAN_MAP.draw(planned)
    with pytest.raises(InputError, match="choose one of gain, map"):
        planned.plot("nothing")


def test_runs_show_their_answer(tmp_path):
    runs = unmet.open_runs(write_plan(tmp_path / "plan"))
    assert "3 plugs at 2 sites" in runs._repr_html_()
    assert runs.plot().data
