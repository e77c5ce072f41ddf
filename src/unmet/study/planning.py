"""Plans for a simulated city whose true demand is known, made from its records and tested in a second simulation.

There are five plans for every number of plugs, which differ in what the planner knows:

- `observed`: recorded demand. Each plug goes to the site with the most recorded energy per plug.
- `time-full`: current practice. Each plug goes to the site that was full for the most hours per added plug.
- `censored-quantile`: the paper's model of demand by region and hour. Its predictions in excess of the records in
  censored hours are lost demand, which is divided among the full sites of the region, in proportion to their plugs and
  the time they were full.
- `exposure`: draws of `LostDemand`.
- `truth`: the lost drivers, with their true times and stays.

The last three share one replay and allocation. A plan achieves the decrease of lost energy that results when the
simulation is repeated with its plugs and the same trips, cars and random numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from unmet.arrays import Floats, Integers
from unmet.city.build import City
from unmet.demand.panel import Panel
from unmet.demand.regions import Regions, kmeans_regions
from unmet.demand.simulated import simulated_panel
from unmet.demand.spells import FULL
from unmet.estimation.clock import BINS_A_WEEK
from unmet.estimation.exposed import full_hours
from unmet.estimation.lost_demand import LostDemand
from unmet.estimation.sums import estimate
from unmet.models.forecaster import Forecaster
from unmet.models.training import Training
from unmet.planning.allocate import Options, choose_within
from unmet.planning.changes import changed_world
from unmet.planning.drivers import DrawnDemand, Drivers, demand_of, in_order
from unmet.planning.gains import GainCurve, power_curve, site_curves
from unmet.planning.hidden import Hidden
from unmet.simulation.battery import hours_to_full
from unmet.simulation.outcome import Outcome
from unmet.simulation.scenario import scenario_from
from unmet.simulation.simulate import Itinerary, prepare, simulate

__all__ = [
    "METHODS", "PENETRATIONS", "PLUGS", "SEEDS", "PlannedCity", "PlanningStudy", "make_plans",
    "planned_city", "run_planning",
]  # fmt: skip


PLUGS = (25, 50, 100, 200)  # numbers of plugs to add to a city
PENETRATIONS = (0.05, 0.03)
SEEDS = (1, 2, 3)  # one city each
METHODS = ("observed", "time-full", "censored-quantile", "exposure", "truth")
AWARE, BEST = "exposure", "truth"
REGIONS = 10
INTERVAL = 0.9  # probability of the intervals of promised gains
MODEL_DRAWS = 50  # draws of drivers from the lost energy that the model predicts
MODEL_SEEDS = 3  # networks whose predictions are averaged
MODEL_STREAM = 5  # keeps these random numbers apart from others of the same seed
HOUR_MS = 3_600_000
MAX_PLUGS = 200  # highest number of plugs added at one site


@dataclass(frozen=True, slots=True)
class PlannedCity:
    """A simulated city, with everything that plans are made from."""

    itinerary: Itinerary
    outcome: Outcome
    penetration: float
    seed: int
    queue: str
    panel: Panel
    regions: Regions
    demand: DrawnDemand

    @property
    def lost_kwh(self) -> float:
        """Energy lost in the city without a plan [kWh]."""
        return _lost(self.outcome)

    def realised(self, plugs: Integers) -> float:
        """Decrease of the lost energy [kWh] if these plugs, (sites,), are added."""
        city = self.itinerary.city
        stations = city.stations.join(self._by_station(plugs), on="station_id", how="left", maintain_order="left")
        stations = stations.with_columns((pl.col("plugs") + pl.col("added").fill_null(0)).cast(pl.Int32)).drop("added")
        again = simulate(replace(self.itinerary, city=replace(city, stations=stations)), self.scenario())
        return self.lost_kwh - _lost(again)

    def scenario(self) -> Any:
        """The scenario of all simulations of this city."""
        return scenario_from({"queue": self.queue, "penetration": self.penetration, "seed": self.seed}, "The study")

    def _by_station(self, plugs: Integers) -> pl.DataFrame:
        """Divide the plugs added to a site among its stations: each goes to the one with the most sessions per plug."""
        rows = []
        members = self.panel.stations.select("station_id", "site_id", "capacity", "sessions")
        for site_id, added in zip(self.panel.sites["site_id"], plugs.tolist(), strict=True):
            own = members.filter(pl.col("site_id") == site_id) if added else members.head(0)
            extra = np.zeros(own.height, np.int64)
            for _ in range(added):
                load = own["sessions"].to_numpy() / (own["capacity"].to_numpy() + extra)
                extra[int(load.argmax())] += 1
            rows += list(zip(own["station_id"], extra.tolist(), strict=True))
        return pl.DataFrame(rows, schema={"station_id": pl.String, "added": pl.Int64}, orient="row")


@dataclass(frozen=True, slots=True)
class PlanningStudy:
    """All plans, and the gain that each promised and achieved."""

    table: pl.DataFrame
    """`seed, penetration, plugs, method, lost_kwh, realised_kwh, promised_kwh, promised_kwh_low, promised_kwh_high`,
    and `share`: realised energy relative to the plan from the truth."""
    queue: str

    def rows(self) -> pl.DataFrame:
        """Mean share of what the plan from the truth achieves, one row per penetration and number of plugs."""
        return self.table.group_by("penetration", "plugs", "method", maintain_order=True).agg(
            pl.col("share").mean(), least=pl.col("share").min(), cities=pl.len()
        )

    def targets(self) -> list[tuple[str, str, str, bool]]:
        """Rows of (measure, value found, target, whether it is met)."""
        aware = self.table.filter(pl.col("method") == AWARE)
        share = float(aware["share"].to_numpy().mean())
        others = self.table.filter(~pl.col("method").is_in([AWARE, BEST]))
        keys = ["penetration", "plugs", "seed"]
        beaten = others.join(aware.select(*keys, own="realised_kwh"), on=keys).select(
            *keys, won=pl.col("own") > pl.col("realised_kwh")
        )
        cities_won = int(beaten.group_by(keys).agg(pl.col("won").all())["won"].sum())
        means = self.rows().filter(pl.col("method") != BEST)
        mean_rows = means.pivot("method", index=["penetration", "plugs"], values="share")
        rivals = [name for name in mean_rows.columns if name not in ("penetration", "plugs", AWARE)]
        won = int(mean_rows.select((pl.col(AWARE) > pl.max_horizontal(rivals)).sum()).item())
        inside = aware.select(pl.col("realised_kwh").is_between("promised_kwh_low", "promised_kwh_high").mean()).item()
        return [
            ("mean gain of `exposure`, relative to `truth`", f"{share:.3f}", "at least 0.95", share >= 0.95),
            ("rows (means of cities) in which `exposure` beats all of the first three", f"{won} of {mean_rows.height}",
             "all", won == mean_rows.height),
            ("single cities in which it does", f"{cities_won} of {aware.height}", "all", cities_won == aware.height),
            ("plans whose 90 % interval contains what was achieved", f"{inside:.2f}", "at least 0.80", inside >= 0.8),
        ]  # fmt: skip


def run_planning(
    make_city: Callable[[int], City],
    *,
    plugs: Sequence[int] = PLUGS,
    penetrations: Sequence[float] = PENETRATIONS,
    seeds: Sequence[int] = SEEDS,
    queue: str = "first-come",
    methods: Sequence[str] = METHODS,
    on_cell: Callable[[int], None] = lambda _: None,
) -> PlanningStudy:
    """Make all plans, and simulate each.

    Args:
        make_city: returns the city of a seed.
        plugs: numbers of plugs to add.
        penetrations: shares of the cars that are electric.
        seeds: seeds of cities.
        queue: name of the queue at all stations.
        methods: plans to make, from `METHODS`; the one from the truth is always made.
        on_cell: called with the number of cities done.
    """
    rows: list[dict[str, Any]] = []
    done = 0
    for seed in seeds:
        itinerary = prepare(make_city(seed))
        for penetration in penetrations:
            city = planned_city(itinerary, queue, penetration, seed)
            rows += make_plans(city, plugs, [name for name in METHODS if name in methods or name == BEST])
            done += 1
            on_cell(done)
    return PlanningStudy(pl.DataFrame(rows, infer_schema_length=None), queue)


def planned_city(itinerary: Itinerary, queue: str, penetration: float, seed: int) -> PlannedCity:
    """Simulate a city, and estimate its lost demand from the records alone."""
    scenario = scenario_from({"queue": queue, "penetration": penetration, "seed": seed}, "The study")
    outcome = simulate(itinerary, scenario)
    regions = kmeans_regions(outcome.stations, REGIONS)
    panel = Panel(outcome.sessions, outcome.stations, regions=regions, time_zone=itinerary.city.time_zone)
    lost = LostDemand(energies="to-80", interval=INTERVAL).fit(panel)
    return PlannedCity(itinerary, outcome, penetration, seed, queue, panel, regions, demand_of(lost))


def make_plans(city: PlannedCity, plugs: Sequence[int], methods: Sequence[str]) -> list[dict[str, Any]]:
    """All plans for a city, with promised and achieved gains: one row per method and number of plugs.

    `methods` must contain `truth`, since `share` is relative to it.
    """
    # A method reads a city and returns a function of the number of plugs, which returns the plugs to add at each site,
    # and the draws of the gain that the plan promises [kWh per week], if it promises one.
    makers: dict[str, Callable[[PlannedCity], Callable[[int], tuple[Integers, Floats | None]]]] = {
        "observed": _from_observed,
        "time-full": _from_time_full,
        "censored-quantile": _from_model,
        "exposure": lambda c: _from_curves(c.demand),
        "truth": _from_truth,
    }
    weeks = float(city.demand.weeks.max(initial=1.0))
    rows: list[dict[str, Any]] = []
    for name in methods:
        choose = makers[name](city)
        for number in plugs:
            added, draws = choose(number)
            promised = None if draws is None or name != AWARE else estimate(draws * weeks, INTERVAL)
            rows.append(
                {
                    "seed": city.seed,
                    "penetration": city.penetration,
                    "plugs": number,
                    "method": name,
                    "sites": int((added > 0).sum()),
                    "lost_kwh": city.lost_kwh,
                    "realised_kwh": city.realised(added),
                    "promised_kwh": None if promised is None else float(promised.mean),
                    "promised_kwh_low": None if promised is None else float(promised.low),
                    "promised_kwh_high": None if promised is None else float(promised.high),
                }
            )
    best = {row["plugs"]: row["realised_kwh"] for row in rows if row["method"] == BEST}
    return [row | {"share": row["realised_kwh"] / best[row["plugs"]]} for row in rows]


def _lost(outcome: Outcome) -> float:
    return float(outcome.arrivals.filter(pl.col("outcome") == "lost")["wanted_kwh"].sum())


def _by_highest(value: Floats, divisor: Floats) -> Callable[[int], tuple[Integers, None]]:
    """Give each plug to the site with the highest value / divisor; every plug added raises the divisor by 1."""

    def choose(number: int) -> tuple[Integers, None]:
        added = np.zeros(len(value), np.int64)
        for _ in range(number):
            added[int((value / (divisor + added)).argmax())] += 1
        return added, None

    return choose


def _from_observed(city: PlannedCity) -> Callable[[int], tuple[Integers, None]]:
    energy = city.panel.stations.group_by("site_id").agg(pl.col("energy_kwh").sum())
    sites = city.panel.sites.join(energy, on="site_id", how="left", maintain_order="left")
    return _by_highest(sites["energy_kwh"].to_numpy(), sites["capacity"].to_numpy().astype(float))


def _from_time_full(city: PlannedCity) -> Callable[[int], tuple[Integers, None]]:
    site, hours = _full_spells(city)
    full = np.bincount(site, hours, minlength=city.panel.sites.height).astype(float)
    return _by_highest(full, np.ones(len(full)))


def _full_spells(city: PlannedCity) -> tuple[Integers, Floats]:
    """Site and length [h] of every spell in which a site was full."""
    spells = city.demand.network.history.spells
    site = np.repeat(np.arange(len(spells.first) - 1), np.diff(spells.first))
    full = spells.state == FULL
    return site[full], (spells.end_ms - spells.begin_ms)[full] / HOUR_MS


def _from_curves(demand: DrawnDemand) -> Callable[[int], tuple[Integers, Floats]]:
    """Allocate by gain curves, from draws of lost drivers."""
    curves = [supply.curves[None] for supply in site_curves(changed_world(demand), MAX_PLUGS)]
    return _allocator(curves)


def _allocator(curves: Sequence[GainCurve]) -> Callable[[int], tuple[Integers, Floats]]:
    """Allocate plugs to the sites with the largest gains, given the gain curve of each site."""
    site = np.repeat(np.arange(len(curves)), [curve.max_plugs for curve in curves])
    plugs = np.concatenate([np.arange(1, curve.max_plugs + 1) for curve in curves])
    gain = np.concatenate([curve.mean_kwh[1:] for curve in curves])
    options = Options(site, plugs, np.full(len(site), np.nan), gain, plugs.astype(float))

    def choose(number: int) -> tuple[Integers, Floats]:
        rows = choose_within(options, float(number)).rows
        added = np.zeros(len(curves), np.int64)
        added[site[rows]] = plugs[rows]
        chosen = np.flatnonzero(added).tolist()
        return added, np.sum([curves[s].kwh[:, curves[s].at(int(added[s]))] for s in chosen], axis=0)

    return choose


def _from_truth(city: PlannedCity) -> Callable[[int], tuple[Integers, Floats]]:
    """Allocate by gain curves, from the lost drivers and their true stays."""
    site_of = dict(zip(city.panel.stations["station_id"], city.demand.network.site_of_station.tolist(), strict=True))
    stations = city.outcome.stations.select("station_id", "power_kw")
    lost = city.outcome.arrivals.filter(pl.col("outcome") == "lost").join(stations, on="station_id", how="left")
    site = np.array([site_of[name] for name in lost["station_id"]], np.int64)
    at = lost["arrival"].dt.epoch("ms").to_numpy()
    hours_until_full = [
        hours_to_full(soc, kwh, kw, False) for soc, kwh, kw in lost.select("soc", "battery_kwh", "power_kw").iter_rows()
    ]
    # A driver without a time to leave stays until the battery is full.
    leaves = lost["leaves"].dt.epoch("ms").fill_null(0).to_numpy()
    stay = np.where(leaves > 0, leaves - at, (np.array(hours_until_full) * HOUR_MS).astype(np.int64))
    wanted, weeks = lost["wanted_kwh"].to_numpy(), city.demand.weeks
    curves = []
    for s in range(city.panel.sites.height):
        own = site == s
        none = np.zeros(int(own.sum()), bool)  # all of them are lost drivers: neither recorded nor forced
        drivers: Drivers = in_order(
            np.zeros(len(none), np.int64), 1, at[own], np.maximum(stay[own], 1), wanted[own], none, none
        )
        curves.append(power_curve(drivers, np.ones(len(none)), MAX_PLUGS, np.nan, None, 1 / weeks[s]))
    return _allocator(curves)


def _from_model(city: PlannedCity) -> Callable[[int], tuple[Integers, Floats]]:
    """Allocate by gain curves, from the predictions of the censored quantile model in excess of the records."""
    truth = simulated_panel(city.outcome.arrivals, city.regions, city.itinerary.city.period)
    table = truth.select("unique_id", "ds", "y", "censored")
    positions = city.regions.centres.select("unique_id", "lat", "lon")
    model = Forecaster(
        "tgcn", "censored-quantile", seeds=MODEL_SEEDS, horizon=1, training=Training(), calibrate=False,
        time_zone=city.itinerary.city.time_zone,
    ).fit(table, positions)  # fmt: skip
    predicted = model.predict(table).join(table, on=["unique_id", "ds"])
    # The median in excess of the record, in censored hours, is what the model takes to be lost.
    excess = predicted.filter(pl.col("censored")).select(
        "unique_id", "ds", kwh=(pl.col("q0.5") - pl.col("y")).clip(lower_bound=0)
    )
    return _from_curves(replace(city.demand, hidden=_divided_among_sites(city, excess)))


def _divided_among_sites(city: PlannedCity, lost: pl.DataFrame) -> Hidden:
    """Draws of lost drivers, from lost energy (`unique_id, ds, kwh`) divided among the full sites of each region."""
    hidden, panel = city.demand.hidden, city.panel
    region = dict(zip(panel.stations["site_id"], panel.stations["unique_id"], strict=True))
    hour_ms = int(panel.period[0].timestamp() * 1000) + hidden.hour * HOUR_MS
    full = city.demand.network.capacity[hidden.site] * _hours_full(city, hidden)
    rows = pl.DataFrame(
        {
            "unique_id": [region[panel.sites["site_id"][int(s)]] for s in hidden.site],
            "ds": pl.Series(hour_ms).cast(pl.Datetime("ms", "UTC")),
            "weight": full,
        }
    ).join(lost, on=["unique_id", "ds"], how="left", maintain_order="left")
    part = pl.col("weight") / pl.col("weight").sum().over("unique_id", "ds")
    kwh = rows.select((pl.col("kwh").fill_null(0) * part).fill_nan(0)).to_series().to_numpy()
    mean = kwh / np.maximum(hidden.kwh, 1e-9)  # expected number of drivers in each site-hour
    drivers = np.random.default_rng([city.seed, MODEL_STREAM]).poisson(mean, (MODEL_DRAWS, len(mean))).astype(np.uint16)
    return replace(hidden, drivers=drivers)


def _hours_full(city: PlannedCity, hidden: Hidden) -> Floats:
    """How long the site was full in each of the site-hours of `hidden` [h]."""
    network = city.demand.network
    rows = full_hours(network.history.spells, network.clock, np.ones((network.sites, BINS_A_WEEK)))
    known = {(int(s), int(h)): float(f) for s, h, f in zip(rows.site, rows.hour, rows.full, strict=True)}
    return np.array([known.get((int(s), int(h)), 0.0) for s, h in zip(hidden.site, hidden.hour, strict=True)])
