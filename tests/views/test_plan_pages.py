"""Pages on plans, as written and as rendered by a browser."""

from __future__ import annotations

import json

import polars as pl
import pytest

from tests.small_network import STATIONS, records
from tests.views.browser import drawn, section
from unmet.demand.panel import Panel
from unmet.estimation.lost_demand import LostDemand
from unmet.planning.plan import plan
from unmet.views.plan import plan_page, write_plan
from unmet.views.plan_text import headline, money, planned_site_rows


@pytest.fixture(scope="module")
def lost() -> LostDemand:
    return LostDemand(draws=40).fit(Panel(records()[0], STATIONS, regions="2"))


def test_the_answer_comes_first(lost, tmp_path):
    planned = plan(lost, plugs=4, propose=1, plug_cost=3000, price=0.3)
    write_plan(planned, tmp_path)
    page = drawn(tmp_path / "plan.html", tmp_path / "profile")
    assert (
        page.index(headline(planned)) < page.index('id="gain"') < page.index('id="plan-map"') < page.index('id="sites"')
    )
    assert "this plan" in section(page, "gain")
    assert "Gets plugs" in section(page, "plan-map")
    assert "Station &lt;West&gt;" in page
    assert "Station <West>" not in page


def test_a_plan_without_positions_has_no_map(lost):
    panel = Panel(records()[0], STATIONS.with_columns(pl.lit(None, pl.Float64).alias("lat")), regions="station")
    planned = plan(LostDemand(draws=40).fit(panel), plugs=3)
    assert 'id="plan-map"' not in plan_page(planned)


def test_headlines(lost):
    assert headline(plan(lost, plugs=3)).startswith("3 plugs at ")
    assert headline(plan(lost, plugs=1)).startswith("1 plug at 1 site recovers ")
    assert headline(plan(lost, serve=0.2)).startswith("No plug is needed")
    assert "cannot be served" in headline(plan(lost, serve=0.9999, max_per_site=1))


def test_rows_name_each_site_once(lost):
    rows = planned_site_rows(plan(lost, plugs=6))
    assert len({row[0] for row in rows}) == len(rows)


def test_amounts_are_rounded_to_four_digits():
    assert (money(145_000.0), money(-134_190.2), money(0.0)) == ("145,000", "\N{MINUS SIGN}134,200", "0")


def test_all_files_contain_the_same_table(lost, tmp_path):
    planned = plan(lost, plugs=3)
    write_plan(planned, tmp_path)
    assert pl.read_parquet(tmp_path / "plan.parquet").equals(planned.table)
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["plugs"] == 3
    assert [site["plugs_added"] for site in summary["chosen"]] == planned.table.filter(pl.col("plugs_added") > 0)[
        "plugs_added"
    ].to_list()
