"""Sums of draws: stations, sites, regions, weeks and hours count the same drivers."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.estimation.networks import network
from unmet.estimation.lost_demand import LostDemand
from unmet.estimation.posterior import SiteDraws
from unmet.estimation.sums import KEPT_DRAWS, _split, estimate

MEASURES = [
    f"{kind}_{unit}{end}" for kind in ("lost", "true") for unit in ("kwh", "arrivals") for end in ("", "_low", "_high")
]


@given(st.lists(st.floats(0.5, 50), min_size=1, max_size=5), st.integers(0, 2**32 - 1))
def test_stations_of_a_site_share_its_drivers(share, seed):
    rng = np.random.default_rng(seed)
    arrivals = rng.poisson(3.0, (6, 4)).astype(float)
    drawn = SiteDraws(np.arange(4), arrivals, arrivals * rng.uniform(5, 20, arrivals.shape))
    parts = _split(drawn, np.array(share), rng)
    assert len(parts) == len(share)
    assert sum(part for part, _ in parts) == pytest.approx(arrivals)
    assert sum(kwh for _, kwh in parts) == pytest.approx(drawn.kwh)
    assert all((part >= 0).all() and (part == np.round(part)).all() for part, _ in parts)


def test_drivers_are_divided_in_proportion_to_sessions():
    arrivals = np.full((4000, 3), 10.0)
    parts = _split(
        SiteDraws(np.arange(3), arrivals, 10 * arrivals), np.array([1.0, 6.0, 3.0]), np.random.default_rng(1)
    )
    assert [part.mean() for part, _ in parts] == pytest.approx([1.0, 6.0, 3.0], rel=0.02)


def test_an_interval_is_central():
    draws = np.stack([np.arange(101.0), np.arange(101.0) * 2], axis=1)
    result = estimate(draws, 0.9)
    assert result.mean.tolist() == [50, 100]
    assert result.low == pytest.approx([5, 10])
    assert result.high == pytest.approx([95, 190])


def with_twins(result):
    """The same network with the first two sites as two adjacent stations each, with half of the plugs."""
    rng = np.random.default_rng(1)
    plugs = dict(result.stations.select("station_id", "plugs").iter_rows())
    ends = {name: [[], []] for name in ("s0", "s1")}
    ids = []
    for name, start, end in result.sessions.select("station_id", "start", "end").iter_rows():
        if name in ends:
            free = [sum(e > start for e in part) < plugs[name] // 2 for part in ends[name]]
            second = free[1] and (not free[0] or rng.random() < 0.3)
            ends[name][int(second)].append(end)
            name = f"{name}b" if second else name
        ids.append(name)
    double = pl.col("station_id").is_in(["s0", "s1"])
    halved = result.stations.with_columns(plugs=pl.when(double).then(pl.col("plugs") // 2).otherwise(pl.col("plugs")))
    twins = halved.filter(double).with_columns(pl.col("station_id") + "b")
    return result._replace(
        sessions=result.sessions.with_columns(station_id=pl.Series(ids)), stations=pl.concat([halved, twins])
    )


@pytest.fixture(scope="module")
def fitted():
    """Six sites, of which two consist of two adjacent stations in different regions."""
    result = with_twins(network((2, 4, 3, 2, 2, 3), 0.3, 30, 1.5, 3, kinds=(0, 1, 2, 0, 1, 2)))
    return LostDemand(draws=64).fit(result.panel(regions="station", time_zone="Europe/Copenhagen"))


def test_adjacent_stations_are_one_site(fitted):
    assert fitted.network_.sites == 6
    assert fitted.panel_.stations.height == 8
    assert fitted.network_.capacity.tolist() == [2, 4, 3, 2, 2, 3]
    assert fitted.panel_.regions.centres.height == 8


def test_stations_sum_to_regions_weeks_and_the_total_in_every_draw(fitted):
    result, panel = fitted.recovered_, fitted.panel_
    names = panel.regions.centres["unique_id"].to_list()
    for station, week in ((result.station_arrivals, result.week_arrivals), (result.station_kwh, result.week_kwh)):
        assert station.sum() > 0
        for r, name in enumerate(names):
            own = (panel.stations["unique_id"] == name).to_numpy()
            assert week[:, r].sum(axis=1) == pytest.approx(station[:, own].sum(axis=1))
        assert week.sum(axis=(1, 2)) == pytest.approx(station.sum(axis=1))


def test_stations_of_a_site_lose_drivers_in_proportion_to_their_arrivals(fitted):
    table = fitted.by_station()
    lost = dict(table.select("station_id", "lost_arrivals").iter_rows())
    arrivals = dict(table.select("station_id", "arrivals").iter_rows())
    for name in ("s0", "s1"):
        assert lost[f"{name}b"] / lost[name] == pytest.approx(arrivals[f"{name}b"] / arrivals[name], rel=0.15)


def test_tables_sum_to_the_totals(fitted):
    summary, panel = fitted.summary(), fitted.panel_
    station, site, region, week = fitted.by_station(), fitted.by_site(), fitted.by_region(), fitted.by_week()
    for table in (
        station,
        site,
        region,
        week.filter(pl.col("unique_id") == "all"),
        week.filter(pl.col("unique_id") != "all"),
    ):
        assert set(MEASURES) <= set(table.columns)
        assert table["lost_arrivals"].sum() == pytest.approx(summary["lost_arrivals"]["mean"])
        assert table["lost_kwh"].sum() == pytest.approx(summary["lost_kwh"]["mean"])
        assert table["arrivals"].sum() == panel.sessions.height
        assert table["observed_kwh"].sum() == pytest.approx(panel.sessions["energy_kwh"].sum())
        for unit, observed in (("kwh", "observed_kwh"), ("arrivals", "arrivals")):
            for end in ("", "_low", "_high"):
                assert table[f"true_{unit}{end}"].to_numpy() == pytest.approx(
                    (table[observed] + table[f"lost_{unit}{end}"]).to_numpy()
                )
            assert (table[f"lost_{unit}_low"] <= table[f"lost_{unit}_high"]).all()
    grouped = station.group_by("site_id", maintain_order=True).agg(pl.col("lost_kwh", "arrivals").sum())
    joined = site.join(grouped, on="site_id", suffix="_of_stations")
    assert joined["lost_kwh"].to_numpy() == pytest.approx(joined["lost_kwh_of_stations"].to_numpy())
    weeks = week["week"].unique()
    assert (weeks.dt.weekday() == 1).all()


def test_the_interval_of_a_sum_is_narrower_than_the_sum_of_intervals(fitted):
    """Errors of sites are partly independent."""
    summary, station = fitted.summary(), fitted.by_station()
    width = summary["lost_arrivals"]["high"] - summary["lost_arrivals"]["low"]
    assert 0 < width < (station["lost_arrivals_high"] - station["lost_arrivals_low"]).sum()
    total = fitted.recovered_.station_arrivals.sum(axis=1)
    assert summary["lost_arrivals"]["low"] == pytest.approx(np.quantile(total, 0.05))
    assert summary["lost_arrivals"]["high"] == pytest.approx(np.quantile(total, 0.95))


def test_hours_sum_to_the_totals(fitted):
    summary, hours = fitted.summary(), fitted.by_hour()
    assert hours.height == fitted.panel_.table.height
    assert hours["lost_arrivals"].sum() == pytest.approx(summary["lost_arrivals"]["mean"])
    assert hours["lost_kwh"].sum() == pytest.approx(summary["lost_kwh"]["mean"])
    assert hours["true_kwh"].sum() == pytest.approx(summary["lost_kwh"]["mean"] + summary["seen_kwh"])


def test_station_hours_hold_every_arrival_and_every_full_hour(fitted):
    table = fitted.station_hours()
    assert table.columns == ["station_id", "ds", "arrivals", "energy_kwh", "full", "lost_arrivals", "lost_kwh"]
    assert table["arrivals"].sum() == fitted.panel_.sessions.height
    assert table.select((pl.col("arrivals") > 0) | (pl.col("full") > 0)).to_series().all()
    assert (table.filter(pl.col("full") == 0)["lost_arrivals"] == 0).all()
    by_station = dict(table.group_by("station_id").agg(pl.col("lost_arrivals").sum()).iter_rows())
    for name, lost in fitted.by_station().select("station_id", "lost_arrivals").iter_rows():
        assert by_station[name] == pytest.approx(lost)
    full = table.filter(pl.col("station_id") == "s0")["full"].sum()
    share = fitted.by_station().filter(pl.col("station_id") == "s0")["full_share"].item()
    open_hours = (fitted.network_.closed_ms - fitted.network_.opened_ms)[0] / 3_600_000
    assert share == pytest.approx(full / open_hours)


def test_the_panels_draws_are_those_of_the_sums(fitted):
    table, result = fitted.panel_table(), fitted.recovered_
    draws = table["lost_draws"].to_numpy()
    assert draws.shape == (fitted.panel_.table.height, KEPT_DRAWS)
    assert draws.sum(axis=0, dtype=float) == pytest.approx(result.station_kwh.sum(axis=1)[:KEPT_DRAWS], rel=1e-4)
    assert table["lost_kwh"].sum() == pytest.approx(result.station_kwh.sum(axis=1).mean())
    assert (table["elsewhere_kwh"] == 0).all()
    lossless = table.filter(pl.col("lost_arrivals") == 0)
    assert not lossless["censored"].any()
    assert lossless["exposure"].to_numpy() == pytest.approx(1.0)
    assert table["exposure"].is_between(0, 1).all()
    assert table.filter("censored")["lost_arrivals"].min() > 0.3
    expected = table["lost_kwh_before"]
    assert expected.sum() == pytest.approx(table["lost_kwh"].sum(), rel=0.25)
