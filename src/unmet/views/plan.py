"""A plan as a page, as a folder of tables and as a table for the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from unmet import __version__
from unmet.runs import write_json
from unmet.views.figures import PLAN_FIGURES
from unmet.views.figures.plan_map import PLAN_MAP, plan_has_positions
from unmet.views.page import render_page
from unmet.views.plan_text import headline, lead, plan_facts, plan_sections, planned_site_rows, site_heads
from unmet.views.table_files import write_table_files
from unmet.views.terminal import print_summary, report_grid, say

if TYPE_CHECKING:
    from unmet.planning.plan import Plan

__all__ = ["plan_page", "plan_summary", "print_plan", "write_plan"]

MAX_PRINTED = 20  # sites in the table of the terminal


def write_plan(plan: Plan, folder: Path, formats: frozenset[str] | None = None) -> dict[str, Any]:
    """Write a plan into an existing folder: tables, page and summary, which is returned.

    Tables are written as Parquet and in `formats`, by default CSV and Excel: plans are read by people.
    """
    for name, table in (
        ("plan", plan.tables.sites), ("gain", plan.tables.curve), ("sensitivity", plan.tables.sensitivity),
    ):  # fmt: skip
        table.write_parquet(folder / f"{name}.parquet")
    write_table_files(folder, formats or frozenset({"csv", "xlsx"}))
    summary = plan_summary(plan)
    write_json(folder / "summary.json", summary)
    (folder / "plan.html").write_text(plan_page(plan), encoding="utf-8")
    return summary


def plan_summary(plan: Plan) -> dict[str, Any]:
    """The summary of a plan, as written to JSON."""
    share, gain, served = plan.recovered_share(), plan.gain(), plan.served_share()
    chosen = plan.tables.sites.filter(pl.col("plugs_added") > 0)
    ends = ("mean", "low", "high")
    return {
        "answer": headline(plan),
        "plugs": plan.plugs,
        "sites": plan.sites,
        "gain_kwh_per_week": {end: round(value, 3) for end, value in zip(ends, gain, strict=True)},
        "recovered_share": {end: round(value, 5) for end, value in zip(ends, share, strict=True)},
        "lost_kwh_per_week": round(float(plan.energy.lost_draws.mean()), 3),
        "served_share": round(served[0], 5),
        "served_share_after": round(served[1], 5),
        "reached": plan.decision.reached,
        "cost": plan.cost,
        "knee": plan.knee,
        "interplay": round(plan.energy.interplay, 4),
        "method": plan.decision.choice.method,
        "greedy_gain_kwh": round(plan.decision.choice.greedy_gain, 3),
        "exact_gain_kwh": round(plan.decision.choice.gain, 3),
        "gap": plan.decision.choice.gap if np.isfinite(plan.decision.choice.gap) else None,
        "chosen": chosen.select("site_id", "name", "plugs_now", "plugs_added", "power_kw", "gain_kwh").to_dicts(),
        "stages": [
            {"year": stage.year, "plugs": stage.plugs, "gain_kwh": round(stage.gain_kwh, 3), "cost": stage.cost}
            for stage in plan.stages
        ],
        "interval": plan.interval,
        "draws": plan.draws,
        "seed": plan.seed,
        "notes": list(plan.notes),
        "version": __version__,
    }


def plan_page(plan: Plan) -> str:
    """The plan as a self-contained HTML page."""
    left_out = set() if plan_has_positions(plan) else {PLAN_MAP.name}
    return render_page(
        plan,
        [figure for figure in PLAN_FIGURES if figure.name not in left_out],
        title="unmet: where to add plugs",
        headline=headline(plan),
        lead=lead(plan),
        facts=plan_facts(plan),
        footer=f"unmet {__version__}, seed {plan.seed}, {plan.draws} draws.",
        after=plan_sections(plan),
    )


def print_plan(plan: Plan, summary: dict[str, Any], out: Path, *, as_json: bool) -> None:
    """Print a plan: the answer and a table for people, or one line of JSON."""
    if as_json:
        print_summary("", summary | {"out": str(out)}, as_json=True)
        return
    rows = [[" ".join(cell) if isinstance(cell, tuple) else cell for cell in row] for row in planned_site_rows(plan)]
    report_grid(headline(plan), site_heads(plan), rows[:MAX_PRINTED])
    if plan.sites > MAX_PRINTED:
        say(f"{plan.sites - MAX_PRINTED} further sites are in plan.csv.")
    if len(plan.stages) > 1:
        report_grid(
            "Year by year",
            ["year", "demand, times now", "plugs built so far", "recovered per week, kWh"],
            [[str(s.year), f"{s.growth:.2f}", str(s.plugs), f"{s.gain_kwh:,.0f}"] for s in plan.stages],
        )
    print_summary(
        "",
        {
            "demand served": f"{100 * summary['served_share']:.1f} % with today's plugs, "
            f"{100 * summary['served_share_after']:.1f} % with the plan",
            "knee of the curve": "none" if plan.knee is None else f"{plan.knee} plugs",
            "cost": "not given" if plan.cost is None else f"{plan.cost:,.0f}",
        },
        as_json=False,
    )
    for note in plan.notes:
        say(note)
    print(f"Plan, tables and map: {out / 'plan.html'} (open it in a browser)")
