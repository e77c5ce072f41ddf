"""The view of a visitor as a web address, so that a link shows others the same view."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import parse_qs, urlencode

from unmet.views.app.live_city import Question

__all__ = ["BUDGET", "PLUGS", "TABS", "View"]

TABS = ("city", "records", "plan", "forecast")
PLUGS, BUDGET = "plugs", "budget"
"""The two limits of a plan."""
JOB_ID = re.compile(r"^[0-9a-f]{16}$")
RANGES = {
    "cars": (0.1, 100.0), "growth": (-90.0, 1000.0), "share": (1.0, 100.0), "waiting": (0.0, 100.0),
    "spill": (0.0, 100.0), "add": (1.0, 2000.0), "budget": (1.0, 1e12), "plug_cost": (1.0, 1e9),
    "site_cost": (0.0, 1e9), "most": (1.0, 200.0), "hours": (1.0, 168.0),
}  # fmt: skip
"""Smallest and largest value of each number, in the units of the fields below."""
CHOICES = {"tab": TABS, "by": (PLUGS, BUDGET)}
"""Allowed values of each choice."""


@dataclass(frozen=True, slots=True)
class _CityView:
    """The tab, and the question about the city."""

    tab: str = "city"
    cars: float = 5.0  # electric cars [% of all cars]
    growth: float = 0.0  # growth of their number [%]
    queue: str = "first-come"
    share: float = 100.0  # stations that are the operator's own [%]
    region: str = "all"
    station: str = ""
    plugs: str = ""
    """Stations with a changed number of plugs, as `id:3;id:4`."""

    def question(self) -> Question:
        """The question about the city."""
        return Question(
            penetration=self.cars / 100, growth=self.growth / 100, queue=self.queue, market_share=self.share / 100,
            plugs=tuple(self.changed().items()),
        )  # fmt: skip

    def changed(self) -> dict[str, int]:
        """Stations with a changed number of plugs, and that number."""
        pairs = (pair.rpartition(":") for pair in self.plugs.split(";") if pair)
        return {station: int(plugs) for station, _, plugs in pairs}

    @staticmethod
    def plugs_text(changed: dict[str, int]) -> str:
        """The result of `changed` as text for the field `plugs`."""
        return ";".join(f"{station}:{plugs}" for station, plugs in sorted(changed.items()))


@dataclass(frozen=True, slots=True)
class _RecordsView(_CityView):
    """The records, and the assumptions about drivers."""

    run: str = "given"  # id of a job, or the runs that the app was started with
    zone: str = ""
    waiting: float | None = None  # drivers who wait for a plug [%]; estimated if None
    spill: float | None = None  # of the others, those who charge nearby instead [%]; estimated if None


@dataclass(frozen=True, slots=True)
class _PlanView(_RecordsView):
    """The plan and its limits."""

    plan: str = ""  # id of a job
    by: str = PLUGS
    add: float = 10.0  # plugs to add
    budget: float = 150_000.0
    plug_cost: float = 10_000.0
    site_cost: float = 5_000.0
    most: float | None = None  # plugs per site at most

    def plan_request(self) -> dict[str, Any]:
        """The arguments of a plan: a number of plugs, or a budget with costs."""
        most = None if self.most is None else int(self.most)
        if self.by == PLUGS:
            return {"plugs": int(self.add), "max_per_site": most}
        costs = {"plug_cost": self.plug_cost, "site_cost": self.site_cost}
        return {"budget": self.budget, **costs, "max_per_site": most}


@dataclass(frozen=True, slots=True)
class View(_PlanView):
    """The whole view of a visitor, with percentages as they were typed (5 for 5 %)."""

    forecast: str = ""  # id of a job
    hours: float = 168.0

    @classmethod
    def read(cls, search: str | None) -> View:
        """Read the view from an address; invalid parts are ignored."""
        given = {name: values[-1] for name, values in parse_qs((search or "").lstrip("?")).items()}
        valid = {}
        for part in fields(cls):
            text = given.get(part.name)
            value = None if text is None else _valid(part.name, text)
            if value is not None:
                valid[part.name] = value
        return cls(**valid)  # type: ignore[arg-type]

    def search(self) -> str:
        """The query string of the address; default values are omitted."""
        default = View()
        parts = {p.name: getattr(self, p.name) for p in fields(self)}
        changed = {
            name: f"{value:.12g}" if isinstance(value, float) else value
            for name, value in parts.items()
            if value is not None and (value != getattr(default, name) or name == "tab")
        }
        return "?" + urlencode(changed)


def _valid(name: str, text: str) -> str | float | None:
    """The value of a field of the view; None if the text is not allowed."""
    if name in RANGES:
        try:
            value = float(text)
        except ValueError:
            return None
        low, high = RANGES[name]
        return value if low <= value <= high else None
    if name in CHOICES:
        return text if text in CHOICES[name] else None
    if name in ("run", "plan", "forecast"):
        return text if JOB_ID.match(text) or text == "given" else None
    if name == "plugs":  # pairs as `plugs_text` writes them, with at most 99 plugs each
        return text if re.fullmatch(r"([^:;]{1,100}:\d{1,2};?){0,500}", text) else None
    return text if len(text) <= 100 else None
