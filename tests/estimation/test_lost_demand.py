"""Laws of `LostDemand`: what the estimate may and may not depend on, and how close it is to a known truth."""

from __future__ import annotations

import datetime as dt

import numpy as np
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError

from tests.estimation.networks import MONDAY, Simulated, moments, network
from unmet.demand.market import Market
from unmet.errors import InputError
from unmet.estimation import sensitivity
from unmet.estimation.lost_demand import LostDemand
from unmet.estimation.rates import response_at_full
from unmet.estimation.towns import TOWNS

KINDS = (0, 1, 2, 0, 1, 2)
PLUGS = (1, 2, 3, 2, 4, 3)


def fit(panel, until=None, **options) -> LostDemand:
    return LostDemand(**({"draws": 60} | options)).fit(panel, until)


def draws(lost):
    return lost.recovered_.station_arrivals, lost.recovered_.station_kwh


@pytest.fixture(scope="module")
def town() -> Simulated:
    return network(PLUGS, 0.25, 28, 1.5, 1, kinds=KINDS)


@pytest.fixture(scope="module")
def lost(town) -> LostDemand:
    return fit(town.panel())


@pytest.mark.parametrize("regions", ["1", "5", "10", "station"])
def test_the_estimate_does_not_depend_on_the_regions(town, lost, regions):
    other = fit(town.panel(regions=regions))
    for ours, theirs in zip(draws(lost), draws(other), strict=True):
        assert (ours == theirs).all()
    assert other.summary()["lost_kwh"] == pytest.approx(lost.summary()["lost_kwh"])


def test_the_same_seed_gives_the_same_draws(town, lost):
    assert all((a == b).all() for a, b in zip(draws(lost), draws(fit(town.panel())), strict=True))
    other = fit(town.panel(), seed=2)
    assert (draws(lost)[0] != draws(other)[0]).any()
    assert other.summary()["lost_arrivals"]["mean"] == pytest.approx(lost.summary()["lost_arrivals"]["mean"], rel=0.1)


@pytest.mark.parametrize("change", ["shuffled", "pandas", "arrow", "other ids", "more columns"])
def test_the_same_sessions_in_any_form_give_the_same_estimate(town, lost, change):
    table, known = town.sessions, town.stations
    if change == "shuffled":
        table = table.sample(fraction=1.0, shuffle=True, seed=3)
    elif change == "pandas":
        table, known = table.to_pandas(), known.to_pandas()
    elif change == "arrow":
        table, known = table.to_arrow(), known.to_arrow()
    elif change == "other ids":
        named = {f"s{i}": f"z{9 - i}" for i in range(6)}
        table, known = (each.with_columns(pl.col("station_id").replace(named)) for each in (table, known))
    else:
        table = table.with_columns(colour=pl.lit("green"), session_id=pl.int_range(pl.len()))
    other = fit(town._replace(sessions=table, stations=known).panel())
    assert (draws(lost)[0] == draws(other)[0]).all()
    assert draws(lost)[1] == pytest.approx(draws(other)[1])


def test_nothing_is_lost_if_no_site_was_ever_full():
    quiet = fit(network((12, 10, 12), 0.02, 21, 1.0, 1).panel())
    assert all((each == 0).all() for each in draws(quiet))
    summary = quiet.summary()
    assert summary["lost_kwh"] == {"mean": 0.0, "low": 0.0, "high": 0.0}
    table = quiet.panel_table()
    assert (table["exposure"] == 1).all()
    assert not table["censored"].any()
    assert quiet.by_hour()["lost_arrivals"].sum() == 0
    assert quiet.by_week()["lost_kwh"].sum() == 0


def test_a_site_that_is_always_full_gets_a_wide_interval_and_a_note():
    town = network(PLUGS, 0.3, 28, 1.5, 1)
    hours = np.arange(0, 28 * 24, 4.0)
    always = pl.DataFrame(
        {
            "station_id": ["s0"] * len(hours),
            "start": moments(hours),
            "end": moments(hours + 3.99),
            "energy_kwh": np.full(len(hours), 10.0),
            "user_id": ["u"] * len(hours),
        }
    )
    rows = pl.concat([town.sessions.filter(pl.col("station_id") != "s0"), always])
    lost = fit(town._replace(sessions=rows).panel(), draws=200)
    summary, station = lost.summary(), lost.by_station().row(0, named=True)
    assert station["full_share"] > 0.95
    assert any("full almost all the time (s0)" in note for note in summary["notes"])
    assert np.isfinite(lost.recovered_.station_kwh).all()
    assert 0 < station["lost_arrivals"] < 30 * 28 * 24
    # Little is known about its rate: relative to the estimate, its interval is wider than that of the others.
    table = lost.by_station().with_columns(
        width=(pl.col("lost_arrivals_high") - pl.col("lost_arrivals_low")) / pl.col("lost_arrivals")
    )
    others = table.filter((pl.col("station_id") != "s0") & (pl.col("lost_arrivals") > 30))
    assert table["width"][0] > others["width"].median()


@pytest.mark.parametrize("beta", [0.0, -2.0])
def test_a_market_share_adds_demand_elsewhere_and_leaves_own_losses_unchanged(beta):
    town = network((4, 5, 4, 5), 0.4, 42, 1.2, 2, beta=beta)
    whole, half, quarter = (fit(town.panel(market=Market(share=share))) for share in (1.0, 0.5, 0.25))
    for part in (half, quarter):
        assert all((a == b).all() for a, b in zip(draws(whole), draws(part), strict=True))
        assert part.summary()["lost_kwh"] == whole.summary()["lost_kwh"]
    tables = [each.panel_table() for each in (whole, half, quarter)]
    elsewhere = [table["elsewhere_kwh"].to_numpy() for table in tables]
    assert (elsewhere[0] == 0).all()
    assert elsewhere[2] == pytest.approx(3 * elsewhere[1])
    # With half of the market, competitors have as much demand as this operator, served or lost.
    own = whole.summary()["seen_kwh"] + town.lost["energy_kwh"].sum()
    assert elsewhere[1].sum() == pytest.approx(own, rel=0.06)
    assert tables[1]["lost_kwh"].to_numpy() == pytest.approx(tables[0]["lost_kwh"].to_numpy())
    drawn = [table["lost_draws"].to_numpy().sum(dtype=float) / 32 for table in tables]
    assert drawn[1] - drawn[0] == pytest.approx(elsewhere[1].sum(), rel=0.03)
    exposure = [table["exposure"].mean() for table in tables]
    assert exposure[1] == pytest.approx(0.5 * exposure[0], rel=0.02)
    assert exposure[2] == pytest.approx(0.25 * exposure[0], rel=0.02)
    before = [table["lost_kwh_before"].sum() for table in tables]
    assert before[1] - before[0] == pytest.approx(elsewhere[1].sum(), rel=0.1)


def test_energies_are_those_of_the_time_of_day_at_which_drivers_are_lost():
    """Sites are busy in the evening, and sessions from noon on take three times as much energy."""
    town = network((1, 1, 2, 2, 2, 1), 0.25, 56, 2.0, 4, kinds=(1,) * 6, evening_kwh=3.0)
    lost = fit(town.panel())
    summary = lost.summary()
    each = summary["lost_kwh"]["mean"] / summary["lost_arrivals"]["mean"]
    true = town.lost["energy_kwh"].mean()
    assert each == pytest.approx(true, rel=0.06)
    assert summary["lost_kwh"]["mean"] == pytest.approx(town.lost["energy_kwh"].sum(), rel=0.15)
    hours = lost.by_hour().with_columns(hour=pl.col("ds").dt.hour())
    parts = [hours.filter(part) for part in (pl.col("hour") < 12, pl.col("hour") >= 12)]
    morning, evening = (part["lost_kwh"].sum() / part["lost_arrivals"].sum() for part in parts)
    assert evening / morning == pytest.approx(3.0, rel=0.25)


def test_an_inferred_capacity_is_uncertain_in_the_draws():
    town = network((2, 3, 2, 3), 0.3, 28, 1.5, 5)
    unlisted = town.stations.with_columns(plugs=pl.when(pl.col("station_id") != "s1").then(pl.col("plugs")))
    panel = town._replace(stations=unlisted).panel()
    lost = fit(panel, draws=200)
    assert lost.network_.capacity.tolist() == [2, 3, 2, 3]
    sure = panel.stations["capacity_sure"].to_numpy()
    assert (lost.recovered_.station_arrivals == 0).mean(axis=0) == pytest.approx(1 - sure, abs=0.06)


def test_draws_average_to_the_drivers_expected_to_be_turned_away():
    """With uncertain profiles, day effects and bursts."""
    town = network((2, 3, 4, 3), 0.4, 35, 1.2, 7, site_hour=0.8, city_day=0.3, site_day=0.4)
    sure = TOWNS._replace(no_crowding=1 - 1e-9, bias=0.0, bias_spread=0.0)
    lost = fit(town.panel(), draws=400, waiting=0.0, spill=0.0, prior=sure)
    assert np.isfinite(lost.bursts_.shape)
    by_site = np.bincount(lost.rows_.site, lost.turned_away_)
    assert lost.recovered_.station_arrivals.mean(axis=0) == pytest.approx(by_site, rel=0.05)
    given = fit(lost.panel_, draws=400, waiting=0.3, spill=0.5, prior=sure)
    total = given.recovered_.station_arrivals.sum(axis=1).mean()
    assert total == pytest.approx(0.2 * given.turned_away_.sum(), rel=0.1)


def test_lags_of_the_first_day_use_the_usual_level():
    """Lags are expected from the days before, and the first day has none."""
    town = network((2, 3, 4, 3), 0.4, 35, 1.2, 7, city_day=0.5, growth=2.0)
    flat = town._replace(sessions=town.sessions.with_columns(energy_kwh=pl.lit(10.0)))
    lost = fit(flat.panel(), waiting=0.0, spill=0.0)
    assert lost.components_.city_day or lost.components_.slow
    first = lost.rows_.hour < 24
    full = response_at_full(lost.rates_, lost.network_.capacity)
    usual = (lost.rows_.usual * full[lost.rows_.site])[first].sum()
    table = lost.panel_table().filter(pl.col("ds") < MONDAY + dt.timedelta(days=1))
    assert table["lost_kwh_before"].sum() == pytest.approx(10 * usual * lost.lost_share_)
    assert usual > 0


BANK = [
    {
        "per_plug": 0.15 + 0.05 * (seed % 4),
        "seed": seed,
        "kinds": KINDS if seed % 2 else None,
        "site_day": 0.3 * (seed % 5 == 0),
    }
    for seed in range(20)
]


@pytest.fixture(scope="module")
def bank():
    """Truth and draws of twenty small networks."""
    rows = []
    for options in BANK:
        town = network(PLUGS, days=35, stay=1.5, **options)
        lost = fit(town.panel(), draws=100)
        rows.append((town.lost.height, town.lost["energy_kwh"].sum(), *(each.sum(axis=1) for each in draws(lost))))
    return rows


def test_the_estimate_is_unbiased(bank):
    ratios = np.array([[arrivals.mean() / number, kwh.mean() / energy] for number, energy, arrivals, kwh in bank])
    assert ratios.mean(axis=0) == pytest.approx([1.0, 1.0], abs=0.07)
    assert np.abs(np.log(ratios)).max() < 0.6


def test_intervals_contain_the_truth_as_often_as_they_should(bank):
    def covered(interval):
        edges = [np.quantile(arrivals, [(1 - interval) / 2, (1 + interval) / 2]) for _, _, arrivals, _ in bank]
        return np.mean([low <= number <= high for (number, *_), (low, high) in zip(bank, edges, strict=True)])

    assert covered(0.9) >= 0.7
    assert covered(0.25) <= 0.7
    width = [np.ptp(np.quantile(arrivals, [0.05, 0.95])) / arrivals.mean() for _, _, arrivals, _ in bank]
    assert np.median(width) < 0.6


# What was known at a time


UNTIL = MONDAY + dt.timedelta(days=28)


def records(days=49):
    return network((2, 3, 2, 3, 4, 3), 0.3, days, 1.5, 6, kinds=KINDS, growth=1.5, waiting=0.2)


def later_changed(town, day, end):
    """The same sessions up to a day; later ones are thinned, and have other stays and energies."""
    rng = np.random.default_rng(8)
    from_then = pl.col("start") >= MONDAY + dt.timedelta(days=day)
    late = town.sessions.filter(from_then)
    kept = late.filter(pl.Series(rng.random(late.height) < 0.5) | (pl.int_range(pl.len()) == pl.len() - 1))
    kept = kept.with_columns(pl.col("energy_kwh") * 4, end=pl.col("start") + (pl.col("end") - pl.col("start")) * 0.6)
    assert kept["start"].max() == town.sessions["start"].max()  # the same period
    assert end is None or kept["start"].max() >= end
    return town._replace(sessions=pl.concat([town.sessions.filter(~from_then), kept.cast(town.sessions.schema)]))


def rows_before(lost, day):
    return lost.rows_.hour < 24 * day


@pytest.fixture(scope="module")
def past():
    """An estimate from 28 of 49 days, and two more in which later days differ."""
    town = records()
    panels = [town.panel(), later_changed(town, 28, None).panel(), later_changed(town, 40, None).panel()]
    assert len({each.stations["capacity"].to_list().__str__() for each in panels}) == 1
    return [fit(each, until=UNTIL) for each in panels]


@pytest.mark.parametrize(("which", "day"), [(1, 28), (2, 40)])
def test_no_estimate_depends_on_later_days(past, which, day):
    """After `until`, every day is estimated from the days before it."""
    ours, other = past[0], past[which]
    own, also = rows_before(ours, day), rows_before(other, day)
    assert own.sum() > 100
    assert (ours.rows_.hour[own] == other.rows_.hour[also]).all()
    assert ours.turned_away_[own] == pytest.approx(other.turned_away_[also], rel=1e-12)
    tables = [each.panel_table().filter(pl.col("ds") < MONDAY + dt.timedelta(days=day)) for each in (ours, other)]
    assert tables[0]["lost_kwh_before"].to_numpy() == pytest.approx(tables[1]["lost_kwh_before"].to_numpy(), rel=1e-9)


@pytest.mark.parametrize("which", [1, 2])
def test_everything_is_learned_from_the_time_before(past, which):
    ours, other = past[0], past[which]
    assert ours.components_ == other.components_
    assert (ours.rates_.weekly == other.rates_.weekly).all()
    assert ours.bursts_.shape == other.bursts_.shape
    assert ours.restarts_ == other.restarts_
    assert ours.waiting_ == pytest.approx(other.waiting_)
    assert ours.spill_ == other.spill_
    assert ours.session_kwh_ == pytest.approx(other.session_kwh_)
    assert ours.self_check_ == other.self_check_


def test_later_days_can_be_deleted(past):
    """Without them the period and the random numbers differ, so the estimate is the same up to chance."""
    town = records()
    short = town._replace(sessions=town.sessions.filter(pl.col("start") < UNTIL))
    alone = fit(short.panel())
    early = past[0].by_hour().filter(pl.col("ds") < UNTIL)["lost_arrivals"].sum()
    assert alone.summary()["lost_arrivals"]["mean"] == pytest.approx(early, rel=0.1)


def test_levels_keep_growing_after_the_time_of_learning():
    town = network((2, 3, 2, 3, 4, 3), 0.2, 70, 1.5, 6, growth=2.5)
    until = MONDAY + dt.timedelta(days=42)
    hours = fit(town.panel(), until=until).by_hour()
    for part, true in ((pl.col("ds") < until, pl.col("at") < until), (pl.col("ds") >= until, pl.col("at") >= until)):
        assert hours.filter(part)["lost_arrivals"].sum() == pytest.approx(town.lost.filter(true).height, rel=0.25)


# What users see


def test_the_summary_has_all_documented_keys(lost):
    summary = lost.summary()
    documented = """lost_kwh lost_arrivals seen_kwh seen_arrivals self_check waiting spill sites stations notes
        first_hour last_hour hours regions interval components from_prior"""
    assert set(documented.split()) <= set(summary)
    for name in ("lost_kwh", "lost_arrivals"):
        assert summary[name]["low"] <= summary[name]["mean"] <= summary[name]["high"]
    assert 0 <= summary["from_prior"] <= 1
    assert all(isinstance(note, str) for note in summary["notes"])
    assert summary["self_check"]["low"] < summary["self_check"]["ratio"] < summary["self_check"]["high"]


def test_single_plug_sites_depend_on_the_prior_and_a_note_says_so():
    lost = fit(network((1,) * 6, 0.2, 42, 1.5, 3).panel())
    summary = lost.summary()
    assert summary["self_check"] is None
    assert summary["from_prior"] > 0.3
    assert any("one car at a time" in note for note in summary["notes"])
    several = fit(network((3,) * 6, 0.3, 42, 1.5, 3).panel()).summary()
    assert several["from_prior"] == 0
    width = [
        (each["lost_arrivals"]["high"] - each["lost_arrivals"]["low"]) / each["lost_arrivals"]["mean"]
        for each in (summary, several)
    ]
    assert width[0] > 1.5 * width[1]


def test_the_sensitivity_table_follows_from_the_shares(lost):
    table = lost.sensitivity()
    assert table.columns == ["assumption", "lost_kwh", "lost_arrivals"]
    number = dict(table.select("assumption", "lost_arrivals").iter_rows())
    names = list(number)
    estimated = lost.summary()["lost_arrivals"]["mean"]
    assert number[names[0]] == pytest.approx(estimated)
    nobody, everybody, none_divert, half, more, fewer = (number[name] for name in names[1:])
    leaves = 1 - lost.waiting_ - lost.spill_
    assert nobody == pytest.approx(estimated * (1 - lost.spill_) / leaves)
    assert everybody <= nobody
    assert none_divert == pytest.approx(estimated * (1 - lost.waiting_) / leaves)
    assert half == pytest.approx(estimated * (0.5 - lost.waiting_) / leaves)
    assert more < 0.7 * estimated
    assert fewer > 1.3 * estimated
    each = lost.summary()["lost_kwh"]["mean"] / estimated
    assert table["lost_kwh"].to_numpy() == pytest.approx(each * table["lost_arrivals"].to_numpy())


def test_part_of_a_large_network_shows_what_other_capacities_mean(lost, monkeypatch):
    whole = lost.sensitivity()["lost_arrivals"].to_numpy()
    monkeypatch.setattr(sensitivity, "MAX_SITES", lost.network_.sites - 1)
    part = lost.sensitivity()["lost_arrivals"].to_numpy()
    assert part[:-2] == pytest.approx(whole[:-2])
    assert part[-2:] == pytest.approx(whole[-2:], rel=0.25)
    assert not np.array_equal(part[-2:], whole[-2:])


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"waiting": 1.2}, "1.2 for waiting makes no sense"),
        ({"spill": -0.1}, "-0.1 for spill makes no sense"),
        ({"waiting": float("nan")}, "nan for waiting makes no sense"),
        ({"energies": "most"}, "Unknown energies 'most'"),
        ({"interval": 1.0}, "interval of 1 makes no sense"),
        ({"draws": 5}, "5 draws are too few"),
    ],
)
def test_invalid_options_are_refused(town, options, why):
    with pytest.raises(InputError, match=why):
        fit(town.panel(), **options)


def test_results_before_fitting_raise_not_fitted_error():
    for name in (
        "summary",
        "by_station",
        "by_site",
        "by_region",
        "by_week",
        "by_hour",
        "station_hours",
        "panel_table",
        "sensitivity",
    ):
        with pytest.raises(NotFittedError, match="call fit first"):
            getattr(LostDemand(), name)()
