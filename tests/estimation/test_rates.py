"""Arrival rates: components fitted together, scored on time that was held out, and carried on to later days."""

from __future__ import annotations

import numpy as np
import pytest

from tests.estimation.networks import HOUR_MS, KINDS, MONDAY_MS, network
from unmet.demand.spells import FREE, FULL
from unmet.estimation.crowding import BETAS, crowd_at_full
from unmet.estimation.exposed import BLOCK_BINS, full_hours, time_sums
from unmet.estimation.occupancy import observe
from unmet.estimation.rates import (
    LEAST_EXPOSED,
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


def seen(days=56, per_plug=0.25, stay=1.5, seed=1, plugs=PLUGS, **options):
    return observe(network(plugs, per_plug, days, stay, seed, **options).panel())


def fit(made, components=PLAIN, **options):
    return fit_rates(made.history, made.clock, made.capacity, components, **options)


def at_full(made, rates, plugs=PLUGS):
    """Estimated and true arrivals per hour while sites are full."""
    rows = full_hours(made.history.spells, made.clock, rates.weekly)
    return (rates.at_rows(made.clock, rows) * response_at_full(rates, made.capacity)[rows.site]).sum(), rows


def test_only_arrivals_in_exposed_time_are_used():
    made = seen()
    arrivals = made.history.arrivals
    site, bin_, taken = _observed(made.history, made.clock, NONE, False)
    free = arrivals.state == FREE
    assert len(site) == free.sum() < len(arrivals.site)
    assert (site == arrivals.site[free]).all()
    assert (bin_ == (arrivals.at_ms[free] - made.clock.first_ms) // 900_000).all()
    assert (taken < made.capacity[site]).all()
    held = np.zeros((made.sites, -(-len(made.clock.week) // BLOCK_BINS)), bool)
    held[2, 5:30] = True
    inside, outside = (len(_observed(made.history, made.clock, held, part)[0]) for part in (True, False))
    assert inside + outside == len(site)
    assert inside == ((site == 2) & (bin_ >= 5 * BLOCK_BINS) & (bin_ < 30 * BLOCK_BINS)).sum()


@pytest.mark.parametrize("kinds", [None, (0, 0, 0, 1, 1, 1)])
def test_rates_are_those_of_the_drivers_not_of_the_served(kinds):
    """Sites are full while many come, and an average of the records alone would be too low."""
    made = seen(kinds=kinds, per_plug=0.35)
    rates = fit(made, PLAIN._replace(rank=1 if kinds is None else 2))
    true = 0.35 * np.array(PLUGS)
    assert rates.weekly.mean(axis=1) == pytest.approx(true, rel=0.15)
    assert rates.weekly.mean() == pytest.approx(true.mean(), rel=0.05)
    served = np.bincount(made.history.arrivals.site) / (made.clock.hours)
    assert served.sum() < 0.9 * true.sum()
    if kinds is not None:
        profile = rates.weekly.reshape(6, 7, 24, 4).mean(axis=(1, 3)) / rates.weekly.mean(axis=1)[:, None]
        assert np.abs(profile - KINDS[list(kinds)]).mean() < 0.2


def test_expected_arrivals_balance_those_observed():
    """At the maximum of the likelihood, the sum over sites of what is expected is what was seen."""
    busy = seen(kinds=(0, 0, 0, 1, 1, 1), city_day=0.3, site_day=0.3, growth=2.0)
    for made, components in ((seen(), PLAIN), (busy, Components(2))):
        rates = fit(made, components)
        assert (rates.expected * rates.site_day).sum() == pytest.approx(rates.count.sum(), rel=0.02)
        assert rates.count.sum() == (made.history.arrivals.state == FREE).sum()


def test_day_effects_are_found_again():
    made = seen(days=112, per_plug=0.35, city_day=0.3)
    rates = fit(made, PLAIN._replace(city_day=True))
    assert 1 / np.sqrt(rates.city_shape) == pytest.approx(0.3, abs=0.1)
    usual = (rates.expected / rates.city_day).sum(axis=0)
    posterior = (rates.city_shape + rates.count.sum(axis=0)) / (rates.city_shape + usual)
    assert rates.city_day == pytest.approx(posterior)
    own = fit(seen(days=112, per_plug=0.35, site_day=0.5), PLAIN._replace(site_day=True))
    assert 1 / np.sqrt(own.site_shape) == pytest.approx(0.5, abs=0.15)
    assert own.site_day == pytest.approx((own.site_shape + own.count) / (own.site_shape + own.expected))
    none = fit(seen(), Components(1, slow=False, crowding=False))
    assert np.isinf(none.city_shape)
    assert np.isinf(none.site_shape)
    assert (none.level == 1).all()


@pytest.mark.parametrize("parts", [{"city_day": 0.4}, {"site_day": 0.5}])
def test_busy_days_are_full_days(parts):
    """Sites are full on days that are busier than others: without effects of days, too few are found to be lost."""
    made = network(PLUGS, 0.3, 112, 1.5, 3, **parts)
    found = observe(made.panel())
    name = next(iter(parts))
    without, with_days = (at_full(found, fit(found, each))[0] for each in (PLAIN, PLAIN._replace(**{name: True})))
    assert abs(with_days / made.lost.height - 1) < 0.5 * abs(without / made.lost.height - 1)
    assert without < 0.9 * made.lost.height


def test_growth_is_found_and_losses_come_late():
    made = network(PLUGS, 0.15, 112, 1.5, 2, growth=4.0)
    found = observe(made.panel())
    rates = fit(found, PLAIN._replace(slow=True))
    level = rates.slow.mean(axis=0)
    assert level[-20:].mean() / level[:20].mean() == pytest.approx(4.0 * 0.93 / 1.27, rel=0.25)
    total, _ = at_full(found, rates)
    assert total == pytest.approx(made.lost.height, rel=0.1)
    flat, _ = at_full(found, fit(found))
    assert flat < 0.85 * made.lost.height


@pytest.mark.parametrize("beta", [0.0, -2.0])
def test_the_response_to_occupancy_is_found(beta):
    made = network((4, 5, 6, 4, 5, 6), 0.5, 84, 1.2, 4, beta=beta)
    found = observe(made.panel())
    rates = fit(found, PLAIN._replace(crowding=True))
    assert rates.crowding.beta.mean() == pytest.approx(beta, abs=0.45)
    total, _ = at_full(found, rates)
    assert total == pytest.approx(made.lost.height, rel=0.2)


def test_growth_does_not_look_like_the_opposite_of_crowding():
    """Late days are both busier and more crowded."""
    found = observe(network((4, 5, 6, 4, 5, 6), 0.3, 84, 1.2, 4, beta=-2.0, growth=5.0).panel())
    rates = fit(found, PLAIN._replace(slow=True, crowding=True))
    assert rates.crowding.beta.mean() == pytest.approx(-2.0, abs=0.6)


def test_the_response_is_an_exponential_of_the_crowd():
    made = seen(beta=-2.0, per_plug=0.5)
    rates = fit(made, PLAIN._replace(crowding=True))
    table = response_table(rates.crowding, made.capacity)
    assert table.shape == (6, 5)
    for s, plugs in enumerate(made.capacity):
        taken = np.arange(plugs + 1)
        assert table[s, : plugs + 1] == pytest.approx(np.exp(rates.crowding.beta[s] * taken / (plugs + 2)))
    assert (response_table(None, made.capacity) == 1).all()
    full = np.exp(BETAS * crowd_at_full(rates.crowding, made.capacity)[:, None]) * rates.crowding.level
    mean = (rates.crowding.weight[:, None] * (rates.crowding.site * full).sum(axis=2)).sum(axis=0)
    assert response_at_full(rates, made.capacity) == pytest.approx(mean)


def test_drivers_turned_away_have_left_the_pool_as_well():
    """Their number solves: rate of lost arrivals x time a site has been full for, up to a stay."""
    made = seen(beta=-2.0, per_plug=0.5)
    rates = fit(made, PLAIN._replace(crowding=True))
    spells, sites = made.history.spells, len(made.capacity)
    hours = (spells.end_ms - spells.begin_ms) / 3_600_000
    rows = full_hours(spells, made.clock, rates.weekly)
    for s in range(sites):
        own = slice(spells.first[s], spells.first[s + 1])
        full = hours[own] * (spells.state[own] == FULL)
        periods = np.bincount(np.cumsum(spells.state[own] == FREE), full)
        stay = (hours[own] * spells.taken[own]).sum() / (made.history.arrivals.site == s).sum()
        since = min((periods**2).sum() / full.sum() / 2, stay)
        rate = rates.at_rows(made.clock, rows)[rows.site == s].sum() / full.sum()
        x = (made.capacity[s] + rates.crowding.away[s]) / (made.capacity[s] + 2)
        away = rate * since * np.exp(rates.crowding.beta[s] * x)
        assert rates.crowding.away[s] == pytest.approx(min(away, made.capacity[s]), rel=0.02)
    alone = rates.crowding._replace(away=np.zeros(sites))
    assert (crowd_at_full(rates.crowding, made.capacity) > crowd_at_full(alone, made.capacity)).all()


@pytest.mark.parametrize("components", [PLAIN, PLAIN._replace(crowding=True), Components(1)])
def test_a_site_that_is_almost_always_full_counts_as_exposed_for_a_twentieth(components):
    """Whatever components are fitted: levels and crowding must not undo it."""
    made = seen(plugs=(1, 2, 3, 2), per_plug=6.0, stay=4.0, days=70)
    rates = fit(made, components)
    time = time_sums(made.history.spells)
    assert (time.free < LEAST_EXPOSED * time.whole).any()
    for s in np.flatnonzero(time.free < LEAST_EXPOSED * time.whole):
        count = ((made.history.arrivals.site == s) & (made.history.arrivals.state == FREE)).sum()
        rate = (rates.weekly[s].mean() * rates.level[s]).mean()
        if rates.crowding is not None:
            rate *= response_at_full(rates, made.capacity)[s]
        assert rate < 1.3 * count / (LEAST_EXPOSED * time.whole[s])


def test_the_score_is_the_log_likelihood_of_what_was_held_out():
    made = seen(days=28, city_day=0.3)
    blocks = -(-len(made.clock.week) // BLOCK_BINS)
    held = np.random.default_rng(1).random((made.sites, blocks)) < 0.3
    rates = fit(made, PLAIN._replace(city_day=True, crowding=True), held=held)
    response = response_table(rates.crowding, made.capacity)
    value, spells, arrivals = 0.0, made.history.spells, made.history.arrivals

    def rate(s, at, taken):
        bin_ = (at - made.clock.first_ms) // 900_000
        inside = held[s, bin_ // BLOCK_BINS]
        return inside, rates.weekly[s, made.clock.week[bin_]] * rates.level[s, made.clock.day[bin_]] * response[
            s, taken
        ]

    for s, at, taken, state in zip(arrivals.site, arrivals.at_ms, arrivals.taken, arrivals.state, strict=True):
        inside, hourly = rate(s, at, taken)
        if state == FREE and inside:
            value += np.log(hourly)
    for s in range(made.sites):
        for i in range(spells.first[s], spells.first[s + 1]):
            at = spells.begin_ms[i]
            while spells.state[i] == FREE and at < spells.end_ms[i]:
                until = min(spells.end_ms[i], at - (at - made.clock.first_ms) % 900_000 + 900_000)
                inside, hourly = rate(s, at, spells.taken[i])
                value -= inside * hourly * (until - at) / HOUR_MS
                at = until
    assert held_out_score(rates, made.history, made.clock, made.capacity, held) == pytest.approx(value)


def test_what_is_held_out_does_not_change_rates():
    """Arrivals in held-out blocks are not used: a fit without them is one that never saw them."""
    made = seen(days=28)
    held = np.zeros((made.sites, -(-len(made.clock.week) // BLOCK_BINS)), bool)
    held[:, held.shape[1] // 2 :] = True
    until = MONDAY_MS + 14 * 24 * HOUR_MS
    half = made.before(until)
    part, alone = fit(made, held=held), fit(half)
    assert part.weekly == pytest.approx(alone.weekly, rel=0.02)


def test_resampled_weeks_scatter_around_the_fitted_one():
    made = seen(days=56)
    rates = fit(made)
    rng = np.random.default_rng(2)
    drawn = np.stack(list(resampled_weekly(rates, made.history, made.clock, made.capacity, 60, rng)))
    level = drawn.mean(axis=2)
    assert level.mean(axis=0) == pytest.approx(rates.weekly.mean(axis=1), rel=0.03)
    # With n arrivals in all, the level of a site scatters by about 1 / sqrt(n).
    assert level.std(axis=0) / level.mean(axis=0) == pytest.approx(1 / np.sqrt(rates.count.sum(axis=1)), rel=0.5)


def test_later_days_are_told_by_the_days_before_them():
    made = seen(days=56, growth=4.0, city_day=0.3)
    until = MONDAY_MS + 35 * 24 * HOUR_MS
    rates = fit(made.before(until), PLAIN._replace(slow=True, city_day=True, site_day=True))
    assert np.isfinite(rates.memories).any()
    known = rates.onwards(made.history, made.clock, made.capacity, until)
    assert (known.level[:, :35] == rates.level[:, :35]).all()
    assert (known.city_day[35:] == 1).all()
    assert (known.site_day[:, 35:] == 1).all()
    assert known.slow[:, 50:].mean() > 1.15 * known.slow[:, 20:35].mean()  # growth goes on
    shorter = rates.onwards(made.before(until + 10 * 24 * HOUR_MS).history, made.clock, made.capacity, until)
    assert (shorter.level[:, :46] == known.level[:, :46]).all()
    assert (shorter.level[:, 47:] != known.level[:, 47:]).any()
