"""Results of a study: runs put together into cells, beside the paper's numbers and the oracle's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl
from scipy import stats

from unmet.evaluation.measures import gap_closed
from unmet.study.cells import ORACLE, UNAWARE, Run
from unmet.study.experiments import COMPETITION_SCENE
from unmet.study.paper import COMPETITION, MARKET_SHARES, PENETRATIONS, TILTED_LOSS
from unmet.study.store import Store

__all__ = ["SCENE_LABELS", "paper_value", "study_cells"]

SCENE_LABELS = ("queue", "penetration", "share", "removed")


def study_cells(runs: Sequence[Run], store: Store) -> pl.DataFrame:
    """One row a cell: means over its runs, standard deviations, how much of the gap it closes, and the paper's loss.

    `p_value` is that of a paired t-test of the model's tilted losses against those of the unaware quantile model with
    the same seeds. `judged` says whether the gap between that and the oracle is at least 5 % of the oracle's loss.
    """
    rows = store.rows(list(runs))
    if rows.is_empty():
        return rows
    labels = [name for name in SCENE_LABELS if name in rows.columns]
    keys = [*labels, "model", "backbone"]
    cells = []
    for group, part in rows.group_by(keys, maintain_order=True):
        named = dict(zip(keys, group, strict=True))
        scene = {name: named[name] for name in labels}
        peers = {
            model: _losses(rows, {**scene, "model": model, "backbone": named["backbone"]})
            for model in (UNAWARE, ORACLE)
        }
        losses = _losses(rows, named)
        unaware, oracle = (_mean(peers[model]) for model in (UNAWARE, ORACLE))
        cells.append(
            named
            | {
                "runs": part.height,
                "tilted_loss": part["tilted_loss"].mean(),
                "tilted_loss_std": _std(part["tilted_loss"]),
                "icp": part["icp"].mean(),
                "icp_std": _std(part["icp"]),
                "mil": part["mil"].mean(),
                "mil_std": _std(part["mil"]),
                "icp_most_censored": part["icp_most_censored"].mean(),
                "bias_percent": part["bias_percent"].mean(),
                "crps": part["crps"].mean(),
                "tilted_loss_kwh": part["tilted_loss_kwh"].mean(),
                **_lost(part, "lost"),
                **_lost(part, "lost_all"),
                "gap_closed": _gap(unaware, _mean(losses), oracle),
                "judged": None if unaware is None or oracle is None else unaware - oracle >= JUDGED_FROM * oracle,
                "p_value": _p_value(losses, peers[UNAWARE]) if named["model"] != UNAWARE else None,
                "paper_tilted_loss": paper_value("tilted_loss", named),
                "paper_icp": paper_value("icp", named),
                "paper_mil": paper_value("mil", named),
            }
        )
    return pl.DataFrame(cells, infer_schema_length=None, schema_overrides=MAY_BE_UNKNOWN)


def _lost(part: pl.DataFrame, name: str) -> dict[str, float | None]:
    """Energy lost over the truth, and the share of runs whose interval holds it, if a model says it."""
    if f"{name}_kwh" not in part.columns or part[f"{name}_kwh"].null_count() == part.height:
        return {f"{name}_of_true": None, f"{name}_inside": None}
    lost, true = (float(part[f"{name}_{column}"].sum()) for column in ("kwh", "true"))
    of_true = lost / true if true > 0 else None
    inside = part.select(pl.col(f"{name}_true").is_between(f"{name}_low", f"{name}_high").mean()).item()
    return {f"{name}_of_true": of_true, f"{name}_inside": inside}


MAY_BE_UNKNOWN = {
    **dict.fromkeys(("lost_of_true", "lost_inside", "lost_all_of_true", "lost_all_inside"), pl.Float64),
    **dict.fromkeys(("tilted_loss_std", "icp_std", "mil_std", "gap_closed", "p_value"), pl.Float64),
    **dict.fromkeys(("paper_tilted_loss", "paper_icp", "paper_mil"), pl.Float64),
    "judged": pl.Boolean,
}

JUDGED_FROM = 0.05  # of the oracle's loss


def seconds_of(runs: Sequence[Run], store: Store) -> dict[tuple[Any, ...], float]:
    """Seconds of training by cell: (scene labels, model, backbone)."""
    found: dict[tuple[Any, ...], float] = {}
    for run in runs:
        if store.has(run):
            key = (*run.labels, run.model, run.backbone)
            found[key] = found.get(key, 0.0) + store.seconds(run)
    return found


def paper_value(measure: str, cell: dict[str, Any]) -> float | None:
    """What the paper publishes for a cell of its own models, or nothing."""
    if cell["backbone"] != "tgcn":
        return None
    if cell.get("share") is not None:
        if (cell["queue"], cell["penetration"]) != COMPETITION_SCENE:
            return None
        row = COMPETITION[measure].get(cell["model"], ())
        return row[MARKET_SHARES.index(cell["share"])][0] if row and cell["share"] in MARKET_SHARES else None
    if measure != "tilted_loss" or cell.get("queue") not in TILTED_LOSS or cell.get("penetration") not in PENETRATIONS:
        return None
    row = TILTED_LOSS[cell["queue"]].get(cell["model"], ())
    return row[PENETRATIONS.index(cell["penetration"])][0] if row else None


def _losses(rows: pl.DataFrame, named: dict[str, Any]) -> dict[int, float]:
    """Tilted loss by seed."""
    part = rows.filter(pl.all_horizontal(pl.col(name).eq_missing(value) for name, value in named.items()))
    return dict(zip(part["seed"].to_list(), part["tilted_loss"].to_list(), strict=True))


def _mean(losses: dict[int, float]) -> float | None:
    return sum(losses.values()) / len(losses) if losses else None


def _std(values: pl.Series) -> float | None:
    return float(values.std()) if len(values) > 1 else None  # type: ignore[arg-type]


def _gap(unaware: float | None, model: float | None, oracle: float | None) -> float | None:
    if unaware is None or model is None or oracle is None or unaware == oracle:
        return None
    return gap_closed(unaware, model, oracle)


def _p_value(losses: dict[int, float], unaware: dict[int, float]) -> float | None:
    seeds = sorted(set(losses) & set(unaware))
    if len(seeds) < 2:
        return None
    pairs = [losses[seed] - unaware[seed] for seed in seeds]
    if math.isclose(max(pairs), min(pairs), rel_tol=1e-12):  # no spread but that of rounding: there is no test
        return None
    return float(stats.ttest_1samp(pairs, 0.0).pvalue)
