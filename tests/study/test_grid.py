"""Runs are identified by what determines them, stored completely or not at all, and averaged to cells."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from loky.process_executor import BrokenProcessPool
from scipy import stats

from tests.study.grids import (
    DRAWS,
    MODELS,
    MONDAY,
    cities_of,
    digests,
    fake_result,
    perform_grid,
    small_grid,
    small_scene,
)
from unmet.errors import InputError
from unmet.models.likelihoods import LIKELIHOODS
from unmet.models.likelihoods.quantile import Quantile
from unmet.study import execute as executing
from unmet.study.cells import MEASURES, PAPER_MODELS, lost_energy, perform, plan_runs
from unmet.study.execute import execute
from unmet.study.paper import MARKET_SHARES, PENETRATIONS, QUEUES
from unmet.study.results import paper_value, study_cells
from unmet.study.scenes import Scene
from unmet.study.store import Store

SCENE = small_scene()


def key_of(scene: Scene = SCENE, model="quantile", backbone="linear", seed=1, epochs=2, **options) -> str:
    return plan_runs([scene], [model], [backbone], 1, seed, epochs, **options)[0].key


def changed(column: str, value, scene: Scene = SCENE) -> Scene:
    """The scene with another value in the first row of a column of its panel."""
    row = pl.int_range(pl.len()) == 0
    return replace(scene, panel=scene.panel.with_columns(pl.when(row).then(value).otherwise(column).alias(column)))


class Imputing(Quantile):
    name = "imputing"
    title = "Quantile that learns from draws"
    imputes = True


class Failing(Quantile):
    name = "failing"
    title = "Quantile that fails"

    def loss(self, outputs, seen):
        raise ArithmeticError("no loss today")


VARIATIONS = {
    "model": {"model": "tobit"},
    "backbone": {"backbone": "seasonal"},
    "seed": {"seed": 2},
    "training": {"epochs": 3},
    "what is kept": {"keep_hours": True},
    "observed demand": {"scene": changed("y", 0.125)},
    "true demand": {"scene": changed("y_true", 99.0)},
    "censored hours": {"scene": changed("censored", pl.lit(not SCENE.panel["censored"][0]))},
    "names of regions": {"scene": changed("unique_id", pl.lit("r9"))},
    "positions": {"scene": replace(SCENE, positions=SCENE.positions.with_columns(lat=pl.lit(50.0)))},
    "time zone": {"scene": replace(SCENE, time_zone="Europe/Copenhagen")},
    "labels": {"scene": replace(SCENE, labels={"queue": "first-come", "penetration": 0.04})},
}


def test_the_key_of_a_run_depends_on_everything_that_determines_it():
    keys = [key_of(), *(key_of(**options) for options in VARIATIONS.values())]
    assert len(set(keys)) == len(keys)
    assert key_of() == keys[0]


def test_the_key_of_a_run_does_not_depend_on_data_it_does_not_read(own_registries):
    LIKELIHOODS.register(Imputing)
    other_draws = SCENE.panel["lost_draws"].to_numpy() + np.float32(1)
    drawn = SCENE.panel.with_columns(pl.Series("lost_draws", other_draws, dtype=pl.Array(pl.Float32, DRAWS)))
    for scene in (changed("lost_kwh_before", 0.25), replace(SCENE, panel=drawn)):
        assert key_of(scene) == key_of()
        assert key_of(scene, "oracle") == key_of(model="oracle")
        assert key_of(scene, "imputing") != key_of(model="imputing")
        assert key_of(scene, "exposure") != key_of(model="exposure")
    for model in ("quantile", "imputing", "oracle"):
        assert key_of(changed("arrivals", 7), model) == key_of(model=model)
    alone = [run.key for run in plan_runs([SCENE], MODELS, ["linear"], 2, 1)]
    for other in (small_scene("three-hour", 5), small_scene("three-hour", 6)):
        together = plan_runs([other, SCENE], MODELS, ["linear"], 2, 1)
        assert [run.key for run in together if run.labels == tuple(SCENE.labels.items())] == alone


def test_another_source_code_of_the_same_name_gives_another_run(own_registries):
    def key(part: type[Quantile]) -> str:
        LIKELIHOODS.register(part)
        return key_of(model="mine")

    class One(Quantile):
        name = "mine"

    class Other(Quantile):
        name = "mine"
        aware = True

    class Child(Other):
        name = "mine"

    assert len({key(One), key(Other), key(Child)}) == 3
    assert key(One) == key(One)
    assert {run.outside for run in small_grid()[1]} == {""}


def test_planned_runs_cover_the_grid_with_every_cell_early():
    scenes = [small_scene("first-come", 1), small_scene("gas-station", 2)]
    backbones = ("linear", "seasonal")
    runs = plan_runs(scenes, MODELS, backbones, 3, 7)
    cells = list(itertools.product((scene.labels["queue"] for scene in scenes), backbones, MODELS))
    found = [(dict(run.labels)["queue"], run.backbone, run.model, run.seed) for run in runs]
    assert sorted(found) == sorted((*cell, seed) for cell in cells for seed in (7, 8, 9))
    assert len({run.key for run in runs}) == len(runs)
    assert {cell[:3] for cell in found[: len(cells)]} == set(cells)
    assert plan_runs([*scenes, *scenes], [*MODELS, *MODELS], [*backbones, "linear"], 3, 7) == runs
    with pytest.raises(InputError, match="no likelihood named 'oracel'"):
        plan_runs(scenes, ["oracel"], backbones, 1, 1)
    with pytest.raises(InputError, match="at least one model"):
        plan_runs(scenes, MODELS, [], 1, 1)


def test_a_scene_of_one_run_is_used_in_no_other():
    first, second, third = (replace(small_scene("gas-station", 4 + run), run=run) for run in range(3))
    runs = plan_runs([SCENE, first, second, third], ["quantile"], ["linear"], 2, 5)
    expected = [(SCENE, 5), (first, 5), (SCENE, 6), (second, 6)]
    assert [(run.scene, run.seed) for run in runs] == [(scene.fingerprint(), seed) for scene, seed in expected]


def test_a_model_that_imputes_reports_lost_energy_in_the_test_part():
    reporting = replace(SCENE, reports_all_hours=True)
    unaware, aware, more = (
        perform(run, scene).row
        for scene, model in ((SCENE, "quantile"), (SCENE, "exposure"), (reporting, "exposure"))
        for run in plan_runs([scene], [model], ["seasonal"], 1, 1, 1)
    )
    assert not any(name.startswith("lost") for name in unaware)
    part = SCENE.panel.filter(pl.col("ds") >= MONDAY + dt.timedelta(hours=360))
    assert aware["lost_true"] == pytest.approx((part["y_true"] - part["y"]).sum())
    assert aware["lost_kwh"] == pytest.approx(part["lost_draws"].to_numpy().sum() / DRAWS, rel=1e-5)
    assert 0 < aware["lost_low"] < aware["lost_kwh"] < aware["lost_high"]
    assert set(MEASURES) <= set(unaware)
    assert not any(name.startswith("lost_all") for name in aware)
    assert more["lost_all_true"] == pytest.approx((SCENE.panel["y_true"] - SCENE.panel["y"]).sum())
    assert more["lost_all_low"] > more["lost_low"] == aware["lost_low"]


def test_intervals_of_sums_come_from_sums_of_joint_draws():
    """Errors that all hours of a draw share do not average out; independent errors do."""
    rng = np.random.default_rng(3)
    truth = pl.DataFrame({"y": 0.0, "y_true": np.full(400, 10.0)})
    shared = 10 * np.exp(0.2 * rng.standard_normal((1, 32)) + np.zeros((400, 1)))
    single = 10 * np.exp(0.2 * rng.standard_normal((400, 32)))
    width = {}
    for name, draws in (("shared", shared), ("single", single)):
        energy = lost_energy(truth.with_columns(lost_kwh_before=0.0, lost_draws=pl.Series(draws)))
        assert energy["true"] == 4000
        assert energy["kwh"] == pytest.approx(draws.sum(axis=0).mean(), rel=1e-5)
        width[name] = energy["high"] - energy["low"]
    assert width["shared"] > 10 * width["single"]


def test_intervals_of_few_draws_have_their_nominal_coverage():
    rng = np.random.default_rng(5)
    inside = []
    for _ in range(800):
        draws, true = np.exp(rng.standard_normal((1, 32))), float(np.exp(rng.standard_normal()))
        panel = pl.DataFrame({"y": [0.0], "y_true": [true], "lost_kwh_before": [0.0]})
        energy = lost_energy(panel.with_columns(lost_draws=pl.Series(draws)))
        inside.append(energy["low"] <= energy["true"] <= energy["high"])
    assert np.mean(inside) == pytest.approx(0.9, abs=0.03)


def test_cells_compare_lost_energy_with_the_truth(tmp_path):
    runs = plan_runs(cities_of("first-come", 4), ["quantile", "exposure"], ["linear"], 4, 1)
    store = Store(tmp_path)
    for run in runs:
        lost = {"lost_kwh": 90.0 + run.seed, "lost_low": 80.0, "lost_high": 95.0 + 4 * run.seed, "lost_true": 105.0}
        store.write(run, fake_result(run, **(lost if run.model == "exposure" else {})))
    unaware, aware = study_cells(runs, store).rows(named=True)
    assert (unaware["lost_of_true"], unaware["lost_inside"]) == (None, None)
    assert aware["lost_of_true"] == pytest.approx(92.5 / 105)
    assert aware["lost_inside"] == 0.5


def test_without_a_true_loss_there_is_no_ratio(tmp_path):
    (run,) = plan_runs([SCENE], ["exposure"], ["linear"], 1, 1)
    Store(tmp_path).write(run, fake_result(run, lost_kwh=3.0, lost_low=0.0, lost_high=5.0, lost_true=0.0))
    (cell,) = study_cells([run], Store(tmp_path)).rows(named=True)
    assert (cell["lost_of_true"], cell["lost_inside"]) == (None, 1.0)


def test_a_result_is_stored_completely_or_not_at_all(tmp_path, monkeypatch):
    run, other = plan_runs([SCENE], ["quantile"], ["linear"], 2, 1)
    store = Store(tmp_path / "study")
    store.write(other, fake_result(other))

    def half(self, path):
        path.write_bytes(b"PAR1 and then the power went")
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(pl.DataFrame, "write_parquet", half)
        with pytest.raises(OSError, match="no space"):
            store.write(run, fake_result(run))
    assert not store.has(run)
    assert [file.name for file in (tmp_path / "study" / "runs").iterdir()] == [f"{other.key}.parquet"]
    store.write(run, fake_result(run, 3.0))
    assert store.rows([run, other])["tilted_loss"].to_list() == [3.0, 1.0]
    assert store.seconds(run) == 2.0


def test_a_store_does_not_touch_files_that_no_study_wrote(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.md").write_text("years of work")
    (tmp_path / "file").touch()
    for overwrite in (False, True):
        with pytest.raises(InputError, match="contains files that are not part of a study"):
            Store(tmp_path / "mine", overwrite=overwrite)
        with pytest.raises(InputError, match="is a file"):
            Store(tmp_path / "file", overwrite=overwrite)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.md"]
    Store(tmp_path / "none", read_only=True)
    assert not (tmp_path / "none").exists()


def test_overwriting_removes_results_and_nothing_else(tmp_path):
    (run,) = plan_runs([SCENE], ["quantile"], ["linear"], 1, 1)
    Store(tmp_path).write(run, fake_result(run))
    (tmp_path / "notes.md").write_text("mine")
    assert Store(tmp_path).has(run)
    assert not Store(tmp_path, overwrite=True).has(run)
    assert (tmp_path / "notes.md").read_text() == "mine"


def test_a_damaged_result_is_refused(tmp_path):
    (run,) = plan_runs([SCENE], ["quantile"], ["linear"], 1, 1)
    store = Store(tmp_path)
    store.write(run, fake_result(run))
    (tmp_path / "runs" / f"{run.key}.parquet").write_bytes(b"nothing")
    with pytest.raises(InputError, match="damaged"):
        store.rows([run])


def test_cells_agree_with_a_calculation_by_hand(tmp_path):
    models = ("quantile", "censored-quantile", "oracle")
    runs = plan_runs([*cities_of("first-come"), *cities_of("gas-station")], models, ["linear"], 6, 1)
    rng = np.random.default_rng(0)
    level = {"quantile": 2.0, "censored-quantile": 1.5, "oracle": 1.0}
    losses = {run.key: level[run.model] + rng.normal(0, 0.1) for run in runs}
    store = Store(tmp_path)
    for run in runs:
        store.write(run, fake_result(run, losses[run.key], icp=0.1 * run.seed, mil=float(run.seed), bias_percent=-3.5))
    cells = study_cells(runs, store)
    assert cells.height == 6
    for cell in cells.iter_rows(named=True):
        queue = cell["queue"]
        # A city counts once, with the mean of its two runs.
        by_model = {
            model: [
                np.mean([losses[run.key] for run in runs if (run.model, run.city) == (model, city)
                         and dict(run.labels)["queue"] == queue])
                for city in range(3)
            ]
            for model in models
        }  # fmt: skip
        own, unaware, oracle = by_model[cell["model"]], by_model["quantile"], by_model["oracle"]
        assert (cell["runs"], cell["scenes"]) == (6, 3)
        assert cell["tilted_loss"] == pytest.approx(np.mean(own))
        assert cell["tilted_loss_std"] == pytest.approx(np.std(own, ddof=1))
        assert cell["icp"] == pytest.approx(0.35)
        assert cell["icp_std"] == pytest.approx(np.std([0.25, 0.35, 0.45], ddof=1))
        assert cell["mil"] == pytest.approx(3.5)
        assert cell["bias_percent"] == pytest.approx(-3.5)
        gap = (np.mean(unaware) - np.mean(own)) / (np.mean(unaware) - np.mean(oracle))
        assert cell["gap_closed"] == pytest.approx(gap)
        if cell["model"] == "quantile":
            assert cell["p_value"] is None
        else:
            assert cell["p_value"] == pytest.approx(stats.ttest_rel(own, unaware).pvalue)
        assert cell["judged"]


@pytest.mark.parametrize(("gap", "judged"), [(0.0499, False), (0.0501, True), (-0.2, False)])
def test_a_gap_counts_from_5_percent_of_the_oracles_loss(tmp_path, gap, judged):
    runs = plan_runs([SCENE], ["quantile", "oracle"], ["linear"], 1, 1)
    store = Store(tmp_path)
    for run in runs:
        store.write(run, fake_result(run, 2.0 if run.model == "oracle" else 2.0 * (1 + gap)))
    assert study_cells(runs, store)["judged"].to_list() == [judged, judged]


def test_measures_that_cannot_be_computed_are_null(tmp_path):
    runs = plan_runs([SCENE], ["quantile", "censored-quantile", "oracle"], ["linear"], 2, 1)
    store = Store(tmp_path)
    store.write(runs[1], fake_result(runs[1], 1.0))
    (alone,) = study_cells(runs, store).rows(named=True)
    assert alone["runs"] == 1
    assert all(alone[name] is None for name in ("tilted_loss_std", "gap_closed", "judged", "p_value"))
    for run in runs:
        store.write(run, fake_result(run, 1.0))
    same = study_cells(runs, store)
    assert same["gap_closed"].null_count() == same["p_value"].null_count() == 3
    assert study_cells([], store).is_empty()


def test_the_papers_numbers_are_the_published_ones(shared_data):
    published = json.loads((shared_data.parent / "paper" / "tables.json").read_text())
    cell = {"backbone": "tgcn"}
    for queue, model, (i, penetration) in itertools.product(QUEUES, PAPER_MODELS, enumerate(PENETRATIONS)):
        here = cell | {"queue": queue, "penetration": penetration, "model": model}
        assert paper_value("tilted_loss", here) == published["tilted_loss_total"][queue][model][i][0]
    names = {"tilted_loss": "TL", "icp": "ICP", "mil": "MIL"}
    for measure, model, (i, share) in itertools.product(names, PAPER_MODELS, enumerate(MARKET_SHARES)):
        here = cell | {"queue": "gas-station", "penetration": 0.05, "share": share, "model": model}
        assert paper_value(measure, here) == published["competing_services"][names[measure]][model][i][0]


def test_other_cells_have_no_number_of_the_paper():
    known = {"backbone": "tgcn", "queue": "first-come", "penetration": 0.05, "model": "tobit"}
    assert paper_value("tilted_loss", known) is not None
    assert paper_value("icp", known) is None
    for other in ({"backbone": "mlp"}, {"queue": "reservation"}, {"penetration": 0.06}, {"model": "oracle"},
                  {"share": 0.3}, {"share": 0.5}):  # fmt: skip
        assert paper_value("tilted_loss", known | other) is None


def test_a_run_that_fails_is_listed_and_the_study_continues(own_registries, tmp_path):
    LIKELIHOODS.register(Failing)
    scenes = [SCENE]
    runs = plan_runs(scenes, ["failing", "quantile"], ["linear"], 2, 1, 2)
    store = Store(tmp_path)
    progress = execute(runs, scenes, store, workers=1)
    assert progress.failed == {run: "ArithmeticError: no loss today" for run in runs if run.model == "failing"}
    assert (progress.done, progress.left, progress.kept) == (2, 0, 0)
    assert study_cells(runs, store)["model"].to_list() == ["quantile"]
    again = execute(runs, scenes, store, workers=1)
    assert (again.kept, again.done, len(again.failed)) == (2, 0, 2)


class Fragile(ThreadPoolExecutor):
    """Threads instead of processes; all of them are lost when one performs a run that would kill its process."""

    def __init__(self, workers: int, **_) -> None:
        super().__init__(workers)
        self.lost = threading.Event()

    def submit(self, function, run, path):
        return super().submit(self.perform, function, run, path)

    def perform(self, function, run, path):
        if run.model == "tobit":
            self.lost.set()
        if self.lost.wait(0.02):
            raise BrokenProcessPool
        return function(run, path)

    def shutdown(self, wait=True, *, kill_workers=False):
        super().shutdown(wait=wait)


def test_a_run_that_kills_its_worker_takes_no_other_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr("loky.ProcessPoolExecutor", Fragile)
    scenes, runs = small_grid(runs=1)
    progress = execute(runs, scenes, Store(tmp_path), workers=3)
    assert {run.model for run in progress.failed} == {"tobit"}
    assert set(progress.failed.values()) == {"its worker was lost 3 times"}
    assert progress.done == len(runs) - 2


def test_a_stopped_study_is_resumed(tmp_path, monkeypatch):
    performed = []
    monkeypatch.setattr(
        executing, "perform", lambda run, scene, real=executing.perform: performed.append(run) or real(run, scene)
    )

    def stop(progress):
        if progress.done == 3:
            raise KeyboardInterrupt

    perform_grid(tmp_path / "whole", workers=1)
    everything = list(performed)
    with pytest.raises(KeyboardInterrupt):
        perform_grid(tmp_path / "study", workers=1, on_progress=stop)
    kept = {file.stem for file in (tmp_path / "study" / "runs").iterdir()}
    assert kept == {run.key for run in everything[:3]}
    performed.clear()
    progress = perform_grid(tmp_path / "study", workers=1)
    assert performed == everything[3:]
    assert (progress.kept, progress.done, progress.left) == (3, len(everything) - 3, 0)
    assert digests(tmp_path / "study") == digests(tmp_path / "whole")


def test_an_interrupted_training_is_not_stored(own_registries, tmp_path):
    """Ctrl-C ends a fit early with the best weights so far; a study must not store their scores."""

    class Interrupted(Quantile):
        name = "interrupted"
        times = itertools.count()

        def loss(self, outputs, seen):
            if next(self.times) == 0:
                signal.raise_signal(signal.SIGINT)
            return super().loss(outputs, seen)

    LIKELIHOODS.register(Interrupted)
    runs = plan_runs([SCENE], ["quantile", "interrupted"], ["linear"], 1, 1, 4)
    store = Store(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        execute(runs, [SCENE], store, workers=1)
    assert [store.has(run) for run in runs] == [True, False]


def test_runs_alternate_between_cities_and_a_baseline_runs_once_per_scene():
    scenes = cities_of("first-come")
    runs = plan_runs(scenes, ["quantile", "seen-over-exposed", "identity-graph"], ["linear", "tgcn"], 6, 1)
    quantile = [run for run in runs if (run.model, run.backbone) == ("quantile", "linear")]
    assert [(run.city, run.seed) for run in quantile] == [(number % 3, 1 + number) for number in range(6)]
    assert len([run for run in runs if run.model == "quantile"]) == 12
    assert [run.city for run in runs if run.model == "seen-over-exposed"] == [0, 1, 2]
    assert [(run.city, run.seed) for run in runs if run.model == "identity-graph"] == [(0, 1), (1, 2), (2, 3)]
    assert {run.backbone for run in runs if run.model != "quantile"} == {"none"}


def test_a_single_scene_has_no_standard_deviation_and_no_p_value(tmp_path):
    """Networks trained on one scene count as one experiment, however many there are."""
    runs = plan_runs([SCENE], ["quantile", "oracle"], ["linear"], 4, 1)
    store = Store(tmp_path)
    for run in runs:
        store.write(run, fake_result(run, run.seed + (run.model == "quantile")))
    cells = study_cells(runs, store)
    assert cells.select("runs", "scenes").rows() == [(4, 1)] * 2
    assert cells["tilted_loss_std"].null_count() == cells["p_value"].null_count() == 2


def test_gaps_for_market_shares_are_in_units_of_true_demand(tmp_path):
    scene = replace(SCENE, labels={**SCENE.labels, "share": 0.5})
    runs = plan_runs([scene], ["quantile", "tobit", "oracle"], ["linear"], 1, 1)
    store = Store(tmp_path)
    level = {"quantile": (9.0, 3.0), "tobit": (9.0, 2.0), "oracle": (1.0, 1.0)}
    for run in runs:
        seen, true = level[run.model]
        store.write(run, fake_result(run, seen, tilted_loss_true=true))
    cell = study_cells(runs, store).row(by_predicate=pl.col("model") == "tobit", named=True)
    assert cell["gap_closed"] == pytest.approx(0.5)
    assert cell["tilted_loss"] == 9


def test_a_gap_uses_the_scenes_that_all_models_share(tmp_path):
    """A model that was run only in the easier of two cities must not look better for it."""
    runs = plan_runs(cities_of("first-come", 2), ["quantile", "tobit", "oracle"], ["linear"], 2, 1)
    store = Store(tmp_path)
    level = {"quantile": 3.0, "tobit": 2.0, "oracle": 1.0}
    for run in runs:
        if run.model != "tobit" or run.city == 0:
            store.write(run, fake_result(run, level[run.model] * (1 + run.city)))
    cell = study_cells(runs, store).row(by_predicate=pl.col("model") == "tobit", named=True)
    assert (cell["scenes"], cell["gap_closed"]) == (1, pytest.approx(0.5))
