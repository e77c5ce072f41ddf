"""Pages on lost demand, as written and as rendered by a browser."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from tests.small_network import STATIONS, records
from tests.views.browser import drawn, section, visible_text
from unmet.demand.panel import Panel
from unmet.estimation.lost_demand import LostDemand
from unmet.estimation.selfcheck import SelfCheck
from unmet.views.figures import PANEL_FIGURES, RECOVERY_FIGURES
from unmet.views.figures.occupancy import occupancy_by_week
from unmet.views.lost_report import LostReport
from unmet.views.panel import panel_page
from unmet.views.recovery import recovery_page
from unmet.views.theme import about, about_energy

RECORDS = {
    "formats": {"in/sessions.csv": "unmet"},
    "rows_in": 1200,
    "rows_kept": 1190,
    "rows_set_aside": 10,
    "readings": ["12 dates are read day first."],
    "record_notes": ["A note on reading."],
}
FIGURES = {figure.name: figure for figure in (*RECOVERY_FIGURES, *PANEL_FIGURES)}


@pytest.fixture(scope="module")
def report() -> LostReport:
    panel = Panel(records()[0], STATIONS, regions=2, time_zone="Europe/Copenhagen")
    return LostReport.of(LostDemand(draws=60).fit(panel))


@pytest.fixture(scope="module")
def page(report) -> str:
    return recovery_page(report, RECORDS)


def test_the_answer_comes_first_with_its_interval(page, report):
    value, span = about_energy(**report.summary["lost_kwh"])
    drivers, drivers_span = about(**report.summary["lost_arrivals"])
    heading = re.search(r"<h1>(.*?)</h1>", page)
    assert heading is not None
    assert heading[1].replace("\N{NO-BREAK SPACE}", " ") == (
        f"About {value} of charging demand was lost ({span}): {drivers} drivers who found no free plug ({drivers_span})"
    )
    assert page.index("<h1>") < page.index('id="sites"') < page.index('id="trust"') < page.index('id="sensitivity"')
    assert page.index('id="notes"') < page.index('id="recovered-weeks"') < page.index('id="method"')
    assert "Market <small>2 stations</small>".replace(" <", "<") in page


def with_self_check(report: LostReport, check: SelfCheck, notes: list[str]) -> LostReport:
    """The report with another self-check."""
    lost = LostDemand(draws=60)
    lost.__dict__.update(report.lost.__dict__)
    lost.self_check_ = check
    result = {"ratio": check.ratio, "low": check.low, "high": check.high}
    return replace(report, lost=lost, summary=report.summary | {"self_check": result, "notes": notes})


def test_a_bad_self_check_gives_a_warning_before_the_number(report):
    warning, note = "Treat this estimate with caution: it is far off.", "Something else."
    page = recovery_page(with_self_check(report, SelfCheck(0.4, 0.35, 0.45, 500, 0.05), [warning, note]))
    assert page.index(warning) < page.index("<h1>") < page.index(note)
    assert page.count(warning) == 1
    assert "0.40 (0.35 to 0.45), where 1.00 is perfect" in page
    assert "That is off, and the range is wider because of it." in page
    page = recovery_page(with_self_check(report, SelfCheck(1.02, 0.92, 1.12, 500, 0.05), [note]))
    assert 'class="warning"' not in page
    assert note in page
    assert "That is close." in page


def test_five_sites_are_listed_by_loss(page, report):
    part = page.split('id="sites"', 1)[1].split("</section>", 1)[0]
    names = [name.split(". ", 1)[1] for name in re.findall(r"<td>(\d\. [^<]+)", part)]
    ranked = report.sites.sort("lost_kwh", descending=True)["name"].to_list()
    assert names == [name.replace("<", "&lt;").replace(">", "&gt;") for name in ranked]
    assert part.count("<tr>") == 1 + 5


def test_other_assumptions_are_a_table_and_notes_a_list(page, report):
    part = page.split('id="sensitivity"', 1)[1].split("</section>", 1)[0]
    assert part.count("<tr>") == 1 + report.sensitivity.height
    assert "Nobody waits" in part
    marks = [float(left) for left in re.findall(r'<b style="left:([\d.]+)%', part)]
    (high,) = {float(left) + float(width) for left, width in re.findall(r"left:([\d.]+)%;width:([\d.]+)%", part)}
    expected = 100 * report.sensitivity["lost_kwh"] * high / 100 / report.summary["lost_kwh"]["high"]
    assert marks == pytest.approx([at for at in expected if at <= 100], abs=0.3)
    assert part.count("<em>") == (expected > 100).sum()
    notes = page.split('id="notes"', 1)[1].split("</section>", 1)[0]
    assert notes.count("<li>") == len(report.notes()) > 1


def test_the_page_says_how_much_the_prior_contributes(report):
    prior = {"from_prior": 0.64, "prior_shift": -0.08, "prior_interval": 0.28}
    text = visible_text(recovery_page(replace(report, summary=report.summary | prior)))
    assert (
        "makes this estimate 8 % lower and accounts for 28 % of its uncertainty. For 64 % of the lost drivers" in text
    )
    without = replace(report, summary=report.summary | dict.fromkeys(prior, 0.0))
    assert "your own records are enough" in recovery_page(without)


def test_the_first_screen_has_no_jargon_and_no_missing_values(page):
    first = visible_text(page.split('id="recovered-weeks"', 1)[0]).lower()
    for word in ("posterior", "likelihood", "exposure", "censored", "prior ", "credible", "nan", "none", "1 sites"):
        assert word not in first, word


def test_commands_are_set_as_code_and_units_stay_with_their_numbers(report):
    notes = ["If a site was out of order, give --outages <file> or see `unmet panel`: 5 % of 7 kWh, well-known."]
    page = recovery_page(replace(report, summary=report.summary | {"notes": notes, "self_check": None}))
    assert (
        "give <code>--outages</code> &lt;file&gt; or see <code>unmet panel</code>: 5\xa0% of 7\xa0kWh, well-known"
        in page
    )


def test_the_page_says_where_it_comes_from(page, report):
    part = page.split('id="provenance"', 1)[1]
    for words in ("sessions.csv (unmet)", "1,200 read, 1,190 kept, 10 set aside", "A note on reading.",
                  "12 dates are read day first.", "seed 1", "Europe/Copenhagen"):  # fmt: skip
        assert words in part
    method = page.split('id="method"', 1)[1].split("</section>", 1)[0]
    assert method.count("<li>") == 5


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_has_labelled_axes_and_a_caption(name, report):
    figure = FIGURES[name].draw(report)
    axes = [*figure.select_xaxes(), *figure.select_yaxes()]
    assert sum(1 for axis in axes if axis.title.text) >= 2
    assert FIGURES[name].caption(report).endswith(".")


def test_weekly_bars_show_the_table_of_weeks(report):
    figure = FIGURES["recovered-weeks"].draw(report)
    shown = [trace for trace in figure.data if trace.visible]
    weeks = report.weeks.filter(pl.col("unique_id") == "all").sort("week")
    assert [trace.name for trace in shown] == ["Lost", "Recorded"]
    assert np.array(shown[0].y) == pytest.approx(weeks["lost_kwh"].to_numpy(), abs=0.01)
    assert np.array(shown[0].error_y.array) == pytest.approx(
        (weeks["lost_kwh_high"] - weeks["lost_kwh"]).to_numpy(), abs=0.01
    )
    assert np.array(shown[1].y) == pytest.approx(weeks["observed_kwh"].to_numpy(), abs=0.01)
    buttons = figure.layout.updatemenus[0].buttons
    assert [sum(button.args[0]["visible"]) for button in buttons] == [2, 2, 2]
    worst = report.ranked_regions()["unique_id"][0]
    assert buttons[1].label == f"Region {worst}"


def test_regional_bars_show_shares_of_all_energy_wanted(report):
    (bars,) = FIGURES["recovered-regions"].draw(report).data
    table = report.regions.select(share=100 * pl.col("lost_kwh") / pl.col("true_kwh")).sort("share", descending=True)
    assert np.array(bars.x) == pytest.approx(table["share"].to_numpy(), abs=0.01)


def test_the_map_shows_loss_as_area_on_equal_scales(report):
    figure = FIGURES["site-map"].draw(report)
    sizes = np.concatenate([trace.marker.size for trace in figure.data])
    lost = report.sites["lost_kwh"].sort(descending=True).to_numpy()
    assert sizes.max() == pytest.approx(46)
    assert (np.sort(sizes)[::-1][:3] / 46) ** 2 == pytest.approx(lost[:3] / lost[0], rel=0.01)
    assert figure.layout.yaxis.scaleanchor == "x"
    assert figure.layout.yaxis.scaleratio == 1
    hover = " ".join(words for trace in figure.data for words in trace.customdata)
    assert "Station &lt;West&gt;" in hover


def test_a_site_with_swapped_coordinates_is_named_on_the_map_instead_of_shrinking_it(report):
    usual = FIGURES["site-map"].draw(report)
    worst = pl.col("lost_kwh") == pl.col("lost_kwh").max()
    swapped = report.sites.with_columns(
        lat=pl.when(worst).then("lon").otherwise("lat"), lon=pl.when(worst).then("lat").otherwise("lon")
    )
    figure = FIGURES["site-map"].draw(replace(report, sites=swapped))
    (note,) = [label.text for label in figure.layout.annotations if "Off the map" in label.text]
    away = re.search(r": ([\d,]+) km away", note)
    assert away is not None
    assert float(away[1].replace(",", "")) > 1000
    shown, all_sites = (
        sum(len(trace.x) for trace in drawn.data if trace.mode == "markers") for drawn in (figure, usual)
    )
    assert shown == all_sites - 1
    width = [np.ptp(drawn.layout.xaxis.range) for drawn in (figure, usual)]
    assert width[0] <= 1.5 * width[1]
    assert "1 site so far away that the position looks wrong is not drawn" in FIGURES["site-map"].caption(
        replace(report, sites=swapped)
    )


def test_pages_omit_figures_that_would_be_empty():
    panel = Panel(records(21)[0], STATIONS.select("station_id", "plugs"), regions=1)
    page = recovery_page(LostReport.of(LostDemand(draws=20).fit(panel)))
    assert 'id="site-map"' not in page
    assert 'id="recovered-weeks"' in page
    one = STATIONS.filter(pl.col("station_id") == "a")
    panel = Panel(records(21)[0].filter(pl.col("station_id") == "a"), one)
    page = recovery_page(LostReport.of(LostDemand(draws=20).fit(panel)))
    assert 'id="recovered-regions"' not in page
    assert "1 station at 1 site," in page
    assert "The site that lost the most" in page


def test_occupancy_is_cars_over_capacity(report):
    share = occupancy_by_week(report.panel, report.sites)
    sessions = report.panel.sessions
    hours = (sessions["end"] - sessions["start"]).dt.total_milliseconds().sum() / 3_600_000
    capacity = report.sites["capacity"].to_numpy()[:, None]
    weeks = report.panel.hours / 168
    assert (share * capacity).sum() * weeks == pytest.approx(hours, rel=0.01)
    assert share.max() <= 1.0


def test_full_exposure_is_drawn(report):
    seen = replace(report)
    seen.__dict__["table"] = report.table.with_columns(exposure=pl.lit(1.0))
    assert "it is 100.0 %." in FIGURES["exposure"].caption(seen)
    (heat,) = FIGURES["exposure"].draw(seen).data
    assert np.array(heat.z).min() == 100


@pytest.mark.parametrize(
    ("numbers", "text", "energy"),
    [
        ((2964.8, 1283.9, 5568.8), ("3,000", "1,300 to 5,600"), ("3,000 kWh", "1,300 to 5,600 kWh")),
        ((20689.0, 8903.5, 38806.3), ("21,000", "8,900 to 39,000"), ("21 MWh", "8.9 to 39 MWh")),
        ((1234.0, 1200.0, 1260.0), ("1,230", "1,200 to 1,260"), ("1,230 kWh", "1,200 to 1,260 kWh")),
        ((0.0, 0.0, 0.0), ("0", "0 to 0"), ("0 kWh", "0 to 0 kWh")),
        ((0.4, 0.01, 1.26), ("0.4", "0 to 1.3"), ("0.4 kWh", "0 to 1.3 kWh")),
        ((9.96, 9.9, 10.04), ("10", "9.9 to 10"), ("10 kWh", "9.9 to 10 kWh")),
    ],
)
def test_numbers_have_as_many_digits_as_their_interval_allows(numbers, text, energy):
    assert about(*numbers) == text
    assert about_energy(*numbers) == energy


def test_a_browser_draws_every_figure(page, report, tmp_path):
    for name, html, figures in (
        ("recovery", page, RECOVERY_FIGURES),
        ("panel", panel_page(report, RECORDS), PANEL_FIGURES),
    ):
        path = tmp_path / f"{name}.html"
        path.write_text(html, encoding="utf-8")
        shown = drawn(path, tmp_path / f"profile-{name}")
        for figure in figures:
            assert "main-svg" in section(shown, figure.name), figure.name


def test_the_page_needs_no_network(page):
    body = page.split("</script>", 1)[1]
    assert not re.search(r"""(src|href)\s*=\s*["']https?:""", body)
    assert not re.search(r"<script[^>]+src=", page)
