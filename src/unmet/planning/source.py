"""Sources of a plan: an estimate, a panel or a run folder, and how its drivers are read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from unmet.demand.panel import Panel
from unmet.demand.stored import PANEL_FOLDER, holds_panel, load_panel
from unmet.errors import InputError
from unmet.estimation.lost_demand import LostDemand
from unmet.planning.drivers import DrawnDemand, demand_of, drawn_demand
from unmet.planning.hidden import DRAWS_FILE, read_hidden

__all__ = ["PlanSource", "read_source"]

KEYS = ("waiting", "spill", "interval", "seed", "notes")  # entries of summary.json that a plan needs


@dataclass(frozen=True, slots=True)
class PlanSource:
    """The drivers to plan for, with the interval and the notes of their estimate."""

    demand: DrawnDemand
    interval: float
    notes: tuple[str, ...]


def read_source(source: Any, *, draws: int = 200, interval: float | None = None, seed: int | None = None) -> PlanSource:
    """The drivers of a fitted `LostDemand`, a `Panel`, or a folder of `unmet recover` or `unmet panel`.

    Args:
        source: one of these. Lost demand is estimated for a panel; other sources already contain an estimate.
        draws: number of posterior draws for a panel.
        interval: probability that intervals contain the truth; by default as in the source.
        seed: seed of the drivers' random numbers; by default as in the source.
    """
    if isinstance(source, LostDemand):
        source._check_fitted()
        return _fitted(source, interval, seed)
    if isinstance(source, Panel):
        lost = LostDemand(draws=draws, interval=interval or 0.9, seed=1 if seed is None else seed)
        return _fitted(lost.fit(source), interval, seed)
    if isinstance(source, str | Path):
        folder = Path(source)
        if not folder.is_dir():
            raise InputError(f"There is no run at {folder}: give a folder that `unmet recover` or `unmet panel` wrote.")
        if (folder / DRAWS_FILE).is_file():
            return _recovered(folder, interval, seed)
        if holds_panel(folder):
            return read_source(load_panel(folder), draws=draws, interval=interval, seed=seed)
        raise InputError(
            f"{folder} holds neither a recovered run nor a panel: give a folder that `unmet recover` or `unmet panel` "
            "wrote, or the session records themselves."
        )
    raise InputError(
        f"A plan cannot be made from a {type(source).__name__}: give a fitted LostDemand, a Panel, or the folder of a "
        "run."
    )


def _fitted(lost: LostDemand, interval: float | None, seed: int | None) -> PlanSource:
    demand = demand_of(lost, lost.seed if seed is None else seed)
    return PlanSource(demand, interval or lost.interval, tuple(lost.notes()))


def _recovered(folder: Path, interval: float | None, seed: int | None) -> PlanSource:
    """The drivers of a recovered run, without estimating them again."""
    panel = load_panel(folder / PANEL_FOLDER)
    path = folder / "summary.json"
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        waiting, spill, own_interval, own_seed, notes = (about[key] for key in KEYS)
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{path} is damaged: run `unmet recover` again with --overwrite.") from None
    chosen = int(own_seed) if seed is None else seed
    demand = drawn_demand(panel, read_hidden(panel, folder), float(waiting), float(spill), chosen)
    return PlanSource(demand, interval or float(own_interval), tuple(map(str, notes)))
