"""The study of plans as a page, as Markdown and as a table for the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from unmet import __version__
from unmet.runs import write_json
from unmet.views.figures.planning_share import METHOD_STYLE, PLANNING_PROMISES, PLANNING_SHARE
from unmet.views.page import PageTable, render_page
from unmet.views.terminal import report_grid
from unmet.views.theme import percent

if TYPE_CHECKING:
    from unmet.study.planning import PlanningStudy

__all__ = ["planning_markdown", "print_planning", "write_planning"]


def _rows(study: PlanningStudy) -> tuple[list[str], list[list[str]]]:
    """Headings and rows: the mean share of every method, and the lowest in brackets."""
    methods = [name for name in METHOD_STYLE if name in set(study.table["method"]) and name != "truth"]
    heads = ["electric cars, plugs", *(METHOD_STYLE[name][0] for name in methods), "plan from the truth recovers"]
    rows = []
    table = study.rows()
    for penetration, plugs in table.select("penetration", "plugs").unique(maintain_order=True).sort(
        "penetration", "plugs", descending=[True, False]
    ).iter_rows():  # fmt: skip
        cells = {
            row["method"]: row
            for row in table.filter((pl.col("penetration") == penetration) & (pl.col("plugs") == plugs)).to_dicts()
        }
        best = study.table.filter(
            (pl.col("penetration") == penetration) & (pl.col("plugs") == plugs) & (pl.col("method") == "truth")
        )
        recovered = float((best["realised_kwh"] / best["lost_kwh"]).mean())  # type: ignore[arg-type]
        rows.append(
            [f"{percent(penetration)}, {plugs}"]
            + [f"{cells[name]['share']:.3f} ({cells[name]['least']:.3f})" for name in methods]
            + [percent(recovered)]
        )
    return heads, rows


def _headline(study: PlanningStudy) -> str:
    share = float(study.table.filter(pl.col("method") == "exposure")["share"].to_numpy().mean())
    return f"Plans from records alone achieve {percent(share, 1)} of what plans from the truth achieve"


def planning_markdown(study: PlanningStudy) -> str:
    """The results of the study as Markdown, failures first."""
    table = study.table
    seeds = sorted(table["seed"].unique().to_list())
    heads, rows = _rows(study)
    lines = [
        f"# {_headline(study)}",
        "",
        f"Written by `unmet study planning`. n = {len(seeds)} cities (seeds {', '.join(map(str, seeds))}) x "
        f"{table['penetration'].n_unique()} penetrations, {study.queue}; every plan is simulated again in its city "
        "with the same trips, cars and random numbers. Gain is the decrease in lost energy.",
        "",
        "| measure | found | target | met |",
        "| --- | ---: | ---: | --- |",
        *(
            f"| {what} | {found} | {target} | {'yes' if met else '**no**'} |"
            for what, found, target, met in sorted(study.targets(), key=lambda row: row[-1])
        ),
        "",
        "Gain relative to the plan made from the truth: mean of the cities, and the lowest in brackets.",
        "",
        "| " + " | ".join(heads) + " |",
        "| --- |" + " ---: |" * (len(heads) - 1),
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
        "## Promised and achieved",
        "",
        "Energy recovered in the period [MWh], by the plan from the exposure-aware estimate.",
        "",
        "| city seed, electric cars, plugs | promised | 90 % interval | achieved | inside |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    own = table.filter(pl.col("method") == "exposure").with_columns(
        inside=pl.col("realised_kwh").is_between("promised_kwh_low", "promised_kwh_high")
    )
    for row in own.sort("inside", "seed", "penetration", "plugs").iter_rows(named=True):
        low, mean, high, achieved = (
            row[name] / 1000 for name in ("promised_kwh_low", "promised_kwh", "promised_kwh_high", "realised_kwh")
        )
        lines.append(
            f"| {row['seed']}, {percent(row['penetration'])}, {row['plugs']} | {mean:.1f} | {low:.1f} to {high:.1f} "
            f"| {achieved:.1f} | {'yes' if row['inside'] else '**no**'} |"
        )
    return "\n".join(lines) + "\n"


def write_planning(study: PlanningStudy, folder: Path) -> None:
    """Write the study into a folder: page, tables and summary."""
    heads, rows = _rows(study)
    page = render_page(
        study,
        [PLANNING_SHARE, PLANNING_PROMISES],
        title="unmet: plans in a city where the truth is known",
        headline=_headline(study),
        lead=(
            "In a simulated city, all lost drivers are known. Plans are made from what a planner would know, and each "
            "is simulated again with the same trips."
        ),
        facts=[(found, what.replace("`", "")) for what, found, _, _ in study.targets()],
        table=PageTable(
            heads, rows, "Mean of the cities, and the lowest in brackets.", "Gain relative to the plan from the truth"
        ),
        footer=f"unmet {__version__}.",
    )
    (folder / "study.html").write_text(page, encoding="utf-8")
    (folder / "study.md").write_text(planning_markdown(study), encoding="utf-8")
    study.table.write_parquet(folder / "plans.parquet")
    study.table.write_csv(folder / "plans.csv")
    write_json(folder / "summary.json", _summary(study))


def _summary(study: PlanningStudy) -> dict[str, object]:
    return {
        "promises": [
            {"what": what, "measured": found, "asked": target, "met": met}
            for what, found, target, met in study.targets()
        ],
        "rows": study.rows().to_dicts(),
        "version": __version__,
    }


def print_planning(study: PlanningStudy, out: Path, *, as_json: bool) -> None:
    """Print the study: tables for people, or one line of JSON."""
    if as_json:
        print(json.dumps(_summary(study) | {"out": str(out)}))
        return
    heads, rows = _rows(study)
    report_grid(_headline(study), heads, rows)
    report_grid(
        "Targets",
        ["", "found", "target", "met"],
        [[what.replace("`", ""), found, goal, "yes" if met else "NO"] for what, found, goal, met in study.targets()],
    )
    print(f"Figures and tables: {out / 'study.html'} (open it in a browser)")
