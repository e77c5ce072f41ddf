"""Small simulated networks whose lost drivers are known, independent of the package and of the stress bank."""

from __future__ import annotations

import datetime as dt
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
import polars as pl

from unmet.demand.panel import Panel

MONDAY = dt.datetime(2019, 9, 2, tzinfo=dt.UTC)
HOUR_MS = 3_600_000
MONDAY_MS = int(MONDAY.timestamp() * 1000)
KM = 1 / 111.2  # degrees of latitude
CHANGEOVER = 0.02  # hours until a waiting driver has plugged in

# Mean arrivals by hour of the day, mean 1: a workplace, a home, a shop.
HOUR = np.arange(24)
KINDS = np.stack([np.exp(-(((HOUR - peak) / width) ** 2) / 2) + 0.05 for peak, width in ((8, 1.5), (18, 2.5), (13, 4))])
KINDS /= KINDS.mean(axis=1, keepdims=True)


class Simulated(NamedTuple):
    """Records, and the truth."""

    sessions: pl.DataFrame  # station_id, start, end, energy_kwh, user_id
    stations: pl.DataFrame  # station_id, lat, lon, power_kw, plugs
    lost: pl.DataFrame  # station_id, at, energy_kwh: lost drivers
    waited: int  # drivers who waited until they were served
    spilled: int  # drivers who were served nearby

    def panel(self, **options) -> Panel:
        return Panel(self.sessions, self.stations, **({"regions": "3"} | options))


def moments(hours) -> pl.Series:
    """Times from hours since Monday midnight."""
    ms = MONDAY_MS + np.round(np.asarray(hours, float) * HOUR_MS).astype(np.int64)
    return pl.Series(ms).cast(pl.Datetime("ms", "UTC"))


def network(
    plugs=(1, 2, 2, 3, 4, 2),
    per_plug=0.12,
    days=28,
    stay=2.0,
    seed=0,
    *,
    kinds=None,
    growth=1.0,
    city_day=0.0,
    site_day=0.0,
    site_hour=0.0,
    beta=0.0,
    waiting=0.0,
    spill=0.0,
    restarts=0.0,
    evening_kwh=1.0,
) -> Simulated:
    """Simulate drivers at pairs of sites half a kilometre apart, eight kilometres from the next pair.

    Args:
        plugs: plugs of each site.
        per_plug: drivers per hour and plug.
        days: length of the records.
        stay: mean stay [h].
        seed: seed of the random numbers.
        kinds: row of `KINDS` of each site; None for flat days.
        growth: demand on the last day over that on the first.
        city_day: coefficient of variation of the gamma effects of days.
        site_day: coefficient of variation of the gamma effects of site-days.
        site_hour: coefficient of variation of the gamma effects of site-hours.
        beta: response to occupancy: the rate is multiplied by exp(beta n / (c + 2)) with n of c plugs taken.
        waiting: share of the drivers at a full site who wait for a plug.
        spill: share of the drivers at a full site who try the other site of the pair.
        restarts: share of the sessions that are recorded as two.
        evening_kwh: energy of a session from noon on over that of one before noon.
    """
    rng = np.random.default_rng([seed, 7])
    sites, hours = len(plugs), 24 * days
    effects = [_gamma(variation, shape, rng) for variation, shape in ((city_day, (1, days)), (site_day, (sites, days)))]
    level = np.asarray(plugs)[:, None] * per_plug * np.linspace(1, growth, days) * effects[0] * effects[1]
    rate = np.repeat(level, 24, axis=1) * _gamma(site_hour, (sites, hours), rng)
    if kinds is not None:
        rate *= np.tile(KINDS[np.asarray(kinds)], days)
    count = rng.poisson(rate)
    site, hour = (np.repeat(index.ravel(), count.ravel()) for index in np.indices(rate.shape))
    at = hour + rng.random(len(hour))
    order = np.argsort(at)
    rows, lost, waited, spilled = _serve(site[order], at[order], plugs, stay, beta, waiting, spill, rng)
    energy = rng.gamma(4, 5, len(rows)) * np.where([int(row[1]) % 24 >= 12 for row in rows], evening_kwh, 1.0)
    lost_energy = rng.gamma(4, 5, len(lost)) * np.where([int(row[1]) % 24 >= 12 for row in lost], evening_kwh, 1.0)
    cut = []
    for user, ((s, start, end), kwh) in enumerate(zip(rows, energy, strict=True)):
        parts = [(start, end)]
        if rng.random() < restarts and end - start > 0.2:
            middle = start + 0.5 * (end - start)
            parts = [(start, middle), (middle + CHANGEOVER, end)]
        cut += [(f"s{s}", a, b, kwh / len(parts), f"u{user}") for a, b in parts]
    sessions = pl.DataFrame(
        {
            "station_id": [row[0] for row in cut],
            "start": moments([row[1] for row in cut]),
            "end": moments([row[2] for row in cut]),
            "energy_kwh": [row[3] for row in cut],
            "user_id": [row[4] for row in cut],
        }
    )
    stations = pl.DataFrame(
        {
            "station_id": [f"s{s}" for s in range(sites)],
            "lat": 55 + KM * (8 * (np.arange(sites) // 2) + 0.5 * (np.arange(sites) % 2)),
            "lon": np.full(sites, 12.0),
            "power_kw": np.full(sites, 22.0),
            "plugs": np.asarray(plugs),
        }
    )
    losses = pl.DataFrame(
        {"station_id": [f"s{s}" for s, _ in lost], "at": moments([t for _, t in lost]), "energy_kwh": lost_energy},
        schema_overrides={"station_id": pl.String},
    )
    return Simulated(sessions, stations, losses, waited, spilled)


def _gamma(variation: float, shape, rng: np.random.Generator):
    return rng.gamma(variation**-2, variation**2, shape) if variation else np.ones(shape)


def _serve(site, at, plugs, stay, beta, waiting, spill, rng):
    """Served drivers (site, start, end), lost drivers (site, time), and the numbers who waited and who diverted."""
    ends = [[] for _ in plugs]  # heaps
    rows, lost, waited, spilled = [], [], 0, 0
    for s, now in zip(site.tolist(), at.tolist(), strict=True):
        present = ends[s]
        while present and present[0] <= now:
            heappop(present)
        cars = min(len(present), plugs[s])
        if beta and rng.random() >= np.exp(beta * cars / (plugs[s] + 2)):
            continue
        length = stay * rng.gamma(4, 0.25)
        if len(present) < plugs[s]:
            rows.append((s, now, now + length))
            heappush(present, now + length)
            continue
        if waiting and rng.random() < waiting:
            start = heappop(present) + CHANGEOVER  # the queue is long enough for everyone
            rows.append((s, start, start + length))
            heappush(present, start + length)
            waited += 1
            continue
        other = min(s ^ 1, len(plugs) - 1)
        present = ends[other]
        while present and present[0] <= now:
            heappop(present)
        if spill and other != s and rng.random() < spill and len(present) < plugs[other]:
            rows.append((other, now + CHANGEOVER, now + CHANGEOVER + length))
            heappush(present, now + CHANGEOVER + length)
            spilled += 1
            continue
        lost.append((s, now))
    rows.sort(key=lambda row: row[1])
    return rows, lost, waited, spilled
