"""Results of a study: means over the runs of each cell, next to the numbers of the paper and of the oracle."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import polars as pl
from scipy import stats

from unmet.evaluation.measures import gap_closed
from unmet.study.cells import NO_BACKBONE, ORACLE, UNAWARE, Run
from unmet.study.experiments import COMPETITION_SCENE
from unmet.study.paper import COMPETITION, MARKET_SHARES, PENETRATIONS, TILTED_LOSS
from unmet.study.store import Store

__all__ = ["SCENE_LABELS", "paper_value", "study_cells"]

SCENE_LABELS = ("queue", "penetration", "share", "removed")


def study_cells(runs: Sequence[Run], store: Store) -> pl.DataFrame:
    """One row per cell: means over scenes, standard deviations, the gap closed, and the paper's numbers.

    A scene (one city, or one operator in it) counts once, however many networks were trained on it: runs are averaged
    within a scene first, and standard deviations and tests are over scenes. `p_value` is from a paired t-test of the
    model's tilted losses against those of the quantile model that ignores censoring, on the same scenes. `judged` says
    whether the gap between that model and the oracle is at least 5 % of the oracle's loss, which is large enough to
    compare models. In the experiment on market shares, gaps are in units of true demand, so that every operator's
    losses have the same weight.
    """
    rows = store.rows(list(runs))
    if rows.is_empty():
        return rows
    labels = [name for name in SCENE_LABELS if name in rows.columns]
    keys = [*labels, "model", "backbone"]
    unit = "tilted_loss_true" if "share" in labels else "tilted_loss"
    first_backbone = next((run.backbone for run in runs if run.backbone != NO_BACKBONE), NO_BACKBONE)
    cells = []
    for group, each_run in rows.group_by(keys, maintain_order=True):
        named = dict(zip(keys, group, strict=True))
        part = _by_scene(each_run)
        scene = {name: named[name] for name in labels}
        # A baseline without a backbone is compared with the models of the first one.
        reference = first_backbone if named["backbone"] == NO_BACKBONE else named["backbone"]
        peers = {
            model: _losses(rows, {**scene, "model": model, "backbone": reference}, unit) for model in (UNAWARE, ORACLE)
        }
        losses = _losses(rows, named, unit)
        # While a study is in progress, models are compared on the scenes that all three have been run on.
        shared = set(losses) & set(peers[UNAWARE]) & set(peers[ORACLE])
        own, unaware, oracle = (_mean(_only(each, shared)) for each in (losses, peers[UNAWARE], peers[ORACLE]))
        cells.append(
            named
            | {
                "runs": each_run.height,
                "scenes": part.height,
                "tilted_loss": part["tilted_loss"].mean(),
                "tilted_loss_std": _std(part["tilted_loss"]),
                "tilted_loss_true": part["tilted_loss_true"].mean(),
                "tilted_loss_true_std": _std(part["tilted_loss_true"]),
                "mil_true": part["mil_true"].mean(),
                "mil_true_std": _std(part["mil_true"]),
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
                "gap_closed": _gap(unaware, own, oracle),
                "judged": None if unaware is None or oracle is None else unaware - oracle >= MIN_GAP * oracle,
                "p_value": _p_value(losses, peers[UNAWARE]) if named["model"] != UNAWARE else None,
                # The paper's numbers for market shares are taken to be in units of true demand.
                "paper_tilted_loss": None if "share" in labels else paper_value("tilted_loss", named),
                "paper_tilted_loss_true": paper_value("tilted_loss", named) if "share" in labels else None,
                "paper_icp": paper_value("icp", named),
                "paper_mil": None if "share" in labels else paper_value("mil", named),
                "paper_mil_true": paper_value("mil", named) if "share" in labels else None,
            }
        )
    return pl.DataFrame(cells, infer_schema_length=None, schema_overrides=MAY_BE_UNKNOWN)


def _lost(part: pl.DataFrame, name: str) -> dict[str, float | None]:
    """Estimated over true lost energy, and the share of intervals that contain the truth, if a model has estimates."""
    if f"{name}_kwh" not in part.columns or part[f"{name}_kwh"].null_count() == part.height:
        return {f"{name}_of_true": None, f"{name}_inside": None}
    lost, true = (float(part[f"{name}_{column}"].sum()) for column in ("kwh", "true"))
    of_true = lost / true if true > 0 else None
    inside = part.select(pl.col(f"{name}_true").is_between(f"{name}_low", f"{name}_high").mean()).item()
    return {f"{name}_of_true": of_true, f"{name}_inside": inside}


# Types of columns that may be all null, which Polars could not infer.
MAY_BE_UNKNOWN = {
    **dict.fromkeys(("lost_of_true", "lost_inside", "lost_all_of_true", "lost_all_inside"), pl.Float64),
    **dict.fromkeys(("tilted_loss_std", "icp_std", "mil_std", "gap_closed", "p_value"), pl.Float64),
    **dict.fromkeys(("tilted_loss_true_std", "mil_true_std"), pl.Float64),
    **dict.fromkeys(
        ("paper_tilted_loss", "paper_tilted_loss_true", "paper_icp", "paper_mil", "paper_mil_true"), pl.Float64
    ),
    "judged": pl.Boolean,
}

MIN_GAP = 0.05  # smallest gap, relative to the oracle's loss, at which models are compared


def training_seconds(runs: Sequence[Run], store: Store) -> dict[tuple[Any, ...], float]:
    """Training time by cell [s], with (scene labels, model, backbone) as key."""
    found: dict[tuple[Any, ...], float] = {}
    for run in runs:
        if store.has(run):
            key = (*run.labels, run.model, run.backbone)
            found[key] = found.get(key, 0.0) + store.seconds(run)
    return found


def paper_value(measure: str, cell: dict[str, Any]) -> float | None:
    """The paper's value of a measure for a cell, or None if it has none."""
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


def _by_scene(rows: pl.DataFrame) -> pl.DataFrame:
    """Means over the runs of each scene."""
    keys = (*SCENE_LABELS, "seed", "city")
    numbers = [name for name, kind in rows.schema.items() if kind.is_numeric() and name not in keys]
    return rows.group_by("scene", maintain_order=True).agg(pl.col(numbers).mean())


def _losses(rows: pl.DataFrame, named: dict[str, Any], unit: str) -> dict[str, float]:
    """Tilted loss by scene of the rows with these labels; `unit` is the column."""
    part = rows.filter(pl.all_horizontal(pl.col(name).eq_missing(value) for name, value in named.items()))
    if part.is_empty():
        return {}
    means = _by_scene(part)
    return dict(zip(means["scene"].to_list(), means[unit].to_list(), strict=True))


def _only(losses: dict[str, float], scenes: set[str]) -> dict[str, float]:
    return {scene: loss for scene, loss in losses.items() if scene in scenes}


def _mean(losses: dict[str, float]) -> float | None:
    return sum(losses.values()) / len(losses) if losses else None


def _std(values: pl.Series) -> float | None:
    return float(values.std()) if len(values) > 1 else None  # type: ignore[arg-type]


def _gap(unaware: float | None, model: float | None, oracle: float | None) -> float | None:
    if unaware is None or model is None or oracle is None or unaware == oracle:
        return None
    return gap_closed(unaware, model, oracle)


def _p_value(losses: dict[str, float], unaware: dict[str, float]) -> float | None:
    """Of a paired t-test over the scenes that both have; None if there are too few or all differences are equal."""
    scenes = sorted(set(losses) & set(unaware))
    if len(scenes) < 2:
        return None
    pairs = [losses[scene] - unaware[scene] for scene in scenes]
    if math.isclose(max(pairs), min(pairs), rel_tol=1e-12):  # no variation except rounding, so no t-test
        return None
    return float(stats.ttest_1samp(pairs, 0.0).pvalue)
