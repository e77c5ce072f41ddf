"""The view as an address: whoever opens a link sees what its sender saw."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from urllib.parse import parse_qs, urlencode

from unmet.views.app.live_city import Question

__all__ = ["TABS", "View"]

TABS = ("city", "records", "plan", "forecast")
JOB = re.compile(r"^[0-9a-f]{16}$")


@dataclass(frozen=True, slots=True)
class View:
    """What a visitor looks at; percentages as they are typed."""

    tab: str = "city"
    cars: float = 5.0
    growth: float = 0.0
    queue: str = "first-come"
    share: float = 100.0
    region: str = "all"
    plugs: str = ""
    """Changed stations, as `id:3;id:4`."""
    run: str = "given"
    plan: str = ""
    forecast: str = ""

    @classmethod
    def read(cls, search: str | None) -> View:
        """The view of an address; what makes no sense in it is left out."""
        given = {name: values[-1] for name, values in parse_qs((search or "").lstrip("?")).items()}
        made = {}
        for part in fields(cls):
            text = given.get(part.name)
            value = None if text is None else _valid(part.name, text)
            if value is not None:
                made[part.name] = value
        return cls(**made)  # type: ignore[arg-type]

    def search(self) -> str:
        """The address; what is as usual is left out."""
        usual = View()
        parts = {p.name: getattr(self, p.name) for p in fields(self)}
        changed = {
            name: f"{value:g}" if isinstance(value, float) else value
            for name, value in parts.items()
            if value != getattr(usual, name) or name == "tab"
        }
        return "?" + urlencode(changed)

    def question(self) -> Question:
        """What the city is asked."""
        return Question(
            penetration=self.cars / 100, growth=self.growth / 100, queue=self.queue, market_share=self.share / 100,
            plugs=tuple(self.changed().items()),
        )  # fmt: skip

    def changed(self) -> dict[str, int]:
        """Stations with another number of plugs."""
        pairs = (pair.rpartition(":") for pair in self.plugs.split(";") if pair)
        return {station: int(number) for station, _, number in pairs}

    @staticmethod
    def of_plugs(changed: dict[str, int]) -> str:
        """Changed stations as they stand in the address."""
        return ";".join(f"{station}:{number}" for station, number in sorted(changed.items()))


def _valid(name: str, text: str) -> str | float | None:
    if name in ("cars", "growth", "share"):
        try:
            value = float(text)
        except ValueError:
            return None
        low, high = {"cars": (0.1, 100.0), "growth": (-90.0, 1000.0), "share": (1.0, 100.0)}[name]
        return value if low <= value <= high else None
    if name == "tab":
        return text if text in TABS else None
    if name in ("run", "plan", "forecast"):
        return text if JOB.match(text) or text == "given" else None
    if name == "plugs":
        return text if re.fullmatch(r"([^:;]{1,100}:\d{1,2};?){0,500}", text) else None
    return text if len(text) <= 100 else None
