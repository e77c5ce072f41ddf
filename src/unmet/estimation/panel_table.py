"""The panel's table with estimates of unobserved demand, from which models of true demand are trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from unmet.arrays import Floats
from unmet.demand.market import Shares
from unmet.estimation.clock import BINS_AN_HOUR
from unmet.estimation.elsewhere import Parts, draw_elsewhere, expected_elsewhere, own_arrivals
from unmet.estimation.energies import BLOCK, energy_variation
from unmet.estimation.rates import response_at_full, response_table
from unmet.estimation.sums import KEPT_DRAWS

if TYPE_CHECKING:
    from unmet.estimation.lost_demand import LostDemand

__all__ = ["panel_table"]

LIKELY = 0.5  # probability of a loss from which an hour counts as censored
ELSEWHERE_STREAM = 3  # keeps these random numbers apart from others of the same seed


def panel_table(lost: LostDemand) -> pl.DataFrame:
    """Observed demand with `censored, exposure, lost_arrivals, lost_kwh, elsewhere_kwh, lost_kwh_before, lost_draws`.

    `exposure` is the expected share of a region's arrivals that the records show:

        1 - (lost + elsewhere) / (own + elsewhere),      own: arrivals at own sites, served or lost.

    `lost_kwh_before` is the energy expected to be lost or to go elsewhere, given the levels of earlier days only, so
    that a model may use it as a lag. `lost_draws` are draws of that energy given all records. They are left out if the
    panel is so large that they would not fit into memory.
    """
    panel, recovered = lost.panel_, lost.recovered_
    keys = ["unique_id", "ds"]
    table = panel.table.join(
        recovered.hours.select(*keys, "lost_arrivals", "lost_kwh", "any_lost"),
        on=keys,
        how="left",
        maintain_order="left",
    ).with_columns(pl.col("lost_arrivals", "lost_kwh", "any_lost").fill_null(0.0))
    regions, hours = panel.regions.centres.height, panel.hours
    parts, shares = _parts(lost), _shares(lost)
    kwh = _energies(lost)
    own = _own(lost, lost.rates_.level, parts)
    elsewhere = expected_elsewhere(own, shares)
    lost_arrivals = table["lost_arrivals"].to_numpy().reshape(regions, hours)
    whole = np.maximum(own, lost_arrivals) + elsewhere  # lost arrivals include bursts, and may exceed `own`
    exposure = np.where(whole > 0, 1 - (lost_arrivals + elsewhere) / np.where(whole > 0, whole, 1.0), 1.0)
    exposure = np.where((shares.share > 0)[:, None], exposure, 0.0)
    # exp(-elsewhere) is the probability that no driver went elsewhere.
    censored = (table["any_lost"].to_numpy().reshape(regions, hours) >= LIKELY) | (np.exp(-elsewhere) <= 1 - LIKELY)
    columns = {
        "censored": censored | (shares.share <= 0)[:, None],
        "exposure": np.clip(exposure, 0.0, 1.0),
        "elsewhere_kwh": elsewhere * kwh,
        "lost_kwh_before": _lost_before(lost, parts, shares, kwh),
    }
    table = table.with_columns(pl.Series(name, values.ravel()) for name, values in columns.items())
    if "lost_draws" in recovered.hours.columns:
        table = table.with_columns(_draws(lost, own, shares, kwh))
    order = [*keys, "y", "arrivals", "censored", "exposure", "lost_arrivals", "lost_kwh", "elsewhere_kwh"]
    more = [name for name in ("lost_kwh_before", "lost_draws") if name in table.columns]
    return table.select(*order, *more, "hour", "weekday", "holiday")


def _parts(lost: LostDemand) -> Parts:
    """Regions of the arrivals of each site, in proportion to the sessions of its stations."""
    stations, of_site = lost.panel_.stations, lost.network_.site_of_station
    names = lost.panel_.regions.centres["unique_id"]
    region = stations["unique_id"].replace_strict(names, np.arange(len(names)), return_dtype=pl.Int64).to_numpy()
    weight = lost.station_weight_
    order = np.argsort(of_site, kind="stable")
    first = np.searchsorted(of_site[order], np.arange(lost.network_.sites + 1))
    share = weight / np.bincount(of_site, weight)[of_site]
    return Parts(first.astype(np.int64), region[order].astype(np.int64), share[order])


def _shares(lost: LostDemand) -> Shares:
    """Market share in every region, from the arrival rates of own stations."""
    panel, network = lost.panel_, lost.network_
    expected = lost.rates_.weekly.mean(axis=1) * lost.rates_.level.mean(axis=1)
    weight = lost.station_weight_
    share = weight / np.bincount(network.site_of_station, weight)[network.site_of_station]
    rate = expected[network.site_of_station] * share
    return panel.market.share_of_regions(panel.regions, panel.everyone, panel.stations, rate)


def _own(lost: LostDemand, level: Floats, parts: Parts) -> Floats:
    """Arrivals expected at own sites, with given levels (sites, days), by region and hour."""
    rates, network = lost.rates_, lost.network_
    response = response_table(rates.crowding, network.capacity)
    at_full = response_at_full(rates, network.capacity)
    regions = lost.panel_.regions.centres.height
    return own_arrivals(network.history.spells, network.clock, rates.weekly, level, response, at_full, parts, regions)


def _energies(lost: LostDemand) -> Floats:
    """Mean energy of a driver by region and hour [kWh]; the overall mean for a region without stations."""
    panel = lost.panel_
    names = panel.regions.centres["unique_id"]
    region = panel.stations["unique_id"].replace_strict(names, np.arange(len(names)), return_dtype=pl.Int64).to_numpy()
    weight = lost.station_weight_
    total = np.zeros((len(names), lost.session_kwh_.shape[1]))
    np.add.at(total, region, lost.session_kwh_ * weight[:, None])
    number = np.bincount(region, weight, minlength=len(names))[:, None]
    overall = (lost.session_kwh_ * weight[:, None]).sum(axis=0) / weight.sum()
    mean = np.where(number > 0, total / np.maximum(number, 1e-9), overall)
    block = lost.network_.clock.week[::BINS_AN_HOUR] // BINS_AN_HOUR % 24 // BLOCK
    return np.asarray(mean[:, block])


def _lost_before(lost: LostDemand, parts: Parts, shares: Shares, kwh: Floats) -> Floats:
    """Energy expected to be lost or to go elsewhere, from earlier days only, (regions, hours) [kWh]."""
    network, rates, rows = lost.network_, lost.rates_, lost.rows_
    known = rates.onwards(network.history, network.clock, network.capacity, network.clock.first_ms)
    lost_share = lost.lost_share_ * lost.panel_.sites["capacity_sure"].to_numpy()
    arrivals = known.at_rows(network.clock, rows) * (response_at_full(rates, network.capacity) * lost_share)[rows.site]
    total = np.zeros(kwh.shape)
    for k in range(int(np.diff(parts.first).max(initial=0))):  # first, second, ... region of every site
        at = parts.first[rows.site] + k
        inside = at < parts.first[rows.site + 1]
        np.add.at(total, (parts.region[at[inside]], rows.hour[inside]), (arrivals[inside] * parts.share[at[inside]]))
    if (shares.share < 1).any():
        total += expected_elsewhere(_own(lost, known.level, parts), shares)
    return np.asarray(total * kwh)


def _draws(lost: LostDemand, own: Floats, shares: Shares, kwh: Floats) -> pl.Series:
    """Draws of lost and elsewhere energy of every region and hour."""
    panel, recovered = lost.panel_, lost.recovered_
    kept = min(KEPT_DRAWS, lost.draws)
    regions, hours = own.shape
    drawn = np.zeros((regions, hours, kept), np.float32)
    names = panel.regions.centres["unique_id"]
    region = recovered.hours["unique_id"].replace_strict(names, np.arange(len(names)), return_dtype=pl.Int64).to_numpy()
    hour = ((recovered.hours["ds"] - panel.period[0]).dt.total_milliseconds() // 3_600_000).to_numpy()
    drawn[region, hour] = recovered.hours["lost_draws"].to_numpy()
    if (shares.share < 1).any():
        rng = np.random.default_rng([lost.seed, ELSEWHERE_STREAM])
        drawn += draw_elsewhere(own, shares, kwh, energy_variation(panel.sessions), kept, rng).astype(np.float32)
    return pl.Series("lost_draws", drawn.reshape(-1, kept), dtype=pl.Array(pl.Float32, kept))
