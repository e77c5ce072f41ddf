"""Arrival rates: components fitted together, scored on held-out time, and extended to later days."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from tests.estimation.networks import HOUR_MS, KINDS, MONDAY_MS, network
from unmet.demand.spells import FREE, FULL
from unmet.estimation.crowding import BETAS, occupancy_at_full
from unmet.estimation.exposed import BLOCK_BINS, full_hours, time_sums
from unmet.estimation.occupancy import observe
from unmet.estimation.rates import (
    MIN_EXPOSED,
    Components,
    _observed,
    fit_rates,
    held_out_score,
    resampled_weekly,
    response_at_full,
    response_table,
)

PLAIN = Components(1, slow=False, city_day=False, site_day=False, crowding=False)
PLUGS = (2, 3, 4, 3, 4, 3)
NONE = np.zeros((0, 0), np.bool_)
CLOSED = [10, 11, 40, 41, 42, 90]  # days


def observed_town(days=56, per_plug=0.25, stay=1.5, seed=1, plugs=PLUGS, **options):
    return observe(network(plugs, per_plug, days, stay, seed, **options).panel())


def fit(town, components=PLAIN, **options):
    return fit_rates(town.history, town.clock, town.capacity, components, **options)


def at_full(town, rates, plugs=PLUGS):
    """Arrivals expected while sites are full, and the full hours."""
    rows = full_hours(town.history.spells, town.clock, rates.weekly)
    return (rates.at_rows(town.clock, rows) * response_at_full(rates, town.capacity)[rows.site]).sum(), rows


def test_only_arrivals_in_exposed_time_are_used():
    town = observed_town()
    arrivals = town.history.arrivals
    site, bin_, taken = _observed(town.history, town.clock, NONE, False)
    free = arrivals.state == FREE
    assert len(site) == free.sum() < len(arrivals.site)
    assert (site == arrivals.site[free]).all()
    assert (bin_ == (arrivals.at_ms[free] - town.clock.first_ms) // 900_000).all()
    assert (taken < town.capacity[site]).all()
    held = np.zeros((town.sites, -(-len(town.clock.week) // BLOCK_BINS)), bool)
    held[2, 5:30] = True
    inside, outside = (len(_observed(town.history, town.clock, held, part)[0]) for part in (True, False))
    assert inside + outside == len(site)
    assert inside == ((site == 2) & (bin_ >= 5 * BLOCK_BINS) & (bin_ < 30 * BLOCK_BINS)).sum()


@pytest.mark.parametrize("kinds", [None, (0, 0, 0, 1, 1, 1)])
def test_rates_are_those_of_all_drivers_rather_than_of_served_ones(kinds):
    """Sites are full while many drivers arrive, so an average of the records would be too low."""
    town = observed_town(kinds=kinds, per_plug=0.35)
    rates = fit(town, PLAIN._replace(rank=1 if kinds is None else 2))
    true = 0.35 * np.array(PLUGS)
    assert rates.weekly.mean(axis=1) == pytest.approx(true, rel=0.15)
    assert rates.weekly.mean() == pytest.approx(true.mean(), rel=0.05)
    served = np.bincount(town.history.arrivals.site) / (town.clock.hours)
    assert served.sum() < 0.9 * true.sum()
    if kinds is not None:
        profile = rates.weekly.reshape(6, 7, 24, 4).mean(axis=(1, 3)) / rates.weekly.mean(axis=1)[:, None]
        assert np.abs(profile - KINDS[list(kinds)]).mean() < 0.2


def test_expected_arrivals_sum_to_those_observed():
    """At the maximum of the likelihood, the sums of expected and observed arrivals are equal."""
    busy = observed_town(kinds=(0, 0, 0, 1, 1, 1), city_day=0.3, site_day=0.3, growth=2.0)
    for town, components in ((observed_town(), PLAIN), (busy, Components(2))):
        rates = fit(town, components)
        assert (rates.expected * rates.site_day).sum() == pytest.approx(rates.count.sum(), rel=0.02)
        assert rates.count.sum() == (town.history.arrivals.state == FREE).sum()


def test_known_day_effects_are_recovered():
    town = observed_town(days=112, per_plug=0.35, city_day=0.3)
    rates = fit(town, PLAIN._replace(city_day=True))
    assert 1 / np.sqrt(rates.city_shape) == pytest.approx(0.3, abs=0.1)
    usual = (rates.expected / rates.city_day).sum(axis=0)
    posterior = (rates.city_shape + rates.count.sum(axis=0)) / (rates.city_shape + usual)
    assert rates.city_day == pytest.approx(posterior)
    own = fit(observed_town(days=112, per_plug=0.35, site_day=0.5), PLAIN._replace(site_day=True))
    assert 1 / np.sqrt(own.site_shape) == pytest.approx(0.5, abs=0.15)
    assert own.site_day == pytest.approx((own.site_shape + own.count) / (own.site_shape + own.expected))
    none = fit(observed_town(), Components(1, slow=False, crowding=False))
    assert np.isinf(none.city_shape)
    assert np.isinf(none.site_shape)
    assert (none.level == 1).all()


def test_closed_days_do_not_make_ordinary_days_vary():
    """Without the sessions of six days, the other days are as they were."""
    town = network(PLUGS, 0.35, 112, 1.5, 1)
    day = (pl.col("start") - town.sessions["start"].min()).dt.total_days()
    whole, holed = town.panel(), town._replace(sessions=town.sessions.filter(~day.is_in(CLOSED))).panel()
    components = PLAIN._replace(city_day=True, slow=True)
    before, after = (fit(observe(panel), components) for panel in (whole, holed))
    assert np.isinf(before.city_shape)
    assert np.isinf(after.city_shape)
    assert (after.city_day < 0.5).sum() == len(CLOSED)
    ordinary = after.city_day > 0.5
    usual = [rates.weekly.mean(axis=1, keepdims=True) * rates.level for rates in (before, after)]
    assert (usual[1] / usual[0])[:, ordinary].mean() == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("parts", [{"city_day": 0.4}, {"site_day": 0.5}])
def test_day_effects_are_needed_because_sites_are_full_on_busy_days(parts):
    """Without day effects, too few drivers are found to be lost."""
    town = network(PLUGS, 0.3, 112, 1.5, 3, **parts)
    found = observe(town.panel())
    name = next(iter(parts))
    without, with_days = (at_full(found, fit(found, each))[0] for each in (PLAIN, PLAIN._replace(**{name: True})))
    assert abs(with_days / town.lost.height - 1) < 0.5 * abs(without / town.lost.height - 1)
    assert without < 0.9 * town.lost.height


def test_growth_is_found_although_it_causes_the_losses():
    town = network(PLUGS, 0.15, 112, 1.5, 2, growth=4.0)
    found = observe(town.panel())
    rates = fit(found, PLAIN._replace(slow=True))
    level = rates.slow.mean(axis=0)
    assert level[-20:].mean() / level[:20].mean() == pytest.approx(4.0 * 0.93 / 1.27, rel=0.25)
    total, _ = at_full(found, rates)
    assert total == pytest.approx(town.lost.height, rel=0.1)
    flat, _ = at_full(found, fit(found))
    assert flat < 0.85 * town.lost.height


@pytest.mark.parametrize("beta", [0.0, -2.0])
def test_the_response_to_occupancy_is_found(beta):
    town = network((4, 5, 6, 4, 5, 6), 0.5, 84, 1.2, 4, beta=beta)
    found = observe(town.panel())
    rates = fit(found, PLAIN._replace(crowding=True))
    assert rates.crowding.beta.mean() == pytest.approx(beta, abs=0.45)
    total, _ = at_full(found, rates)
    assert total == pytest.approx(town.lost.height, rel=0.2)


def test_growth_is_not_mistaken_for_the_opposite_of_crowding():
    """Late days are both busier and more crowded."""
    found = observe(network((4, 5, 6, 4, 5, 6), 0.3, 84, 1.2, 4, beta=-2.0, growth=5.0).panel())
    rates = fit(found, PLAIN._replace(slow=True, crowding=True))
    assert rates.crowding.beta.mean() == pytest.approx(-2.0, abs=0.6)


def test_the_response_is_exponential_in_occupancy():
    town = observed_town(beta=-2.0, per_plug=0.5)
    rates = fit(town, PLAIN._replace(crowding=True))
    table = response_table(rates.crowding, town.capacity)
    assert table.shape == (6, 5)
    for s, plugs in enumerate(town.capacity):
        taken = np.arange(plugs + 1)
        assert table[s, : plugs + 1] == pytest.approx(np.exp(rates.crowding.beta[s] * taken / (plugs + 2)))
    assert (response_table(None, town.capacity) == 1).all()
    full = np.exp(BETAS * occupancy_at_full(rates.crowding, town.capacity)[:, None]) * rates.crowding.level
    mean = (rates.crowding.weight[:, None] * (rates.crowding.site * full).sum(axis=2)).sum(axis=0)
    assert response_at_full(rates, town.capacity) == pytest.approx(mean)


def test_drivers_turned_away_have_left_the_pool_as_well():
    """Their number is the rate of lost arrivals times the time for which a site has been full, up to a stay."""
    town = observed_town(beta=-2.0, per_plug=0.5)
    rates = fit(town, PLAIN._replace(crowding=True))
    spells, sites = town.history.spells, len(town.capacity)
    hours = (spells.end_ms - spells.begin_ms) / 3_600_000
    rows = full_hours(spells, town.clock, rates.weekly)
    for s in range(sites):
        own = slice(spells.first[s], spells.first[s + 1])
        full = hours[own] * (spells.state[own] == FULL)
        periods = np.bincount(np.cumsum(spells.state[own] == FREE), full)
        stay = (hours[own] * spells.taken[own]).sum() / (town.history.arrivals.site == s).sum()
        since = min((periods**2).sum() / full.sum() / 2, stay)
        rate = rates.at_rows(town.clock, rows)[rows.site == s].sum() / full.sum()
        x = (town.capacity[s] + rates.crowding.away[s]) / (town.capacity[s] + 2)
        away = rate * since * np.exp(rates.crowding.beta[s] * x)
        assert rates.crowding.away[s] == pytest.approx(min(away, town.capacity[s]), rel=0.02)
    alone = rates.crowding._replace(away=np.zeros(sites))
    assert (occupancy_at_full(rates.crowding, town.capacity) > occupancy_at_full(alone, town.capacity)).all()


@pytest.mark.parametrize("components", [PLAIN, PLAIN._replace(crowding=True), Components(1)])
def test_a_site_that_is_almost_always_full_counts_as_exposed_for_a_twentieth(components):
    """For all components: levels and crowding must not undo it."""
    town = observed_town(plugs=(1, 2, 3, 2), per_plug=6.0, stay=4.0, days=70)
    rates = fit(town, components)
    time = time_sums(town.history.spells)
    assert (time.free < MIN_EXPOSED * time.whole).any()
    for s in np.flatnonzero(time.free < MIN_EXPOSED * time.whole):
        count = ((town.history.arrivals.site == s) & (town.history.arrivals.state == FREE)).sum()
        rate = (rates.weekly[s].mean() * rates.level[s]).mean()
        if rates.crowding is not None:
            rate *= response_at_full(rates, town.capacity)[s]
        assert rate < 1.3 * count / (MIN_EXPOSED * time.whole[s])


def test_the_score_is_the_log_likelihood_of_held_out_time():
    town = observed_town(days=28, city_day=0.3)
    blocks = -(-len(town.clock.week) // BLOCK_BINS)
    held = np.random.default_rng(1).random((town.sites, blocks)) < 0.3
    rates = fit(town, PLAIN._replace(city_day=True, crowding=True), held=held)
    response = response_table(rates.crowding, town.capacity)
    value, spells, arrivals = 0.0, town.history.spells, town.history.arrivals

    def rate(s, at, taken):
        bin_ = (at - town.clock.first_ms) // 900_000
        inside = held[s, bin_ // BLOCK_BINS]
        return inside, rates.weekly[s, town.clock.week[bin_]] * rates.level[s, town.clock.day[bin_]] * response[
            s, taken
        ]

    for s, at, taken, state in zip(arrivals.site, arrivals.at_ms, arrivals.taken, arrivals.state, strict=True):
        inside, hourly = rate(s, at, taken)
        if state == FREE and inside:
            value += np.log(hourly)
    for s in range(town.sites):
        for i in range(spells.first[s], spells.first[s + 1]):
            at = spells.begin_ms[i]
            while spells.state[i] == FREE and at < spells.end_ms[i]:
                until = min(spells.end_ms[i], at - (at - town.clock.first_ms) % 900_000 + 900_000)
                inside, hourly = rate(s, at, spells.taken[i])
                value -= inside * hourly * (until - at) / HOUR_MS
                at = until
    assert held_out_score(rates, town.history, town.clock, town.capacity, held) == pytest.approx(value)


def test_held_out_arrivals_do_not_change_rates():
    """A fit with held-out blocks equals a fit to records without them."""
    town = observed_town(days=28)
    held = np.zeros((town.sites, -(-len(town.clock.week) // BLOCK_BINS)), bool)
    held[:, held.shape[1] // 2 :] = True
    until = MONDAY_MS + 14 * 24 * HOUR_MS
    half = town.before(until)
    part, alone = fit(town, held=held), fit(half)
    assert part.weekly == pytest.approx(alone.weekly, rel=0.02)


def test_resampled_weeks_scatter_around_the_fitted_one():
    town = observed_town(days=56)
    rates = fit(town)
    rng = np.random.default_rng(2)
    drawn = np.stack(list(resampled_weekly(rates, town.history, town.clock, town.capacity, 60, rng)))
    level = drawn.mean(axis=2)
    assert level.mean(axis=0) == pytest.approx(rates.weekly.mean(axis=1), rel=0.03)
    # With n arrivals in all, the level of a site scatters by about 1 / sqrt(n).
    assert level.std(axis=0) / level.mean(axis=0) == pytest.approx(1 / np.sqrt(rates.count.sum(axis=1)), rel=0.5)


def test_random_weights_of_days_do_not_make_sites_depart_from_their_profile():
    """All sites of this town have the same weekly profile, and so they have in every resampled week."""
    town = observed_town(days=56)
    rates = fit(town)
    assert rates.weekly / rates.weekly.mean(axis=1, keepdims=True) == pytest.approx(
        np.tile(rates.profiles.profile, (len(rates.weekly), 1))
    )
    for weekly in resampled_weekly(rates, town.history, town.clock, town.capacity, 4, np.random.default_rng(2)):
        relative = weekly / weekly.mean(axis=1, keepdims=True)
        assert relative == pytest.approx(np.tile(relative[0], (len(weekly), 1)))


def test_later_days_are_predicted_from_the_days_before_them():
    town = observed_town(days=56, growth=4.0, city_day=0.3)
    until = MONDAY_MS + 35 * 24 * HOUR_MS
    rates = fit(town.before(until), PLAIN._replace(slow=True, city_day=True, site_day=True))
    assert np.isfinite(rates.memories).any()
    known = rates.onwards(town.history, town.clock, town.capacity, until)
    assert (known.level[:, :35] == rates.level[:, :35]).all()
    assert (known.city_day[35:] == 1).all()
    assert (known.site_day[:, 35:] == 1).all()
    assert known.slow[:, 50:].mean() > 1.15 * known.slow[:, 20:35].mean()  # growth goes on
    shorter = rates.onwards(town.before(until + 10 * 24 * HOUR_MS).history, town.clock, town.capacity, until)
    assert (shorter.level[:, :46] == known.level[:, :46]).all()
    assert (shorter.level[:, 47:] != known.level[:, 47:]).any()
