"""Two charging hubs that opened in Dundee in 2018, as natural experiments: `python -m benchmarks.hubs`.

Lost demand at the rapid chargers nearby is estimated from the records before the opening alone, and compared with what
was recorded after it: the arrivals at the hub and the change at its neighbours, adjusted for the trend at rapid
chargers far away. Writes docs/hubs.md.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

import numpy as np
import polars as pl

from benchmarks.data_sets import DUNDEE, read_records
from unmet.demand.panel import Panel
from unmet.estimation.lost_demand import LostDemand
from unmet.geo import haversine_km
from unmet.records.sessions import Records

PAGE = Path(__file__).parents[1] / "docs" / "hubs.md"

HUBS = ("Lochee", "Princes Street")
RAPID_KW = 25.0  # power that a tenth of a rapid charger's sessions exceed; other chargers reach 12 kW
NEAR_KM, FAR_KM = 2.0, 3.0
WEEKS = 8  # number of weeks that are compared, before and after the opening
LONGEST_GAP = dt.timedelta(days=3)  # between sessions of a charger that is in order
LOW, HIGH = 0.05, 0.95


@dataclass(frozen=True, slots=True)
class Ring:
    """Chargers at some distance from a hub, or the hub itself."""

    names: list[str]
    before: float  # arrivals per week before the opening
    after: float
    before_kwh: float  # energy per week
    after_kwh: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """The prediction for a hub, and what happened; all numbers are per week, draws have shape (draws,)."""

    name: str
    opened: dt.datetime
    before: tuple[dt.date, dt.date]  # first day, and the day after the last
    after: tuple[dt.date, dt.date]
    hub: Ring
    near: Ring
    between: Ring
    far: Ring
    slow: Ring  # slower chargers near the hub
    trend: np.ndarray  # after over before, far away
    lost: np.ndarray  # at near chargers before, from the records before the opening
    lost_in_town: np.ndarray  # at all rapid chargers
    lost_kwh: np.ndarray  # at near chargers
    plain: float  # the same by a plain count: arrivals per hour with a free plug, times the hours without one
    left: np.ndarray  # still lost at near chargers after the opening
    full: tuple[float, float]  # share of the time in which near chargers were full, before and after
    self_check: float  # ratio that the estimator finds in its own check; NaN if it has none
    waiting: float  # estimated share of drivers who wait


def main() -> None:
    """Compare both hubs, and write the page."""
    records = read_records(DUNDEE)
    whole = _fit(records, records.sessions)
    found = [compare(name, records, whole) for name in HUBS]
    PAGE.write_text(page(found, users(records, found[-1])), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


def compare(name: str, records: Records, whole: LostDemand) -> Comparison:
    """Predict from the records before the opening, and count arrivals after it; `whole` is fitted to all records."""
    stations = used_stations(records)
    rapid = stations.filter(pl.col("kw") > RAPID_KW)
    hub = rapid.filter(pl.col("name").str.contains(name))
    opened = hub["first"].min()
    assert isinstance(opened, dt.datetime)
    monday = opened.date() - dt.timedelta(days=opened.weekday())
    before = (monday - dt.timedelta(weeks=WEEKS), monday)
    after = (monday + dt.timedelta(weeks=1), monday + dt.timedelta(weeks=1 + WEEKS))
    others = stations.with_columns(km=_distance_km(hub, stations)).filter(pl.col("first").dt.date() < before[0])
    fast, slow = others.filter(pl.col("kw") > RAPID_KW), others.filter(pl.col("kw") <= RAPID_KW)
    near = fast.filter(pl.col("km") <= NEAR_KM)
    between = fast.filter(pl.col("km").is_between(NEAR_KM, FAR_KM, closed="right"))
    far = _without_gaps(fast.filter(pl.col("km") > FAR_KM), records.sessions, before[0], after[1])
    slow_near = slow.filter(pl.col("km") <= NEAR_KM)
    rings = [_ring(part, records.sessions, before, after) for part in (hub, near, between, far, slow_near)]
    past = _fit(records, records.sessions.filter(pl.col("start") < opened))
    rng = np.random.default_rng(1)
    # Ratio of two Poisson rates; rings[3] are the chargers far away.
    trend = rng.gamma(rings[3].after * WEEKS, size=past.draws)
    trend /= rng.gamma(rings[3].before * WEEKS, size=past.draws)
    ids = near["station_id"]
    check = past.summary()["self_check"]
    return Comparison(
        name=name,
        opened=opened,
        before=before,
        after=after,
        **dict(zip(("hub", "near", "between", "far", "slow"), rings, strict=True)),
        trend=trend,
        lost=_weekly(past, ids, before, "arrivals"),
        lost_in_town=_weekly(past, fast["station_id"], before, "arrivals"),
        lost_kwh=_weekly(past, ids, before, "kwh"),
        left=_weekly(whole, ids, after, "arrivals"),
        plain=_plain_count(past, ids, before),
        full=(_full_share(past, ids, before), _full_share(whole, ids, after)),
        self_check=np.nan if check is None else check["ratio"],
        waiting=past.waiting_,
    )  # fmt: skip


def used_stations(records: Records) -> pl.DataFrame:
    """Stations with sessions: `station_id, name, lat, lon, first` (session), `kw` (0.9 quantile over sessions)."""
    hours = (pl.col("end") - pl.col("start")).dt.total_seconds() / 3600
    power = (pl.col("energy_kwh") / hours).filter(hours > 1 / 12).quantile(0.9)
    used = records.sessions.group_by("station_id").agg(first=pl.col("start").min(), kw=power)
    known = records.stations.unique("station_id", maintain_order=True).join(
        used, on="station_id", maintain_order="left"
    )
    return known.select("station_id", "name", "lat", "lon", "first", "kw")


def _distance_km(hub: pl.DataFrame, others: pl.DataFrame) -> pl.Series:
    """Distance from the hub [km]."""
    lat, lon = (float(hub[column].to_numpy().mean()) for column in ("lat", "lon"))
    return pl.Series(haversine_km(lat, lon, others["lat"].to_numpy(), others["lon"].to_numpy()))


def _without_gaps(stations: pl.DataFrame, sessions: pl.DataFrame, first: dt.date, last: dt.date) -> pl.DataFrame:
    """Stations without a long gap between two sessions, whose trend is therefore one of demand."""
    gaps = (
        sessions.filter(_within((first, last)))
        .sort("start")
        .group_by("station_id")
        .agg(gap=pl.col("start").diff().max())
    )
    return stations.join(gaps, on="station_id", maintain_order="left").filter(pl.col("gap") <= LONGEST_GAP)


def _within(days: tuple[dt.date, dt.date]) -> pl.Expr:
    return pl.col("start").dt.convert_time_zone("Europe/London").dt.date().is_between(*days, closed="left")


def _ring(
    stations: pl.DataFrame, sessions: pl.DataFrame, before: tuple[dt.date, dt.date], after: tuple[dt.date, dt.date]
) -> Ring:
    """Arrivals and energy per week before and after."""
    own = sessions.filter(pl.col("station_id").is_in(stations["station_id"].implode()))
    parts = [own.filter(_within(days)) for days in (before, after)]
    return Ring(
        sorted(set(stations["name"])),
        *(part.height / WEEKS for part in parts),
        *(float(part["energy_kwh"].sum()) / WEEKS for part in parts),
    )


def _fit(records: Records, sessions: pl.DataFrame) -> LostDemand:
    """The estimate from some of the records, with every station as a region."""
    panel = Panel(sessions, records.stations, regions="station", time_zone=records.time_zone)
    return LostDemand().fit(panel)


def _weekly(lost: LostDemand, stations: pl.Series, days: tuple[dt.date, dt.date], what: str) -> np.ndarray:
    """Draws of the loss of some stations per week, (draws,); `what` is arrivals or kwh."""
    names = lost.panel_.regions.centres["unique_id"].to_list()
    own = lost.panel_.stations.filter(pl.col("station_id").is_in(stations.implode()))["unique_id"]
    rows = [names.index(name) for name in own]
    weeks = lost.recovered_.weeks.is_between(*days, closed="left").to_numpy()
    draws = getattr(lost.recovered_, f"week_{what}")
    return np.asarray(draws[:, rows][:, :, weeks].sum(axis=(1, 2)) / WEEKS)


def _full_share(lost: LostDemand, stations: pl.Series, days: tuple[dt.date, dt.date]) -> float:
    """Mean share of the time in which some stations were full."""
    own = lost.station_hours().rename({"ds": "start"}).filter(pl.col("station_id").is_in(stations.implode()))
    return float(own.filter(_within(days))["full"].sum()) / (len(stations) * WEEKS * 168)


def _plain_count(lost: LostDemand, stations: pl.Series, days: tuple[dt.date, dt.date]) -> float:
    """Lost arrivals per week by a plain count."""
    own = lost.station_hours().rename({"ds": "start"}).filter(pl.col("station_id").is_in(stations.implode()))
    per = own.filter(_within(days)).group_by("station_id").agg(pl.col("arrivals", "full").sum())
    hours = WEEKS * 168
    return float(per.select((pl.col("arrivals") / (hours - pl.col("full")) * pl.col("full")).sum()).item()) / WEEKS


@dataclass(frozen=True, slots=True)
class Users:
    """Drivers by their use of rapid chargers before and after a hub opened; sessions per week."""

    first: dt.date  # day from which the records name drivers
    known: int  # seen before the opening, and at the hub after it
    known_hub: float
    known_before: float  # elsewhere
    known_after: float
    new: int  # seen at the hub, and not before
    new_hub: float
    never_before: float  # drivers who never used the hub
    never_after: float


def users(records: Records, found: Comparison) -> Users:
    """Follow the drivers of a hub, where the records name them for some weeks before the opening."""
    rapid = used_stations(records).filter(pl.col("kw") > RAPID_KW)
    hub = rapid.filter(pl.col("name").str.contains(found.name))["station_id"].implode()
    named = (
        records.sessions.rename({"user_id" if "user_id" in records.sessions.columns else "vehicle_id": "driver"})
        .filter(pl.col("station_id").is_in(rapid["station_id"].implode()) & pl.col("driver").is_not_null())
        .with_columns(at_hub=pl.col("station_id").is_in(hub))
        .with_columns(uses_hub=pl.col("at_hub").any().over("driver"))
    )
    first = named["start"].min()
    assert isinstance(first, dt.datetime)
    begin = first.date() + dt.timedelta(days=1)
    before, after = named.filter(_within((begin, found.opened.date()))), named.filter(_within(found.after))
    weeks = (found.opened.date() - begin).days / 7
    at_hub = after.filter("at_hub")
    known = at_hub.join(before.select("driver"), on="driver", how="semi")
    new = at_hub.join(before.select("driver"), on="driver", how="anti")
    drivers = known.select("driver").unique()
    return Users(
        first=begin,
        known=drivers.height,
        known_hub=known.height / WEEKS,
        known_before=before.join(drivers, on="driver", how="semi").height / weeks,
        known_after=after.filter(~pl.col("at_hub")).join(drivers, on="driver", how="semi").height / WEEKS,
        new=new["driver"].n_unique(),
        new_hub=new.height / WEEKS,
        never_before=before.filter(~pl.col("uses_hub")).height / weeks,
        never_after=after.filter(~pl.col("uses_hub")).height / WEEKS,
    )


def page(found: list[Comparison], followed: Users) -> str:
    """The page as Markdown."""
    lines = ["# Two hubs that opened: a test in the field", "", fill(INTRODUCTION, 120), "", *_predicted(found), ""]
    lines += ["## What the arrivals at a hub consist of", "", fill(PARTS, 120), "", *_parts(found), ""]
    lines += ["## The same drivers before and after", "", *_followed(followed, found[-1]), ""]
    return "\n".join([*lines, "## What this shows, and what it cannot show", "", *_conclusions(found, followed), ""])


INTRODUCTION = f"""Written by `python -m benchmarks.hubs` from Dundee's open records of September 2017 to September
2018. Two hubs of rapid chargers opened in that time. Lost demand at the rapid chargers within {NEAR_KM:g} km of each is
estimated from the records before the opening alone. If the estimate is right, arrivals at the hub and its neighbours
together rise by at least about that much. All numbers are per week, over {WEEKS} weeks before the week of the opening
and {WEEKS} weeks after it; intervals are 90 %. The trend is that of rapid chargers more than {FAR_KM:g} km away that
were in working order throughout."""
PARTS = """Arrivals that the neighbours lost beyond the trend were taken from them by the hub. Demand that, by the
estimate, was lost before the opening (adjusted for the trend, less what is still lost) was recovered. The rest is new
to the rapid chargers nearby: more charging by the same drivers, charging that was done at home or at slower posts
before, or drivers who are new to public charging. Intervals include the uncertainty of the estimate and chance at the
chargers far away, but not whether those are a fair comparison."""
LIMITS = (
    "Lost demand at existing chargers is a lower bound for what a hub attracts, so the experiment can only refute an "
    "estimate that is too high. It cannot show that one is too low.",
    "The trend rests on one or two chargers, and a hub may draw drivers from them too: those who use the second hub "
    "charged less often everywhere else. The trend is then too low, and what was taken is understated.",
    "Rapid chargers have a second outlet that few cars can use. By their records most of them serve one car at a time, "
    "and that is the capacity assumed; Greenmarket's second outlet was used, so its capacity is two cars.",
    "The eight weeks and the distances were chosen after looking at the counts by week, so that a long outage of Ice "
    "Arena from June 2018 on falls outside the first comparison. It falls inside the second, which does not include "
    "Ice Arena.",
    "Restarts can be joined only from June 2018 on, where the records name drivers. Both sides of the first comparison "
    "count them as arrivals; in the second, only the first weeks do, which makes the trend a few per cent too low.",
    "Public Works had lost half of its arrivals within the winter before the first hub opened, for reasons that the "
    "records do not show; the estimate before and the comparison after use the last eight weeks alone.",
    "Drivers who were seen both in the month before and at the hub are the regular ones, who charge often; part of "
    "their rise may be that of regular drivers anywhere.",
    "Drivers who stay away because they expect a queue leave no trace at a full charger. If they come to a hub, they "
    "count as new here.",
)


def _interval(draws: np.ndarray, form: str = ",.0f") -> str:
    """Mean and 90 % interval."""
    low, high = np.quantile(draws, [LOW, HIGH])
    return f"{format(draws.mean(), form)} ({format(low, form)} to {format(high, form)})"


def _table(head: str, rows: list[list[str]], found: list[Comparison]) -> list[str]:
    """A table with one column for each hub."""
    titles = " | ".join(f"{one.name}, {one.opened:%-d %B %Y}" for one in found)
    return [f"| {head} | {titles} |", "| --- |" + " --- |" * len(found)] + [f"| {' | '.join(row)} |" for row in rows]


def _predicted(found: list[Comparison]) -> list[str]:
    """The table of predictions and what happened."""
    rise = [one.hub.after + one.near.after - one.trend * one.near.before for one in found]
    return _table(
        "per week",
        [
            ["rapid chargers nearby", *(", ".join(one.near.names) for one in found)],
            ["time they were full: before, after",
             *(f"{100 * one.full[0]:.0f} %, {100 * one.full[1]:.0f} %" for one in found)],
            ["**predicted**: drivers lost nearby before", *(_interval(one.lost) for one in found)],
            ["at all rapid chargers in town", *(_interval(one.lost_in_town) for one in found)],
            ["energy lost nearby before [kWh]", *(_interval(one.lost_kwh) for one in found)],
            ["drivers lost nearby, by a plain count", *(f"{one.plain:.0f}" for one in found)],
            ["recorded arrivals nearby: before, after",
             *(f"{one.near.before:.0f}, {one.near.after:.0f}" for one in found)],
            ["trend far away", *(f"{_interval(one.trend, '.2f')} ({', '.join(one.far.names)})" for one in found)],
            ["arrivals at the hub", *(f"{one.hub.after:.0f}" for one in found)],
            ["energy at the hub [kWh]", *(f"{one.hub.after_kwh:,.0f}" for one in found)],
            ["**happened**: rise at hub and neighbours", *(_interval(values) for values in rise)],
        ],
        found,
    )  # fmt: skip


def _parts(found: list[Comparison]) -> list[str]:
    """Where the arrivals at each hub come from."""
    taken = [one.trend * one.near.before - one.near.after for one in found]
    further = [one.trend * one.between.before - one.between.after for one in found]
    recovered = [one.trend * one.lost - one.left for one in found]
    rest = [one.hub.after - a - b - c for one, a, b, c in zip(found, taken, further, recovered, strict=True)]
    slower = [one.trend * one.slow.before - one.slow.after for one in found]
    return _table(
        "arrivals per week",
        [
            ["at the hub", *(f"{one.hub.after:.0f}" for one in found)],
            [f"taken from rapid chargers within {NEAR_KM:g} km", *map(_interval, taken)],
            [f"taken from those at {NEAR_KM:g} to {FAR_KM:g} km",
             *(f"{_interval(by)} ({', '.join(one.between.names)})" for one, by in zip(found, further, strict=True))],
            ["lost demand recovered", *map(_interval, recovered)],
            ["the rest", *map(_interval, rest)],
            [f"(fall at slower chargers within {NEAR_KM:g} km)", *map(_interval, slower)],
        ],
        found,
    )  # fmt: skip


def _followed(followed: Users, found: Comparison) -> list[str]:
    """A paragraph on the drivers whom the records name."""
    change = followed.never_after / followed.never_before
    more = followed.known_hub + followed.known_after - followed.known_before
    text = f"""From {followed.first:%-d %B %Y} on the records name drivers, a month before {found.name} opened.
    Of the {found.hub.after:.0f} arrivals per week there, {followed.known_hub:.0f} are by {followed.known} drivers who
    were seen at a rapid charger in that month, and {followed.new_hub:.0f} by {followed.new} others. The former charged
    {followed.known_before:.0f} times per week at rapid chargers before; after the opening they charged
    {followed.known_after:.0f} times elsewhere, and {more:.0f} more times in all. Drivers who never used the hub charged
    {followed.never_before:.0f} times per week before and {followed.never_after:.0f} times after ({change:.2f})."""
    return [fill(" ".join(text.split()), 120)]


def _conclusions(found: list[Comparison], followed: Users) -> list[str]:
    """Conclusions that follow from the numbers, and limits."""
    lines = [_verdict(one) for one in found]
    kept = followed.known_before * followed.never_after / followed.never_before
    more = followed.known_hub + followed.known_after - kept
    lines.append(
        f"Most of what {found[-1].name} serves is neither lost demand nor taken from chargers nearby. The drivers who "
        f"were known before account for {100 * followed.known_hub / found[-1].hub.after:.0f} % of it. By the trend of "
        f"those who never went there they would have charged {kept:.0f} times per week; they charged {more:.0f} "
        "more times than that."
    )
    return [fill(f"- {text}", 120, subsequent_indent="  ") for text in (*lines, *LIMITS)]


def _verdict(one: Comparison) -> str:
    """Whether the prediction for a hub is contradicted by what happened."""
    rise = one.hub.after + one.near.after - one.trend * one.near.before
    predicted, chance = one.trend * one.lost, float(np.mean(rise >= one.trend * one.lost))
    verdict = "is not contradicted" if chance > LOW else "is too high"
    if predicted.mean() < 1:
        return (
            f"{one.name}: the neighbours were hardly ever full, and the estimate says that they lost nobody. The hub "
            f"had {one.hub.after:.0f} arrivals per week all the same: a hub can be busy where no demand was lost."
        )
    return (
        f"{one.name}: by the estimate, {_interval(predicted)} drivers per week would be lost at the neighbours without "
        f"the hub. Arrivals rose by {_interval(rise)}, {rise.mean() / predicted.mean():.0f} times as much. The "
        f"estimate {verdict}; a plain count would say {one.plain * one.trend.mean():.0f}. The hub drew far more "
        "drivers than its neighbours had turned away."
    )


if __name__ == "__main__":
    main()
