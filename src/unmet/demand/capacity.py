"""Capacity: how many cars a station can charge at once, with its source and certainty.

A table of stations lists plugs, but connectors may share a charger, tables have errors, and records overlap by minutes.
Capacity c is therefore inferred from arrivals while c cars are present. Either the station is full and no driver can
plug in, or it has a free plug and drivers keep arriving, perhaps at a lower rate. With m arrivals expected in that time
at the usual rate, the number observed is Poisson with mean

    OVERLAPS * m   if c is the capacity,        KEEP_COMING * m   if it is higher,

and the odds of the two hypotheses follow from Bayes' rule. The capacity is at least the number of cars that were
present together for longer than clock errors explain, unless that happened rarely: some rapid chargers have a second
outlet that few cars can use.

Assumption: while capacity is inferred, the arrival rate depends on the hour of the week only; the estimator refines it.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from unmet.arrays import Floats, Integers
from unmet.compiled import compiled
from unmet.demand.calendar import HOUR_MS, HOURS_A_WEEK
from unmet.demand.spells import Arrivals, Spells, Visits, pieces, sweep

__all__ = ["infer_capacity"]


OVERLAPS = 0.03  # recorded over usual arrivals at a full station, where clocks are slightly wrong
KEEP_COMING = 0.4  # the same at a crowded station: the lowest ratio at stations known to have free plugs
LISTED_WRONG = 0.1  # prior probability that the listed number of plugs is not the capacity
UNLISTED_FULL = 0.5  # prior probability that a station without a listed number is full at its highest number of cars
CLEARLY = 0.9  # posterior probability from which the listed number is overruled
SELDOM = 0.1  # a peak of n cars is an exception up to this share of the time with n - 1 cars or more
LASTING_MS = 600_000  # cars must be present together for this long to count


def infer_capacity(
    stations: pl.DataFrame, sessions: pl.DataFrame, visits: Visits, hour_of_week: Integers, first_ms: int
) -> pl.DataFrame:
    """The stations with the columns `capacity`, `capacity_from` and `capacity_sure`.

    Args:
        stations: `station_id`, `plugs` (may be null).
        sessions: `station_id`, perhaps `plug_id`.
        visits: visits of cars, grouped by station in the order of the table.
        hour_of_week: local hour of the week of every hour of the period.
        first_ms: start of the period.

    Returns:
        `capacity_from` is one of listed, connectors, most cars at once, fewer than listed, more than listed, unknown.
        `capacity_sure` is the probability that the station is full when that many cars are present.
    """
    n_stations = stations.height
    last_ms = first_ms + len(hour_of_week) * HOUR_MS
    unlimited = np.full(n_stations, np.iinfo(np.int64).max)
    used = np.diff(visits.first) > 0
    opened, closed = np.full(n_stations, first_ms), np.full(n_stations, last_ms)
    opened[used] = np.maximum(visits.start_ms[visits.first[:-1][used]], first_ms)
    closed[used] = np.minimum(visits.end_ms[visits.first[1:][used] - 1], last_ms)
    history = sweep(visits, unlimited, opened, closed)
    listed, source = _listed(stations, sessions)
    lasting = _lasting_peak(history.spells)
    max_cars = max(int(lasting.max(initial=1)), int(listed.max(initial=1)))
    usual = _usual_arrivals(history.spells, history.arrivals, hour_of_week, first_ms, max_cars)
    cell = history.arrivals.site * (max_cars + 1) + np.minimum(history.arrivals.taken, max_cars)
    observed = np.bincount(cell, minlength=n_stations * (max_cars + 1)).reshape(-1, max_cars + 1).astype(float)
    peak = np.array([_usual_peak(int(cars), *counts) for cars, *counts in zip(lasting, usual, observed, strict=True)])
    capacity, sure, known_from = np.maximum(listed, 1), np.ones(n_stations), list(source)
    for s in range(n_stations):
        if listed[s] == 0:
            capacity[s] = max(peak[s], 1)
            known_from[s] = "most cars at once" if peak[s] else "unknown"
            sure[s] = _probability_full(capacity[s], usual[s], observed[s], UNLISTED_FULL)
        elif peak[s] > listed[s]:
            capacity[s], known_from[s] = peak[s], "more than listed"
            sure[s] = _probability_full(peak[s], usual[s], observed[s], UNLISTED_FULL)
        else:
            # The probability that the list is wrong is divided evenly among the numbers below it.
            for fewer in range(max(int(peak[s]), 1), int(listed[s])):
                probability = _probability_full(fewer, usual[s], observed[s], LISTED_WRONG / listed[s])
                if probability > CLEARLY:
                    capacity[s], known_from[s], sure[s] = fewer, "fewer than listed", probability
                    break
    return stations.with_columns(
        capacity=pl.Series(capacity, dtype=pl.Int64),
        capacity_from=pl.Series(known_from, dtype=pl.String),
        capacity_sure=pl.Series(sure, dtype=pl.Float64),
    )


def _listed(stations: pl.DataFrame, sessions: pl.DataFrame) -> tuple[Integers, list[str]]:
    """Listed plugs; otherwise connectors, if every session of a station names one; 0 if neither is known."""
    plugs = stations["plugs"].cast(pl.Int64) if "plugs" in stations.columns else pl.Series([None] * stations.height)
    plugs = plugs.cast(pl.Int64)
    connectors = pl.Series([None] * stations.height, dtype=pl.Int64)
    if "plug_id" in sessions.columns:
        named = sessions.group_by("station_id").agg(
            n=pl.when(pl.col("plug_id").null_count() == 0).then(pl.col("plug_id").n_unique()).cast(pl.Int64)
        )
        connectors = stations.select("station_id").join(named, on="station_id", how="left", maintain_order="left")["n"]
    source = ["listed" if known else "connectors" for known in plugs.is_not_null()]
    return plugs.fill_null(connectors).fill_null(0).to_numpy().astype(np.int64), source


def _probability_full(capacity: int, usual: Floats, observed: Floats, prior: float) -> float:
    """Posterior probability that a station can charge no more than `capacity` cars at once.

    `usual` are the arrivals predicted at a rate of 1, by number of cars present, and `observed` those recorded. The
    rate of the station is estimated from the time with fewer cars. With n arrivals where m were expected,

        log odds = n log(OVERLAPS / KEEP_COMING) - (OVERLAPS - KEEP_COMING) m + log(prior / (1 - prior)).
    """
    at = int(capacity)
    below = usual[:at].sum()
    if below <= 0:
        return prior
    expected = usual[at:].sum() * observed[:at].sum() / below
    recorded = observed[at:].sum()
    log_odds = recorded * np.log(OVERLAPS / KEEP_COMING) - (OVERLAPS - KEEP_COMING) * expected
    return float(1 / (1 + np.exp(-np.clip(log_odds, -50, 50)) * (1 - prior) / prior))


def _usual_peak(peak: int, usual: Floats, observed: Floats) -> int:
    """The most cars present at once, apart from rare peaks with hardly any arrivals."""
    while (
        peak > 1
        and usual[peak:].sum() <= SELDOM * usual[peak - 1 :].sum()
        and _probability_full(peak - 1, usual, observed, LISTED_WRONG / peak) > CLEARLY
    ):
        peak -= 1
    return peak


@compiled()
def _lasting_peak(spells: Spells) -> Integers:
    """The most cars that were present together for at least `LASTING_MS` at each station."""
    peak = np.zeros(len(spells.first) - 1, np.int64)
    for s in range(len(peak)):
        for i in range(spells.first[s], spells.first[s + 1]):
            if spells.taken[i] > peak[s] and spells.end_ms[i] - spells.begin_ms[i] >= LASTING_MS:
                peak[s] = spells.taken[i]
    return peak


def _usual_arrivals(spells: Spells, arrivals: Arrivals, hour_of_week: Integers, first_ms: int, max_cars: int) -> Floats:
    """Arrivals predicted by the network's weekly profile, by station and number of cars, for a station of level 1."""
    hour = hour_of_week[np.clip((arrivals.at_ms - first_ms) // HOUR_MS, 0, len(hour_of_week) - 1)]
    count = np.bincount(hour, minlength=HOURS_A_WEEK) + 1.0  # so that no hour of the week has a rate of 0
    open_hours = np.bincount(hour_of_week, minlength=HOURS_A_WEEK)
    return _by_cars(spells, hour_of_week, count / np.maximum(open_hours, 1), first_ms, max_cars)


@compiled()
def _by_cars(spells: Spells, hour_of_week: Integers, rate: Floats, first_ms: int, max_cars: int) -> Floats:
    """Arrivals at a rate by hour of the week, summed over the spells by number of cars, (stations, max_cars + 1)."""
    total = np.zeros((len(spells.first) - 1, max_cars + 1))
    for s in range(len(total)):
        for i in range(spells.first[s], spells.first[s + 1]):
            for hour, share in pieces(spells.begin_ms[i] - first_ms, spells.end_ms[i] - first_ms, HOUR_MS):
                total[s, min(spells.taken[i], max_cars)] += share * rate[hour_of_week[hour]]
    return total
