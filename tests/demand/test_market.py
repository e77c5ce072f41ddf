"""Market shares: arrival rates of competitors' stations, inferred from those around them, and their uncertainty."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.demand.records import sessions, stations
from unmet.demand.kriging import krige
from unmet.demand.market import Market, parse_share
from unmet.demand.panel import Panel
from unmet.demand.regions import group_stations
from unmet.errors import InputError

Z_95 = 1.6449


def smooth_city(seed: int, number: int = 80):
    """Stations on a square of 15 km, with rates that vary smoothly over it."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(0, 15, (2, number))
    plugs = rng.integers(1, 9, number)
    rate = np.exp(0.9 * np.sin(x / 4) + 0.6 * np.cos(y / 5) + 0.15 * rng.standard_normal(number))
    names = [f"s{i:03}" for i in range(number)]
    table = stations(*names, plugs=plugs).with_columns(lat=pl.Series(55 + y / 111), lon=pl.Series(12 + x / 64))
    return table, rate, np.hypot(x[:, None] - x, y[:, None] - y), rng


@pytest.mark.parametrize("seed", range(3))
def test_unknown_rates_are_predicted_better_than_by_the_mean_of_all(seed):
    table, rate, km, rng = smooth_city(seed)
    rate = rate * np.sqrt(table["plugs"].to_numpy())
    known = rng.random(len(rate)) < 0.6
    kriged = krige(np.where(known, rate, 1.0), np.full(len(rate), 0.005), known, km, table["plugs"].to_numpy())
    error, by_mean = (np.log(rate) - kriged.mean)[~known], (np.log(rate) - np.log(rate[known]).mean())[~known]
    assert np.sqrt((error**2).mean()) < 0.5 * np.sqrt((by_mean**2).mean())
    spread = np.sqrt(np.diag(kriged.covariance))
    assert (np.abs(error) < Z_95 * spread[~known]).mean() > 0.8
    assert spread[~known].min() > spread[known].max()
    assert kriged.mean[known] == pytest.approx(np.log(rate[known]), abs=0.1)
    drawn = np.log(kriged.draws(2000, np.random.default_rng(1)))
    assert drawn.mean(axis=0) == pytest.approx(kriged.mean, abs=0.05)
    assert np.cov(drawn.T) == pytest.approx(kriged.covariance, abs=0.02)


def shares(table: pl.DataFrame, rate, own, regions: str = "4"):
    """Market share in each region of the operator of the `own` stations, and the region of every station."""
    marked = table.with_columns(operator=pl.when(pl.Series(own)).then(pl.lit("Mine")).otherwise(pl.lit("Theirs")))
    grouped, _ = group_stations(marked, regions)
    own_stations = Market("Mine").own_stations(marked)
    return Market("Mine").share_of_regions(grouped, marked, own_stations, rate[own]), grouped.codes()


@pytest.mark.parametrize("seed", range(3))
def test_shares_by_rates_are_closer_to_the_truth_than_shares_by_plugs(seed):
    table, rate, _, rng = smooth_city(seed)
    own = rng.random(len(rate)) < np.where(table["plugs"].to_numpy() < 4, 0.7, 0.2)  # rates do not depend on plugs here
    found, region = shares(table, rate, own)
    unplaced = table.with_columns(lat=pl.lit(None, pl.Float64))
    grouped = group_stations(table, "4")[0]
    marked = unplaced.with_columns(operator=pl.when(pl.Series(own)).then(pl.lit("Mine")).otherwise(pl.lit("Theirs")))
    plugs = Market("Mine").share_of_regions(grouped, marked, marked.filter(pl.Series(own)), rate[own])
    truth, counted = (
        np.bincount(region, np.where(own, weight, 0.0)) / np.bincount(region, weight)
        for weight in (rate, table["plugs"].to_numpy().astype(float))
    )
    assert plugs.share == pytest.approx(counted)
    error = np.abs(np.log(found.share / truth))
    assert error.mean() < 0.5 * np.abs(np.log(counted / truth)).mean()
    assert (error < 3 * found.spread).all()
    assert (found.spread < plugs.spread).all()


def test_an_operator_of_all_stations_has_the_whole_market_without_uncertainty():
    table, rate, _, _ = smooth_city(1)
    for part, rates in ((table, rate), (table.head(3), rate[:3])):  # by rates, and by plugs
        found, _ = shares(part, rates, np.ones(len(rates), bool), "2")
        assert found.share == pytest.approx(1.0)
        assert (found.spread == 0).all()
    region = group_stations(table, "4")[0].codes()
    found, _ = shares(table, rate, region != 2)
    assert found.share[2] == 0
    assert np.delete(found.share, 2) == pytest.approx(1.0)
    assert (np.delete(found.spread, 2) == 0).all()


def test_a_share_by_plugs_is_uncertain():
    table, rate, _, _ = smooth_city(1)
    found, _ = shares(table.head(4), rate[:4], np.array([True, False, True, True]), "1")
    plugs = table["plugs"].head(4)
    assert found.share == pytest.approx((plugs.sum() - plugs[1]) / plugs.sum())
    assert 0 < found.spread[0] < 0.4


@settings(max_examples=20)
@given(st.floats(0.01, 1), st.floats(0.01, 1))
def test_a_range_contains_the_share_with_90_percent_probability(one, other):
    low, high = sorted((round(one, 4), round(other, 4)))
    regions = group_stations(stations("a", "b"), "2")[0]
    market = Market(share=parse_share(f"{low}-{high}"))
    found = market.share_of_regions(regions, stations("a", "b"), stations("a", "b"), np.ones(2))
    assert found.share == pytest.approx(np.full(2, math.sqrt(low * high)))
    assert found.share * np.exp(Z_95 * found.spread) == pytest.approx(np.full(2, high), rel=1e-3)
    assert found.share * np.exp(-Z_95 * found.spread) == pytest.approx(np.full(2, low), rel=1e-3)


def test_a_share_or_a_range_is_read_and_stated_in_the_notes():
    assert parse_share("0.25") == (0.25, 0.25)
    assert parse_share("0.2-0.3") == (0.2, 0.3)
    rows = [("a", h, h + 0.5, 5) for h in range(20)]
    exact, ranged = (Panel(sessions(*rows), stations("a"), market=Market(share=s)) for s in (0.25, (0.2, 0.3)))
    for panel, spread in ((exact, 0.0), (ranged, math.log(1.5) / (2 * Z_95))):
        found = panel.market.share_of_regions(panel.regions, panel.everyone, panel.stations, np.ones(1))
        assert found.spread == pytest.approx(np.array([spread]), abs=1e-12)
    assert "25 % of the market" in exact.notes[1]
    assert "20 to 30 % of the market" in ranged.notes[1]


@pytest.mark.parametrize(
    "text", ["", "much", "0", "1.2", "-0.2", "0.3-0.2", "0.2-0.3-0.4", "0-0.5", "0.5-2", "nan", "-"]
)
def test_invalid_shares_are_refused(text):
    with pytest.raises(InputError, match=r"above 0 and up to 1, such as 0\.25 or 0\.2-0\.3"):
        parse_share(text)
