"""The paper's findings next to ours, from the committed results: `python -m benchmarks.findings`.

Reads docs/results/total.parquet and competition.parquet, which are the `cells.parquet` of the two studies, and writes
the table of findings into docs/reproducing.md, between two comments.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from unmet.study.cells import PAPER_MODELS
from unmet.study.paper import COMPETITION, MARKET_SHARES, PENETRATIONS, QUEUES, TILTED_LOSS

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "reproducing.md"
BEGIN, END = "<!-- findings -->", "<!-- end of findings -->"
TITLES = dict(zip(PAPER_MODELS, ("Gaussian", "Tobit", "quantile", "censored quantile"), strict=True))


class Table:
    """Our losses of a study, by model and cell; `loss` is the name of the column."""

    def __init__(self, cells: pl.DataFrame, loss: str) -> None:
        self.cells = cells.filter(pl.col("backbone").is_in(["tgcn", "none"]))  # baselines have none
        self.loss = loss

    def ours(self, model: str, **labels: float | str) -> float:
        """Mean loss of a model in the cell with these labels, such as queue; NaN if the cell was not run."""
        found = self.cells.filter(pl.col("model") == model, *(pl.col(k) == v for k, v in labels.items()))
        return float(found[self.loss][0]) if found.height else float("nan")

    def gaps(self, model: str) -> tuple[str, str]:
        """The number of cells with a gap from quantile model to oracle; mean and range of the share that is closed."""
        found = self.cells.filter(pl.col("model") == model)
        closed = found.filter("judged")["gap_closed"].drop_nulls().to_numpy()
        if not len(closed):
            return f"0 of {found.height}", "-"
        mean_and_range = f"{closed.mean():.2f} ({closed.min():.2f} to {closed.max():.2f})"
        return f"{len(closed)} of {found.height}", mean_and_range


COMPARED = {
    "exposure": "Exposure-aware",
    "censored-quantile": "Censored quantile",
    "cqrnn": "CQRNN",
    "seen-over-exposed": "Seen over exposed (a table)",
    "poisson": "Poisson with exposure (a table)",
    "identity-graph": "Quantile without a graph",
}


def _gap_rows(table: Table, where: str) -> list[tuple[str, str, str]]:
    """The gap between the quantile model and the oracle that each model closes."""
    rows = []
    for model, title in COMPARED.items():
        cells, closed = table.gaps(model)
        if closed != "-":
            rows.append((f"{title}: gap closed, {where} ({cells} cells with a gap)", "-", closed))
    return rows


def paper(model: str, queue: str, penetration: float) -> float:
    """The paper's loss in its Table 3."""
    return TILTED_LOSS[queue][model][PENETRATIONS.index(penetration)][0]


def gain(better: float, worse: float) -> str:
    """The relative difference of two losses, such as -14 %."""
    return f"{100 * (better / worse - 1):+.0f} %" if np.isfinite(better + worse) else "-"


def listed(pairs: list[tuple[float, float]]) -> str:
    """Relative differences, separated by commas."""
    return ", ".join(gain(*pair) for pair in pairs)


def main() -> None:
    """Write the table."""
    total = Table(pl.read_parquet(DOCS / "results" / "total.parquet"), "tilted_loss")
    market = Table(pl.read_parquet(DOCS / "results" / "competition.parquet"), "tilted_loss_true")
    rows = [
        *_total_rows(total),
        *_gap_rows(total, "whole city"),
        *_market_rows(market),
        *_gap_rows(market, "one operator"),
    ]
    lines = ["| finding | the paper | here |", "| --- | --- | --- |", *(f"| {' | '.join(row)} |" for row in rows)]
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(before + BEGIN + "\n" + "\n".join(lines) + "\n" + END + after, encoding="utf-8")


def _total_rows(total: Table) -> list[tuple[str, str, str]]:
    """Findings on Table 3: title, the paper's numbers, and ours."""

    def gains(queue: str, aware: str, unaware: str) -> tuple[str, str]:
        cells = [(queue, p) for p in PENETRATIONS]
        theirs = listed([(paper(aware, *c), paper(unaware, *c)) for c in cells])
        here = [
            (total.ours(aware, queue=q, penetration=p), total.ours(unaware, queue=q, penetration=p)) for q, p in cells
        ]
        return theirs, listed(here)

    rows = []
    for queue in QUEUES:
        for aware, unaware in (("censored-quantile", "quantile"), ("tobit", "gaussian")):
            title = f"{TITLES[aware].capitalize()} against {TITLES[unaware]}, {queue}, 1 to 5 %"
            rows.append((title, *gains(queue, aware, unaware)))
    quantile = [(paper("quantile", q, p), paper("gaussian", q, p)) for q in QUEUES for p in PENETRATIONS]
    here = [
        tuple(total.ours(m, queue=q, penetration=p) for m in ("quantile", "gaussian"))
        for q in QUEUES
        for p in PENETRATIONS
    ]
    rows.append(("Quantile against Gaussian, mean of 15 cells", _mean_gain(quantile), _mean_gain(here)))
    at = {"queue": "first-come", "penetration": 0.05}
    rows += [
        (
            f"{TITLES[model].capitalize()} at first-come 5 %",
            f"{paper(model, 'first-come', 0.05):.3f}",
            f"{total.ours(model, **at):.3f}",
        )
        for model in PAPER_MODELS
    ]
    differences = [
        total.ours(m, queue=q, penetration=p) / paper(m, q, p) - 1
        for m in PAPER_MODELS
        for q in QUEUES
        for p in PENETRATIONS
    ]
    known = np.array([value for value in differences if np.isfinite(value)])
    rows.append(
        ("Mean absolute difference from Table 3", "-", f"{100 * np.abs(known).mean():.1f} % of {len(known)} cells")
    )
    return rows


def _mean_gain(pairs: list[tuple[float, ...]]) -> str:
    ratios = np.array([a / b - 1 for a, b in pairs])
    return f"{100 * np.nanmean(ratios):+.0f} %"


def _market_rows(market: Table) -> list[tuple[str, str, str]]:
    """Findings on Table 4: title, the paper's numbers, and ours."""

    def theirs(model: str) -> list[float]:
        return [COMPETITION["tilted_loss"][model][i][0] for i in range(len(MARKET_SHARES))]

    def here(model: str) -> list[float]:
        return [market.ours(model, share=share) for share in MARKET_SHARES]

    rows = [
        (
            f"{TITLES[model].capitalize()}, market share of 10 to 95 %",
            ", ".join(f"{v:.2f}" for v in theirs(model)),
            ", ".join(f"{v:.2f}" for v in here(model)),
        )
        for model in PAPER_MODELS
    ]
    for aware, unaware in (("censored-quantile", "quantile"), ("tobit", "gaussian")):
        title = f"{TITLES[aware].capitalize()} against {TITLES[unaware]}, the same shares"
        pairs = [list(zip(f(aware), f(unaware), strict=True)) for f in (theirs, here)]
        rows.append((title, listed(pairs[0]), listed(pairs[1])))
    ratios = [h / t - 1 for m in ("gaussian", "quantile") for h, t in zip(here(m), theirs(m), strict=True)]
    rows.append(("Mean absolute difference, Gaussian and quantile", "-", f"{100 * np.nanmean(np.abs(ratios)):.0f} %"))
    return rows


if __name__ == "__main__":
    main()
