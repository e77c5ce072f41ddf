"""Training: its targets, when it stops, which weights it keeps, and that the seed determines the result."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.panels import HOUR, LAGS, MONDAY, capped, small_job, small_panel
from unmet.errors import InputError
from unmet.models import training as room
from unmet.models.seeds import build_network, one_thread, train_seeds
from unmet.models.training import (
    CHUNK,
    Training,
    _epoch,
    _losses,
    _origins,
    _segments,
    _share_of_rate,
    _validate,
    train,
    training_named,
)


def same_weights(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def trained(job, seed=1, state=None, on_epoch=None):
    with one_thread():
        return train(build_network(job, seed), job.task, seed, state, on_epoch)


def targets_of(task, starts, length):
    return np.concatenate([np.arange(start + task.lags, start + length + 1) for start in starts])


@settings(max_examples=200)
@given(
    st.integers(1, 60),
    st.integers(0, 500),
    st.integers(1, 900),
    st.sampled_from(["chunk", "window"]),
    st.integers(0, 99),
)
def test_a_pass_covers_every_target_and_no_other(lags, ahead, number, by, seed):
    first, last = lags + ahead, lags + ahead + number
    task = replace(small_task(), lags=lags, training=Training(by))
    rng = np.random.default_rng(seed)
    for random in (rng, None):
        starts, length = _segments(task, first, last, random)
        assert starts.min() >= 0
        targets = targets_of(task, starts, length)
        assert set(targets.tolist()) == set(range(first, last))
        assert len(set(starts.tolist())) == len(starts)
        if by == "chunk":
            assert length <= lags + CHUNK - 1
            assert len(starts) <= math.ceil(number / CHUNK) + 1
        else:
            assert length == lags
            assert len(targets) == number


@cache
def small_task():
    return small_job().task


@given(st.integers(1, 60), st.integers(1, 300), st.integers(2, 200), st.integers(0, 99))
def test_unknown_hours_begin_within_the_horizon_before_the_end(lags, targets, horizon, seed):
    task = replace(small_task(), lags=lags, horizon=horizon)
    length = lags + targets - 1
    origins = _origins(task, 200, length, np.random.default_rng(seed))
    assert origins.min() >= lags
    assert origins.max() <= length
    # the last target is the hour of this index: so far ahead of the last known hour it lies
    assert (length - origins + 1).max() <= horizon
    assert _origins(replace(task, horizon=1), 5, length, np.random.default_rng(seed)) is None


def test_chunks_start_at_other_hours_in_each_epoch(monkeypatch):
    begins = []

    def spy(task, first, last, rng):
        found = _segments(task, first, last, rng)
        begins.append(tuple(sorted(found[0])))
        return found

    monkeypatch.setattr(room, "_segments", spy)
    trained(small_job(training=Training(epochs=6)))
    learned, validated = begins[::2], begins[1::2]
    assert len(learned) == len(set(learned)) == 6
    assert len(set(validated)) == 1


def test_initial_weights_depend_on_the_seed():
    job = small_job()
    a, b, c = (dict(build_network(job, seed).state_dict()) for seed in (1, 1, 2))
    assert same_weights(a, b)
    assert [name for name in a if torch.equal(a[name], c[name])] == ["bias"]  # it starts at zero


@torch.no_grad()
@pytest.mark.parametrize("backbone", ["mlp", "linear", "seasonal"])
def test_chunks_and_windows_have_the_same_loss_if_a_backbone_reads_only_its_lags(backbone):
    chunk = small_job(backbone=backbone, horizon=1).task
    net = build_network(small_job(backbone=backbone, horizon=1), 1)
    window = replace(chunk, training=Training("window"))
    assert _validate(net, chunk) == pytest.approx(_validate(net, window), rel=1e-5)


@torch.no_grad()
def test_the_loss_is_the_sum_over_known_targets():
    gaps = small_panel().filter(pl.Series(np.random.default_rng(1).random(1200) > 0.3))
    job = small_job(gaps)
    task, net = job.task, build_network(job, 1)
    starts = torch.tensor([0, 40])
    loss, count = _losses(net, task, starts, LAGS + 9, None)
    outputs = net(task.data.inputs(starts, LAGS + 9))
    expected, known = 0.0, 0
    for b, start in enumerate(starts.tolist()):
        for t in range(10):
            hour = start + LAGS + t
            for v in range(3):
                if task.data.weight[hour, v]:
                    f, y = outputs[t, b, v].double(), task.data.y[hour, v].double()
                    expected += sum(
                        max(q * (y - e), (q - 1) * (y - e)) for q, e in zip((0.05, 0.5, 0.95), f, strict=True)
                    )
                    known += 1
    assert count == known < 60
    assert loss.item() == pytest.approx(float(expected), rel=1e-5)


def test_the_values_of_missing_targets_do_not_matter():
    gaps = small_panel().filter(pl.Series(np.random.default_rng(1).random(1200) > 0.3))
    job = small_job(gaps)
    data = job.task.data
    noise = torch.where(data.weight == 0, 7.0, 0.0)
    other = replace(
        job,
        task=replace(
            job.task, data=data._replace(y=data.y + noise, lower=data.lower + noise, upper=data.upper + noise)
        ),
    )
    a, b = trained(job), trained(other)
    assert same_weights(a.best, b.best)
    assert a.losses == b.losses


def test_the_same_seed_gives_the_same_weights_and_another_gives_others():
    job = small_job()
    a, b, c = trained(job, 1), trained(job, 1), trained(job, 2)
    assert same_weights(a.best, b.best)
    assert a.losses == b.losses
    assert not any(torch.equal(a.best[name], c.best[name]) for name in a.best)


def test_parallel_trainings_give_the_same_weights_as_sequential_ones():
    job = small_job(capped(small_panel(), 6))
    one, stopped_one = train_seeds(job, (1, 2, 3), 1)
    told = []
    two, stopped_two = train_seeds(job, (1, 2, 3), 2, on_progress=told.append)
    assert not stopped_one
    assert not stopped_two
    for a, b in zip(one, two, strict=True):
        assert same_weights(a.best, b.best)
        assert same_weights(a.weights, b.weights)
        assert a.losses == b.losses
    assert [(p.seed, p.epoch, p.done) for p in told[-1]] == [(1, 3, True), (2, 3, True), (3, 3, True)]


@pytest.mark.parametrize("backbone", ["tgcn", "mlp"])
@pytest.mark.parametrize("schedule", ["cosine", "constant"])
def test_a_resumed_training_ends_like_one_that_was_never_stopped(backbone, schedule):
    job = small_job(backbone=backbone, training=Training(epochs=5, schedule=schedule))
    undisturbed = trained(job)
    state = None
    for stop in (1, 3):
        state = trained(job, state=state, on_epoch=lambda epoch, stop=stop: epoch.number < stop)
        assert (state.epoch, state.done) == (stop, False)
    state = trained(job, state=state)
    assert state.done
    assert state.numbers() == undisturbed.numbers()
    for part in ("weights", "best", "moments"):
        assert same_weights(getattr(state, part), getattr(undisturbed, part))


def test_a_finished_training_is_unchanged():
    job = small_job()
    done = trained(job)
    again = trained(job, state=replace(done, losses=list(done.losses)), on_epoch=lambda _: pytest.fail("an epoch more"))
    assert again.numbers() == done.numbers()
    assert same_weights(again.best, done.best)


def test_the_best_weights_are_kept():
    job = small_job(training=Training(epochs=12, learning_rate=0.3, schedule="constant"))
    net, weights, told = build_network(job, 1), [], []

    def on_epoch(epoch):
        weights.append({name: value.clone() for name, value in net.state_dict().items()})
        told.append(epoch)
        return True

    with one_thread():
        state = train(net, job.task, 1, on_epoch=on_epoch)
        validation = [pair[1] for pair in state.losses]
        best = int(np.argmin(validation))
        assert best < len(validation) - 1  # otherwise the test would be trivial
        assert state.best_loss == validation[best] == _validate(net, job.task)
    assert same_weights(state.best, weights[best])
    assert same_weights(dict(net.state_dict()), weights[best])
    assert same_weights(state.weights, weights[-1])
    assert [epoch.number for epoch in told] == list(range(1, 13))
    assert [epoch.best for epoch in told] == np.minimum.accumulate(validation).tolist()


def test_training_stops_when_it_no_longer_improves():
    job = small_job(training=Training(epochs=50, learning_rate=1e-9, schedule="constant", patience=4))
    state = trained(job)
    assert (state.epoch, state.waited, state.done) == (5, 4, True)
    slow = small_job(training=Training(epochs=6, learning_rate=1e-9, schedule="constant", patience=9))
    assert trained(slow).epoch == 6


def test_training_reduces_the_loss():
    job = small_job(training=Training(epochs=15))
    state = trained(job)
    assert state.best_loss < 0.6 * state.losses[0][1]


def test_an_epoch_without_known_targets_changes_nothing():
    job = small_job()
    task = replace(job.task, data=job.task.data._replace(weight=torch.zeros_like(job.task.data.weight)))
    net = build_network(job, 1)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    assert _epoch(net, task, torch.optim.Adam(net.parameters()), np.random.default_rng(1), 0) == 0
    assert same_weights(before, dict(net.state_dict()))


def test_gradients_are_clipped_to_the_norm(monkeypatch):
    job = small_job(training=Training(epochs=1, gradient_norm=0.01))
    norms = []
    step = torch.optim.Adam.step

    def spy(self, *args):
        gradients = [p.grad for group in self.param_groups for p in group["params"]]
        norms.append(float(torch.cat([g.ravel() for g in gradients]).norm()))
        return step(self, *args)

    monkeypatch.setattr(torch.optim.Adam, "step", spy)
    trained(job)
    assert norms
    assert max(norms) == pytest.approx(0.01, rel=1e-3)


def test_the_learning_rate_warms_up_and_falls_to_a_fiftieth_or_is_constant():
    cosine = [_share_of_rate(Training(), step, 800) for step in range(800)]
    assert cosine[0] == pytest.approx(1 / 20)
    assert np.argmax(cosine) == 19
    assert (np.diff(cosine[20:]) <= 0).all()
    assert cosine[-1] == 0.02
    assert {_share_of_rate(Training(schedule="constant"), step, 800) for step in range(800)} == {1.0}


def test_a_diverging_training_is_reported():
    with pytest.raises(InputError, match="lower the learning rate"):
        trained(small_job(likelihood="gaussian", backbone="linear", training=Training(learning_rate=1e30)))


@pytest.mark.parametrize(
    "options",
    [
        {"by": "day"},
        {"schedule": "linear"},
        {"epochs": 0},
        {"patience": 0},
        {"batch": 0},
        {"learning_rate": 0},
        {"learning_rate": math.nan},
        {"gradient_norm": 0},
        {"least_improvement": -1},
    ],
)
def test_invalid_options_are_refused(options):
    with pytest.raises(InputError):
        Training(**options)


def test_the_papers_training_has_the_papers_numbers():
    paper = Training.as_in_paper()
    assert (paper.by, paper.epochs, paper.learning_rate, paper.batch, paper.gradient_norm) == (
        "window",
        1000,
        3e-4,
        256,
        1,
    )
    assert (paper.least_improvement, paper.schedule) == (0.001, "constant")
    assert training_named("paper", 7) == replace(paper, epochs=7)
    assert training_named("chunk") == Training()
    with pytest.raises(InputError, match="choose one of chunk, paper"):
        training_named("night")


def test_a_window_pass_takes_the_steps_of_its_batch(monkeypatch):
    job = small_job(horizon=1, backbone="linear", training=Training("window", 2, batch=50))
    steps = []
    step = torch.optim.Adam.step
    monkeypatch.setattr(torch.optim.Adam, "step", lambda self, *args: (steps.append(1), step(self, *args))[1])
    trained(job)
    assert len(steps) == 2 * math.ceil((320 - LAGS) / 50)


def test_training_does_not_read_the_test_part():
    panel = small_panel()
    other = panel.with_columns(y=pl.when(pl.col("ds") >= MONDAY + 360 * HOUR).then(0.5).otherwise("y"))
    a, b = trained(small_job(panel)), trained(small_job(other))
    assert same_weights(a.best, b.best)
    assert a.losses == b.losses
