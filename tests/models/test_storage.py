"""Models and trainings on disk: they are read as they were written, and damaged ones are refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import polars as pl
import pytest
import torch
from polars.testing import assert_frame_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from tests.models.panels import HOUR, MONDAY, OURS, PAPER, POSITIONS, capped, quick, small_job, small_panel
from unmet.errors import InputError
from unmet.models import seeds as seeds_room
from unmet.models.checkpoint import read_state, write_state
from unmet.models.forecaster import Forecaster
from unmet.models.seeds import build_network, one_thread
from unmet.models.storage import FORMAT
from unmet.models.training import Training, TrainingState, train

PANEL = capped(small_panel(), 8).drop("truth")


@pytest.mark.parametrize("likelihood", PAPER)
@pytest.mark.parametrize("backbone", OURS)
def test_a_stored_model_forecasts_the_same(backbone, likelihood, tmp_path):
    forecaster = quick(backbone, likelihood, epochs=1, seeds=2, levels=(0.1, 0.7)).fit(PANEL, POSITIONS)
    loaded = Forecaster.load(forecaster.save(tmp_path / "model"))
    assert_frame_equal(loaded.forecast(PANEL).table, forecaster.forecast(PANEL).table, check_exact=True)
    assert_frame_equal(loaded.predict(PANEL, each=True), forecaster.predict(PANEL, each=True), check_exact=True)


def test_a_stored_model_keeps_all_fitted_values(tmp_path):
    panel = PANEL.with_columns(heat=pl.col("y") * 2).filter(pl.col("ds") != MONDAY + 3 * HOUR)
    training = Training("window", 1, 0.01, "constant", 64, 3, 0.01, 2.0)
    forecaster = quick(
        "mlp", horizon=1, features=("heat",), training=training, floor=None, shares=(0.7, 0.2), time_zone="Asia/Tokyo"
    ).fit(panel)
    loaded = Forecaster.load(str(forecaster.save(str(tmp_path / "model"))))
    assert loaded.get_params() == forecaster.get_params()
    for name in ("regions_", "positions_", "split_", "seeds_", "finished_", "notes_"):
        assert getattr(loaded, name) == getattr(forecaster, name)
    assert [[tuple(pair) for pair in losses] for losses in loaded.losses_] == forecaster.losses_
    again = Forecaster.load(loaded.save(tmp_path / "again"))
    assert_frame_equal(again.predict(panel), forecaster.predict(panel), check_exact=True)


def test_a_model_is_not_written_over_existing_files(tmp_path):
    forecaster = quick("seasonal").fit(PANEL)
    forecaster.save(tmp_path / "model")
    with pytest.raises(InputError, match="not empty"):
        forecaster.save(tmp_path / "model")
    forecaster.save(tmp_path / "model", overwrite=True)
    with pytest.raises(NotFittedError, match="call fit first"):
        quick().save(tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return quick("linear").fit(PANEL).save(tmp_path_factory.mktemp("models") / "model")


def damaged(model, folder, json_text=None, weights=None, **changes):
    """A copy of a model with something changed."""
    stored = json.loads((model / "model.json").read_text()) | changes
    folder.mkdir()
    (folder / "model.json").write_text(json.dumps(stored) if json_text is None else json_text)
    whole = (model / "weights.safetensors").read_bytes()
    if weights is not False:
        (folder / "weights.safetensors").write_bytes(whole if weights is None else weights)
    return folder


def test_a_model_is_found_in_the_folder_of_its_run(model, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    damaged(model, run / "model")
    assert_frame_equal(
        Forecaster.load(run).forecast(PANEL).table, Forecaster.load(model).forecast(PANEL).table, check_exact=True
    )


def test_a_missing_or_damaged_model_is_refused(model, tmp_path):
    whole = (model / "model.json").read_text()
    weights = (model / "weights.safetensors").read_bytes()
    stored = json.loads(whole)
    other_weights = quick("mlp").fit(PANEL).save(tmp_path / "mlp") / "weights.safetensors"
    wrong = {
        "half": {"json_text": whole[: len(whole) // 2]},
        "empty": {"json_text": ""},
        "list": {"json_text": "[]"},
        "binary": {"json_text": "\x00\x01"},
        "no weights": {"weights": False},
        "cut weights": {"weights": weights[: len(weights) // 2]},
        "empty weights": {"weights": b""},
        "other weights": {"weights": other_weights.read_bytes()},
        "missing key": {"json_text": json.dumps({key: value for key, value in stored.items() if key != "encoding"})},
        "split": {"split": []},
        "options": {"options": None},
        "option": {"options": stored["options"] | {"colour": 1}},
        "seeds": {"seeds": [1, 2]},
    }
    for name, changes in wrong.items():
        with pytest.raises(InputError, match=r"is damaged \(.+\): fit it again"):
            Forecaster.load(damaged(model, tmp_path / name, **changes))
    with pytest.raises(InputError, match="There is no model at"):
        Forecaster.load(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"written by unmet 99\.0: install that version"):
        Forecaster.load(damaged(model, tmp_path / "newer", format=FORMAT + 1, unmet="99.0"))
    older = damaged(model, tmp_path / "older", format=FORMAT - 1)
    assert Forecaster.load(older).regions_ == Forecaster.load(model).regions_
    imputing = damaged(model, tmp_path / "imputing", format=3, unseen={"rate": []}, unmet="0.0")
    with pytest.raises(InputError, match=r"by unmet 0\.0, which estimated lost demand .*`unmet panel`.*`unmet fit`"):
        Forecaster.load(imputing)


def trained(job, state=None, on_epoch=None):
    with one_thread():
        return train(build_network(job, 1), job.task, 1, state, on_epoch)


def test_a_checkpoint_holds_the_whole_state_of_a_training(tmp_path):
    job = small_job(training=Training(epochs=4))
    half = trained(job, on_epoch=lambda epoch: epoch.number < 2)
    write_state(tmp_path / "seed", half)
    back = read_state(tmp_path / "seed")
    assert back.numbers() == half.numbers()
    for part in ("weights", "best", "moments"):
        ours, read = getattr(half, part), getattr(back, part)
        assert ours
        assert ours.keys() == read.keys()
        assert all(torch.equal(ours[name], read[name]) for name in ours)
    assert [file.name for file in tmp_path.iterdir()] == ["seed"]
    end, undisturbed = trained(job, back), trained(job)
    assert end.numbers() == undisturbed.numbers()
    assert all(torch.equal(end.weights[name], undisturbed.weights[name]) for name in end.weights)


def test_without_a_checkpoint_a_training_starts_anew(tmp_path):
    assert read_state(tmp_path / "none").numbers() == TrainingState().numbers()


def test_a_damaged_checkpoint_is_refused(tmp_path):
    write_state(tmp_path / "seed", trained(small_job(training=Training(epochs=1))))
    whole = (tmp_path / "seed").read_bytes()
    for wrong in (b"", b"nothing", whole[: len(whole) // 2], whole[:100]):
        (tmp_path / "seed").write_bytes(wrong)
        with pytest.raises(InputError, match="delete it and start again"):
            read_state(tmp_path / "seed")


def test_a_training_with_checkpoints_ends_like_one_without(tmp_path, monkeypatch):
    expected = quick(epochs=4, seeds=2).fit(PANEL)
    monkeypatch.setattr(seeds_room, "CHECKPOINT_SECONDS", -1)  # after every epoch
    written = []
    monkeypatch.setattr(seeds_room, "write_state", lambda path, state: (written.append(1), write_state(path, state)))
    cut = quick(epochs=4, seeds=2).fit(PANEL, checkpoints=tmp_path / "training")
    assert len(written) == 8
    assert cut.losses_ == expected.losses_
    assert_frame_equal(cut.forecast(PANEL).table, expected.forecast(PANEL).table, check_exact=True)
    monkeypatch.setattr(seeds_room, "train", lambda *args: train(*args[:4], lambda _: pytest.fail("an epoch more")))
    again = quick(epochs=4, seeds=2).fit(PANEL, checkpoints=tmp_path / "training")
    assert_frame_equal(again.forecast(PANEL).table, expected.forecast(PANEL).table, check_exact=True)


def test_checkpoints_of_another_panel_or_other_options_are_refused(tmp_path):
    quick("linear").fit(PANEL, POSITIONS, checkpoints=tmp_path / "training")
    more = PANEL.with_columns(y=pl.col("y") + 1)
    elsewhere = POSITIONS | {"lat": [50.0, 50.1, 50.2]}
    for forecaster, panel, places in (
        (quick("linear"), more, POSITIONS),
        (quick("linear"), PANEL.drop("censored"), POSITIONS),
        (quick("linear"), PANEL, elsewhere),
        (quick("mlp"), PANEL, POSITIONS),
        (quick("linear", "tobit"), PANEL, POSITIONS),
        (quick("linear", epochs=3), PANEL, POSITIONS),
        (quick("linear", seeds=2), PANEL, POSITIONS),
        (quick("linear", levels=(0.5,)), PANEL, POSITIONS),
    ):
        with pytest.raises(InputError, match="of another panel or with other options"):
            forecaster.fit(panel, places, checkpoints=tmp_path / "training")
    quick("linear", workers=2).fit(PANEL, POSITIONS, checkpoints=tmp_path / "training")
    next((tmp_path / "training").glob("seed-*")).write_bytes(b"broken")
    with pytest.raises(InputError, match="delete it and start again"):
        quick("linear").fit(PANEL, POSITIONS, checkpoints=tmp_path / "training")
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(InputError, match="Name another folder"):
        quick("linear").fit(PANEL, checkpoints=tmp_path / "file")


def test_ctrl_c_keeps_the_best_weights_and_a_resumed_training_ends_the_same(tmp_path):
    handler, asked = signal.getsignal(signal.SIGINT), []

    def tell(progress):
        if not asked and progress[0].epoch == 2:
            asked.append(signal.raise_signal(signal.SIGINT))

    early = quick(epochs=4, seeds=2).fit(PANEL, checkpoints=tmp_path / "training", on_progress=tell)
    assert not early.finished_
    assert early.seeds_ == (1,)  # the other one had not started
    assert [len(losses) for losses in early.losses_] == [2]
    assert early.forecast(PANEL).table.select(pl.all_horizontal(pl.col("^q.*$").is_finite()).all()).item()
    assert signal.getsignal(signal.SIGINT) is handler
    later = clone(early).fit(PANEL, checkpoints=tmp_path / "training")
    expected = quick(epochs=4, seeds=2).fit(PANEL)
    assert later.finished_
    assert later.losses_ == expected.losses_
    assert_frame_equal(later.forecast(PANEL).table, expected.forecast(PANEL).table, check_exact=True)


FIT = """
import os, signal, sys
from pathlib import Path
import polars as pl
from unmet.models.forecaster import Forecaster
from unmet.models.training import Training

folder = Path(sys.argv[1])
panel = pl.read_parquet(folder / "panel.parquet")
training = Training(epochs=300, patience=300)
forecaster = Forecaster("seasonal", "quantile", lags=24, horizon=1, seeds=2, workers=2, training=training)

def ctrl_c_at(least):
    asked = []

    def tell(progress):
        if not asked and all(part.epoch >= least for part in progress):
            asked.append(os.killpg(0, signal.SIGINT))  # to all processes, as a terminal does

    return tell

forecaster.fit(panel, on_progress=ctrl_c_at(0))  # while processes start
assert not forecaster.finished_
assert forecaster.forecast(panel).table.height == 3
forecaster.fit(panel, checkpoints=folder / "training", on_progress=ctrl_c_at(1))
assert not forecaster.finished_
forecaster.save(folder / "model")
"""


@pytest.mark.skipif(os.name != "posix", reason="signals to a group of processes are POSIX")
def test_ctrl_c_reaches_parallel_trainings_and_a_later_call_finishes_them(tmp_path):
    panel = PANEL.filter(pl.col("ds") < MONDAY + 200 * HOUR)
    panel.write_parquet(tmp_path / "panel.parquet")
    command = [sys.executable, "-W", "error", "-c", FIT, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, start_new_session=True, timeout=1200, check=False)
    assert (run.returncode, run.stderr) == (0, b"")
    early = Forecaster.load(tmp_path / "model")
    states = [read_state(tmp_path / "training" / f"seed-{seed}.safetensors") for seed in (1, 2)]
    assert early.seeds_ == (1, 2)
    assert [len(losses) for losses in early.losses_] == [state.epoch for state in states]
    assert early.forecast(panel).table.select(pl.all_horizontal(pl.col("^q.*$").is_finite()).all()).item()
    later = early.set_params(workers=1).fit(panel, checkpoints=tmp_path / "training")
    assert later.finished_
    for losses, state in zip(later.losses_, states, strict=True):
        assert losses[: state.epoch] == state.losses
        assert len(losses) == 300
