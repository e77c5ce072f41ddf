"""Training of one network: by chunks, or by windows as in the paper.

A window of `lags` hours has one target, so a pass over all targets processes every hour `lags` times. A chunk has
`lags` hours of warm-up and then a target at each of the next K hours: (lags + K) / K steps per target instead of
`lags`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unmet.errors import InputError
from unmet.models.draws import TrueDemand
from unmet.models.encoding import Data, Encoding
from unmet.models.likelihoods.base import Likelihood
from unmet.models.network import ForecastNetwork

__all__ = ["CHUNK", "Epoch", "Task", "Training", "TrainingState", "train", "training_named"]

CHUNK = 168  # number of targets in a chunk
STEPS_AN_EPOCH = 10  # highest number of gradient steps per epoch, if the batch is not given
MAX_SEQUENCES = 8192  # highest number of regions times chunks per step, if the batch is not given, to limit memory
WARM_UP_STEPS = 20  # steps over which the learning rate rises from zero
OPEN_SHARE = 0.7  # share of the chunks whose last hours of demand are hidden, for horizons beyond one hour
VALIDATED_SEQUENCES = 4096  # regions times chunks that are validated at once, if the batch is not given


@dataclass(frozen=True, slots=True)
class Training:
    """How a network is trained."""

    by: str = "chunk"  # chunk or window
    epochs: int = 80  # highest number of epochs
    learning_rate: float = 0.015
    schedule: str = "cosine"  # down to a fiftieth over all epochs; or constant
    batch: int | None = None  # chunks or windows per gradient step; by default at most ten steps per epoch
    patience: int = 20  # epochs without an improvement
    least_improvement: float = 0.001  # smallest decrease of the validation loss, summed over regions, that counts
    gradient_norm: float = 1.0  # gradients are clipped to this norm

    def __post_init__(self) -> None:
        if self.by not in ("chunk", "window") or self.schedule not in ("cosine", "constant"):
            raise InputError(f"Training by {self.by!r} with schedule {self.schedule!r} makes no sense: by is chunk or "
                             "window, schedule cosine or constant.")  # fmt: skip
        if self.epochs < 1 or self.patience < 1 or (self.batch is not None and self.batch < 1):
            raise InputError("Training needs at least one epoch, a patience of 1 and one chunk or window per step.")
        if not (self.learning_rate > 0 and self.gradient_norm > 0 and self.least_improvement >= 0):
            raise InputError("Training needs a learning rate and a gradient norm above zero.")

    @classmethod
    def as_in_paper(cls) -> Training:
        """Windows in batches of 256, Adam at 3e-4, at most 1000 epochs."""
        return cls(by="window", epochs=1000, learning_rate=3e-4, schedule="constant", batch=256, patience=20)


def training_named(name: str, epochs: int | None = None) -> Training:
    """The options named `chunk` (the default) or `paper`, perhaps with another number of epochs."""
    known = {"chunk": Training(), "paper": Training.as_in_paper()}
    if name not in known:
        raise InputError(f"There is no training named {name!r}: choose one of {', '.join(known)}.")
    return known[name] if epochs is None else replace(known[name], epochs=epochs)


@dataclass(frozen=True, slots=True)
class Task:
    """Data and options that all seeds of a fit share."""

    data: Data
    encoding: Encoding
    likelihood: Likelihood
    lags: int
    horizon: int
    train_hours: int  # hours for training
    fit_hours: int  # end of the hours for early stopping, which follow
    training: Training
    true_demand: TrueDemand | None = None  # the target, drawn again in every epoch


class Epoch(NamedTuple):
    """Losses of an epoch: means over hours, summed over regions."""

    number: int  # from 1
    loss: float
    validation: float
    best: float


@dataclass(slots=True)
class TrainingState:
    """State from which the training of a network can be resumed as if it had never stopped."""

    epoch: int = 0  # number of epochs done
    best_loss: float = math.inf  # lowest validation loss so far
    waited: int = 0  # epochs since the last improvement
    done: bool = False
    losses: list[tuple[float, float]] = field(default_factory=list)  # losses of training and validation, by epoch
    weights: dict[str, Tensor] = field(default_factory=dict)
    best: dict[str, Tensor] = field(default_factory=dict)  # weights with the lowest validation loss
    moments: dict[str, Tensor] = field(default_factory=dict)  # Adam's running moments

    def numbers(self) -> dict[str, Any]:
        """All values except the tensors."""
        return {
            "epoch": self.epoch,
            "best_loss": self.best_loss,
            "waited": self.waited,
            "done": self.done,
            "losses": [list(pair) for pair in self.losses],
        }


def train(
    network: ForecastNetwork,
    task: Task,
    seed: int,
    state: TrainingState | None = None,
    on_epoch: Callable[[Epoch], bool] | None = None,
) -> TrainingState:
    """Train a network until it no longer improves, and restore the best weights.

    `on_epoch` is called after every epoch and returns whether to continue. Each epoch has random numbers of its own, so
    that training resumed from a `state` gives the same result as training that was never stopped.
    """
    state = state or TrainingState()
    training = task.training
    optimizer = torch.optim.Adam(network.parameters(), lr=training.learning_rate)
    if state.weights:
        network.load_state_dict(state.weights)
        _restore(optimizer, network, state.moments)
    while not state.done:
        rng = np.random.default_rng([seed, state.epoch])
        loss = _epoch(network, task, optimizer, rng, state.epoch)
        validation = _validate(network, task)
        state.epoch += 1
        state.losses.append((loss, validation))
        if not math.isfinite(validation):
            raise InputError(
                f"Training with seed {seed} diverged in epoch {state.epoch}: lower the learning rate "
                f"(it is {training.learning_rate:g})."
            )
        state.waited = 0 if validation < state.best_loss - training.least_improvement else state.waited + 1
        if validation < state.best_loss or not state.best:
            state.best_loss, state.best = validation, _copy(network)
        state.done = state.epoch >= training.epochs or state.waited >= training.patience
        if on_epoch is not None and not on_epoch(Epoch(state.epoch, loss, validation, state.best_loss)):
            break
    state.weights, state.moments = _copy(network), _moments(optimizer, network)
    if state.best:
        network.load_state_dict(state.best)
    return state


def _epoch(
    network: ForecastNetwork, task: Task, optimizer: torch.optim.Adam, rng: np.random.Generator, epoch: int
) -> float:
    """One pass over all targets of the training part; returns the loss, as in `Epoch`. Epochs are counted from 0."""
    training = task.training
    if task.true_demand is not None:
        # Drawn from a separate random stream, so that the order of chunks does not depend on the likelihood.
        drawn = torch.from_numpy(task.true_demand.draw(rng.spawn(1)[0]).astype(np.float32)).to(task.data.y.device)
        task = replace(task, data=task.data._replace(y=drawn, lower=drawn, upper=drawn))
    starts, length = _segments(task, task.lags, task.train_hours, rng)
    max_batch = max(1, MAX_SEQUENCES // task.data.y.shape[1])
    batch = training.batch or min(math.ceil(len(starts) / STEPS_AN_EPOCH), max_batch)
    steps = math.ceil(len(starts) / batch)
    total, weight = 0.0, 0.0
    network.train()
    for step in range(steps):
        rate = training.learning_rate * _share_of_rate(training, epoch * steps + step, training.epochs * steps)
        for group in optimizer.param_groups:
            group["lr"] = rate
        chosen = torch.from_numpy(starts[step * batch : (step + 1) * batch])
        losses, counts = _losses(network, task, chosen, length, _origins(task, len(chosen), length, rng))
        if counts == 0:
            continue
        optimizer.zero_grad()
        torch.autograd.backward(losses / counts)
        torch.nn.utils.clip_grad_norm_(network.parameters(), training.gradient_norm)
        optimizer.step()
        total, weight = total + float(losses.detach()), weight + counts
    return total / max(weight, 1) * task.data.y.shape[1]


def _share_of_rate(training: Training, step: int, steps: int) -> float:
    """Learning rate of a step relative to the highest: constant, or a warm-up and half a cosine down to a fiftieth."""
    if training.schedule == "constant":
        return 1.0
    return max(0.02, 0.5 * (1 + math.cos(math.pi * step / steps))) * min(1.0, (step + 1) / WARM_UP_STEPS)


def _segments(task: Task, first: int, last: int, rng: np.random.Generator | None) -> tuple[NDArray[np.int64], int]:
    """Starts and length [h] of segments, chunks or windows, whose targets are the hours from `first` to `last`.

    With random numbers, they are in random order, and chunks start at a random hour of the week.
    """
    if task.training.by == "window":
        targets = np.arange(first, last)
        return (targets if rng is None else rng.permutation(targets)) - task.lags, task.lags
    size = min(CHUNK, last - first)
    offset = 0 if rng is None else int(rng.integers(size))
    targets = np.unique(np.clip(np.arange(first - offset, last, size), first, last - size))
    return (targets if rng is None else rng.permutation(targets)) - task.lags, task.lags + size - 1


def _origins(task: Task, batch: int, length: int, rng: np.random.Generator) -> Tensor | None:
    """Hour of each segment from which demand is hidden, so that the network learns to forecast further ahead.

    A share of 1 - `OPEN_SHARE` of the segments has all of its demand.
    """
    if task.horizon == 1:
        return None
    earliest = max(task.lags, length - task.horizon + 1)
    opened = rng.integers(earliest, length + 1, batch)
    return torch.from_numpy(np.where(rng.random(batch) < OPEN_SHARE, opened, length))


def _losses(
    network: ForecastNetwork, task: Task, starts: Tensor, length: int, origins: Tensor | None
) -> tuple[Tensor, float]:
    """Sum of the loss over the targets of segments, and the number of targets."""
    starts = starts.to(task.data.values.device)
    inputs = task.data.inputs(starts, length)
    if origins is not None:
        inputs = inputs._replace(values=task.encoding.blank(inputs.values, origins.to(starts.device)))
    hours = starts[None] + torch.arange(task.lags, length + 1, device=starts.device)[:, None]
    observations, weight = task.data.observations(hours)
    return (task.likelihood.loss(network(inputs), observations) * weight).sum(), float(weight.sum())


@torch.no_grad()
def _validate(network: ForecastNetwork, task: Task) -> float:
    """Validation loss one hour ahead; for longer horizons, plus the loss of forecasts from the start of each chunk."""
    network.eval()
    starts, length = _segments(task, task.train_hours, task.fit_hours, None)
    origins_of_pass: list[Tensor | None] = [None]
    if task.horizon > 1:
        origins_of_pass.append(torch.full((len(starts),), max(task.lags, length - task.horizon + 1)))
    total = 0.0
    for origins in origins_of_pass:
        parts = [
            _losses(network, task, torch.from_numpy(starts[rows]), length, None if origins is None else origins[rows])
            for rows in _batches(len(starts), task)
        ]
        weight = sum(count for _, count in parts)
        total += float(sum(float(loss) for loss, _ in parts)) / max(weight, 1) * task.data.y.shape[1]
    return total


def _batches(segments: int, task: Task) -> Iterator[slice]:
    """Slices of segments that are validated at once."""
    size = task.training.batch or max(1, VALIDATED_SEQUENCES // task.data.y.shape[1])
    for begin in range(0, segments, size):
        yield slice(begin, begin + size)


def _copy(network: ForecastNetwork) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in network.state_dict().items()}


def _moments(optimizer: torch.optim.Adam, network: ForecastNetwork) -> dict[str, Tensor]:
    """Adam's state by the names of the parameters."""
    return {
        f"{name}:{kind}": value.detach().clone()
        for name, parameter in network.named_parameters()
        for kind, value in optimizer.state[parameter].items()
    }


def _restore(optimizer: torch.optim.Adam, network: ForecastNetwork, moments: dict[str, Tensor]) -> None:
    for name, parameter in network.named_parameters():
        found = {key.rpartition(":")[2]: value for key, value in moments.items() if key.rpartition(":")[0] == name}
        if found:
            optimizer.state[parameter] = {kind: value.clone() for kind, value in found.items()}
