"""What the page and the summary of recovered demand show: totals, regions, stations and what to beware of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from unmet.models.forecaster import Forecaster
from unmet.models.recover import Recovery
from unmet.models.recovery import Estimate
from unmet.models.series import HOUR, Series

__all__ = ["RecoveryReport"]

MOST = 3  # regions and stations in the summary
BLIND = 1e-6  # exposure up to which nobody could be seen
BLIND_DAYS = 7
BORROWED = 0.3  # share of the lost energy that neighbours lend from which that is told
LENT = ("from_data", "from_calendar", "from_neighbours")
WEEK_HOURS = 7 * 24


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """Recovered demand, with the model and the panel that it comes from."""

    model: Forecaster
    recovery: Recovery
    series: Series  # the panel, earlier hours included

    def summary(self) -> dict[str, Any]:
        """What was seen and what was lost, for machines."""
        hours, made = self.recovery.hours, self.recovery
        first, last = hours.select(a=pl.col("ds").min(), b=pl.col("ds").max()).row(0)
        seen_kwh, seen_arrivals = (float(hours[name].sum()) for name in ("observed_kwh", "arrivals"))
        return {
            "first_hour": f"{first:%Y-%m-%dT%H:%MZ}",
            "last_hour": f"{last:%Y-%m-%dT%H:%MZ}",
            "hours": hours["ds"].n_unique(),
            "regions": hours["unique_id"].n_unique(),
            "stations": made.stations.height,
            "interval": made.interval,
            **_totals("kwh", seen_kwh, made.total_kwh),
            **{f"lost_share{end}": round(_share(lost, seen_kwh), 6) for end, lost in _parts(made.total_kwh)},
            **_totals("arrivals", seen_arrivals, made.total_arrivals),
            **self._lent(seen_kwh),
            "regions_most_lost": _told(self.regions(), "unique_id"),
            "stations_most_lost": _told(self.stations(), "station_id") if made.stations.height else [],
            "notes": self.notes(),
        }

    def regions(self) -> pl.DataFrame:
        """Regions as in the table of regions, those that lost most first."""
        return _most_first(self.recovery.regions, "unique_id")

    def stations(self) -> pl.DataFrame:
        """Stations as in the table of stations, those that lost most first; empty where none are known."""
        made = self.recovery.stations
        return made if made.is_empty() else _most_first(made, "station_id")

    def cut_weeks(self) -> set[Any]:
        """The Mondays of weeks of which the panel holds a part only."""
        hours = self.recovery.hours["ds"].unique()
        monday = hours.dt.convert_time_zone(self.model.time_zone).dt.truncate("1w").dt.date()
        counts = monday.alias("week").value_counts(name="hours")
        return set(counts.filter(pl.col("hours") < WEEK_HOURS - 1)["week"])  # clocks go forward by an hour

    def notes(self) -> list[str]:
        """Sentences on what makes the estimate doubtful."""
        said = self._blind()
        lent = self._lent(0.0)["lost_from_neighbours"]
        if lent > BORROWED:
            said.append(
                f"{100 * lent:.0f} % of the lost energy is borrowed from neighbouring regions, where a region's own "
                "records say too little: take it as a rough guess."
            )
        return said

    def _lent(self, seen_kwh: float) -> dict[str, float]:
        """What true energy rests on, and what of the lost energy is borrowed."""
        hours, lost = self.recovery.hours, float(self.recovery.hours["lost_kwh"].sum())
        by = {name: float((hours[name] * hours["true_kwh"]).sum()) for name in LENT[1:]}
        shares = {name: value / (seen_kwh + lost) if seen_kwh + lost > 0 else 0.0 for name, value in by.items()}
        told = {LENT[0]: 1 - sum(shares.values())} | shares
        told |= {f"lost_{name}": value / lost if lost > 0 else 0.0 for name, value in by.items()}
        return {name: round(value, 6) for name, value in told.items()}

    def _blind(self) -> list[str]:
        """A warning where nobody could be seen in a region for days on end."""
        first = int((self.recovery.hours["ds"].min() - self.series.first) / HOUR)  # type: ignore[operator]
        names = [*self.model.regions_]
        dark = self.series.reads[first:, :, 1] <= BLIND
        run, longest = np.zeros(len(names), int), np.zeros(len(names), int)
        for hour in dark:
            run = np.where(hour, run + 1, 0)
            longest = np.maximum(longest, run)
        days = longest // 24
        order = [int(i) for i in np.argsort(-longest, kind="stable") if days[i] >= BLIND_DAYS]
        if not order:
            return []
        told = ", ".join(f"{names[i]} for {days[i]} days" for i in order[:MOST])
        more = f", and {len(order) - MOST} more" if len(order) > MOST else ""
        return [
            f"Nobody could be seen for {BLIND_DAYS} days or more on end in {len(order)} "
            f"{'region' if len(order) == 1 else 'regions'} ({told}{more}): what is said of that time is borrowed from "
            "other times and from neighbours."
        ]


def _most_first(table: pl.DataFrame, key: str) -> pl.DataFrame:
    """By lost energy, with the share of the true energy that was lost and its interval."""
    names = ("lost_kwh", "lost_kwh_low", "lost_kwh_high")
    shares = [
        pl.when(pl.col(name) > 0).then(pl.col(name) / (pl.col(name) + pl.col("observed_kwh"))).otherwise(0.0)
        .alias(name.replace("lost_kwh", "lost_share"))
        for name in names
    ]  # fmt: skip
    return table.with_columns(shares).sort("lost_kwh", key, descending=[True, False])


def _told(table: pl.DataFrame, key: str) -> list[dict[str, Any]]:
    energies = pl.col("observed_kwh", "lost_kwh", "lost_kwh_low", "lost_kwh_high").round(3)
    return table.head(MOST).select(key, energies, pl.col("lost_share").round(6)).to_dicts()


def _parts(values: Estimate) -> list[tuple[str, float]]:
    return [("", float(values.mean)), ("_low", float(values.low)), ("_high", float(values.high))]


def _share(lost: float, seen: float) -> float:
    return lost / (lost + seen) if lost > 0 else 0.0


def _totals(name: str, seen: float, lost: Estimate) -> dict[str, float]:
    return {
        f"observed_{name}": round(seen, 3),
        **{f"lost_{name}{end}": round(value, 3) for end, value in _parts(lost)},
        **{f"true_{name}{end}": round(seen + value, 3) for end, value in _parts(lost)},
    }
