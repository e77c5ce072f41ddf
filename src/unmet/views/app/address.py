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
JOB = re.compile(r"^[0-9a-f]{16}$")
RANGES = {
    "cars": (0.1, 100.0), "growth": (-90.0, 1000.0), "share": (1.0, 100.0), "waiting": (0.0, 100.0),
    "spill": (0.0, 100.0), "add": (1.0, 2000.0), "budget": (1.0, 1e12), "plug_cost": (1.0, 1e9),
    "site_cost": (0.0, 1e9), "most": (1.0, 200.0), "hours": (1.0, 168.0),
}  # fmt: skip
"""Smallest and largest value of each number."""
WORDS = {"tab": TABS, "by": (PLUGS, BUDGET)}
"""Allowed values of each choice."""


@dataclass(frozen=True, slots=True)
class _CityView:
    """The tab, and the question about the city."""

    tab: str = "city"
    cars: float = 5.0
    growth: float = 0.0
    queue: str = "first-come"
    share: float = 100.0
    region: str = "all"
    station: str = ""
    plugs: str = ""
    """Changed stations, as `id:3;id:4`."""

    def question(self) -> Question:
        """The question about the city."""
        return Question(
            penetration=self.cars / 100, growth=self.growth / 100, queue=self.queue, market_share=self.share / 100,
            plugs=tuple(self.changed().items()),
        )  # fmt: skip

    def changed(self) -> dict[str, int]:
        """Stations whose number of plugs was changed."""
        pairs = (pair.rpartition(":") for pair in self.plugs.split(";") if pair)
        return {station: int(number) for station, _, number in pairs}

    @staticmethod
    def of_plugs(changed: dict[str, int]) -> str:
        """Changed stations in the form used by the address."""
        return ";".join(f"{station}:{number}" for station, number in sorted(changed.items()))


@dataclass(frozen=True, slots=True)
class _RecordsView(_CityView):
    """The records, and the assumptions about drivers."""

    run: str = "given"
    zone: str = ""
    waiting: float | None = None
    spill: float | None = None


@dataclass(frozen=True, slots=True)
class _PlanView(_RecordsView):
    """The plan and its limits."""

    plan: str = ""
    by: str = PLUGS
    add: float = 10.0
    budget: float = 150_000.0
    plug_cost: float = 10_000.0
    site_cost: float = 5_000.0
    most: float | None = None

    def plan_request(self) -> dict[str, Any]:
        """The arguments of a plan: a number of plugs, or a budget with costs."""
        most = None if self.most is None else int(self.most)
        if self.by == PLUGS:
            return {"plugs": int(self.add), "max_per_site": most}
        costs = {"plug_cost": self.plug_cost, "site_cost": self.site_cost}
        return {"budget": self.budget, **costs, "max_per_site": most}


@dataclass(frozen=True, slots=True)
class View(_PlanView):
    """The whole view of a visitor, with percentages as typed."""

    forecast: str = ""
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
    if name in RANGES:
        try:
            value = float(text)
        except ValueError:
            return None
        low, high = RANGES[name]
        return value if low <= value <= high else None
    if name in WORDS:
        return text if text in WORDS[name] else None
    if name in ("run", "plan", "forecast"):
        return text if JOB.match(text) or text == "given" else None
    if name == "plugs":
        return text if re.fullmatch(r"([^:;]{1,100}:\d{1,2};?){0,500}", text) else None
    return text if len(text) <= 100 else None
