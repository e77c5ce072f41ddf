"""Forecaster with networks: a backbone and a likelihood, trained on a panel from several seeds, as in the paper."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl
import torch

from unmet.arrays import Floats
from unmet.errors import InputError
from unmet.frames import Frame, to_frame_type
from unmet.models.backbones import BACKBONES
from unmet.models.calibrated import CalibratedEnsemble
from unmet.models.calibration import Calibration
from unmet.models.checkpoint import mark_folder
from unmet.models.direct import DIRECT
from unmet.models.draws import TrueDemand
from unmet.models.encoding import Encoding
from unmet.models.ensemble import Ensemble
from unmet.models.forecaster import Forecaster, Split, long_frame
from unmet.models.graph import Graph, region_graph
from unmet.models.likelihoods import LEVELS, LIKELIHOODS, Likelihood
from unmet.models.network import ForecastNetwork
from unmet.models.notes import panel_notes
from unmet.models.rolling_calibration import calibrate
from unmet.models.seeds import SeedProgress, TrainingJob, train_seeds
from unmet.models.series import HOUR, PanelSeries, read_ahead, read_positions, read_series, with_lost
from unmet.models.training import Task, Training
from unmet.runs import available_cores

__all__ = ["NetworkForecaster"]

MIN_TARGETS = 24  # lowest number of hours to learn from, after the first `lags` hours


class NetworkForecaster(Forecaster):
    """Train a network with a likelihood on a panel, and forecast true demand with intervals.

    Args:
        backbone: turns past hours into features: tgcn, mlp, linear, seasonal, or one that you registered.
        likelihood: relates observations to true demand: gaussian, tobit, quantile, censored-quantile, exposure, or one
            that you registered.
        levels: levels of the quantiles to forecast.
        seeds: number of networks, trained from different seeds, whose forecasts are averaged.
        seed: first seed; the same seed gives the same model.
        lags: number of past hours that a forecast uses [h].
        horizon: number of hours ahead [h]; 1 is the paper's model.
        features: additional numeric columns of the panel that are known in advance.
        target: the column to learn; the true demand of a simulation gives an oracle.
        shares: shares of the hours for training, and for early stopping and calibration; the rest is held out.
        training: how the networks are trained.
        calibrate: whether to correct quantiles with held-out hours.
        floor: lower limit of forecasts [kWh]; `None` for no limit.
        time_zone: time zone of the calendar; by default the panel's, else UTC.
        workers: number of networks trained at a time; by default one per core.
    """

    latest_: Calibration | None = None  # set by `recalibrate`

    def __init__(
        self,
        backbone: str = "tgcn",
        likelihood: str = "exposure",
        *,
        levels: Sequence[float] = LEVELS,
        seeds: int = 10,
        seed: int = 1,
        lags: int = 168,
        horizon: int = 168,
        features: Sequence[str] = (),
        target: str = "y",
        shares: tuple[float, float] = (0.8, 0.1),
        training: Training = Training(),  # noqa: B008 (it is frozen)
        calibrate: bool = True,
        floor: float | None = 0.0,
        time_zone: str | None = None,
        workers: int | None = None,
    ) -> None:
        self.backbone = backbone
        self.likelihood = likelihood
        self.levels = levels
        self.seeds = seeds
        self.seed = seed
        self.lags = lags
        self.horizon = horizon
        self.features = features
        self.target = target
        self.shares = shares
        self.training = training
        self.calibrate = calibrate
        self.floor = floor
        self.time_zone = time_zone
        self.workers = workers

    # Fitted: regions_, positions_, split_, encoding_, networks_, seeds_, losses_, calibration_, finished_,
    # set_aside_ (rows of the panel that could not be used; not stored), notes_

    def fit(
        self,
        panel: Any,
        positions: Any = None,
        *,
        checkpoints: Path | None = None,
        on_progress: Callable[[list[SeedProgress]], None] | None = None,
    ) -> Self:
        """Fit on a panel, as for every `Forecaster`. A table may have `censored, lower, upper`.

        `positions` (`unique_id, lat, lon`) connect nearby regions; without them, none are connected. Ctrl-C keeps the
        best weights so far; with a folder of `checkpoints`, a later call resumes training.
        """
        likelihood = self._check()
        given = self._read_training_input(panel, self.shares)
        positions = given.regions if positions is None else positions
        series = read_series(given.table, target=self.target, extras=self.features, with_lost=likelihood.imputes)
        names = series.names
        places = None if positions is None else read_positions(positions, names)
        train_hours, fit_hours = _split_hours(series, self.shares, self.lags)
        encoding = Encoding.of(series, train_hours, self.time_zone_, marks_unknown=self.horizon > 1)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        drawn = None
        if series.lost_draws is not None:
            drawn = TrueDemand(np.nan_to_num(series.demand), series.lost_draws, encoding.scale)
        data = encoding.encode(with_lost(series)).to(device)
        task = Task(
            data, encoding, likelihood, lags=self.lags, horizon=self.horizon, train_hours=train_hours,
            fit_hours=fit_hours, training=self.training, true_demand=drawn,
        )  # fmt: skip
        job = TrainingJob(task, BACKBONES.named(self.backbone), region_graph(places, len(names)), device)
        self.seeds_ = tuple(range(self.seed, self.seed + self.seeds))
        if checkpoints is not None:
            mark_folder(checkpoints, job, self.get_params() | {"time_zone": self.time_zone_})
        workers = 1 if device == "cuda" else self.workers or available_cores()
        states, stopped = train_seeds(job, self.seeds_, workers, checkpoints, on_progress)
        # Seeds that had not started before Ctrl-C would only degrade the mean.
        begun = [i for i, state in enumerate(states) if state.epoch] or range(len(states))
        self.seeds_, states = tuple(self.seeds_[i] for i in begun), [states[i] for i in begun]

        self.regions_, self.positions_, self.encoding_ = names, places, encoding
        self.split_ = Split(series.first, series.first + train_hours * HOUR, series.first + fit_hours * HOUR)
        self.losses_ = [state.losses for state in states]
        self.finished_ = not stopped
        self.set_weights([state.best for state in states])
        self.calibration_, self.latest_ = Calibration.none(len(likelihood.levels)), None
        if self.calibrate:
            fresh = self._calibrated()
            self.calibration_ = calibrate(fresh.ensemble, data, train_hours, fit_hours, self.horizon, fresh.floored)
        self.set_aside_ = series.set_aside
        self.notes_ = panel_notes(series, likelihood, train_hours, fit_hours, self.horizon)
        return self

    def predict(self, panel: Any, since: dt.datetime | None = None, *, each: bool = False) -> Frame:
        """Forecasts one hour ahead for every past hour from `since` on that has enough hours before it.

        Forecasts after the end of the fit are calibrated week by week, with the weeks before. Columns: `unique_id, ds`,
        the quantiles as `q0.05, q0.5, q0.95` [kWh]; with `each` also `seed`, one row per seed, all with the calibration
        of their mean.
        """
        given = self.read(panel)
        series = self.series(given.table)
        first = self.lags if since is None else max(self.lags, series.hour_from(since))
        if first >= series.hours:
            raise InputError(
                f"No hour of the panel has {self.lags} hours before it"
                + (f" and comes after {since:%Y-%m-%d %H:%M}" if since else "")
                + ": give a longer panel."
            )
        calibrated = self._calibrated()
        data = calibrated.encode(series)
        times = series.times()[first:]
        rolling = list(calibrated.by_week(series, data, first, 1))

        def table(networks: Sequence[ForecastNetwork] | None = None) -> pl.DataFrame:
            quantiles = self._calibrated(networks).ensemble.one_hour_ahead(data, first, series.hours)
            parts = [calibrated.to_kwh(quantiles[begin - first : end - first], 1, by) for begin, end, by in rolling]
            return self._frame(times, np.concatenate(parts))

        if not each:
            return to_frame_type(table(), given.frame_type)
        seeds = zip(self.seeds_, self.networks_, strict=True)
        parts = [table([network]).with_columns(seed=pl.lit(seed, pl.Int64)) for seed, network in seeds]
        return to_frame_type(pl.concat(parts), given.frame_type)

    def _forecast(self, table: Any, hours: int | None, future: Any) -> pl.DataFrame:
        hours = self.horizon if hours is None else hours
        self._check_hours(hours)
        series = self.series(table, self.lags)
        if series.hours < self.lags:
            raise InputError(
                f"A forecast needs the last {self.lags} hours; the panel has {series.hours}. Give a longer one."
            )
        ahead = read_ahead(future, self.features, series, hours)
        calibrated = self._calibrated()
        mean = calibrated.ensemble.from_origins(calibrated.encode(series, ahead), np.array([series.hours]), hours)[0]
        times = series.times(hours)[-hours:]
        steps = np.arange(1, hours + 1)
        frame = self._frame(times, calibrated.to_kwh(mean, steps[:, None], self.latest_))
        horizon = pl.Series("horizon", np.tile(steps, len(series.names)))
        return frame.insert_column(2, horizon)

    def backtest(self, panel: Any, since: dt.datetime | None = None, every: int = 24) -> Frame:
        """Forecasts as they would have been made every `every` hours from `since` on, each over the whole horizon.

        They are calibrated week by week, with the weeks before. Columns: `unique_id, ds, cutoff` (the first hour
        forecast), `horizon` [h], the quantiles [kWh]. `since` is by default the end of the fit.
        """
        if every < 1:
            raise InputError(f"Forecasts every {every} hours make no sense: give at least one hour.")
        given = self.read(panel)
        series = self.series(given.table)
        first = series.hour_from(since or self.split_.fit_end)
        origins = np.arange(max(first, self.lags), series.hours - self.horizon + 1, every)
        if not len(origins):
            raise InputError(
                f"The panel has fewer than {self.horizon} hours after {since or self.split_.fit_end:%Y-%m-%d %H:%M}: "
                "give a longer panel, or a model with a shorter horizon."
            )
        calibrated = self._calibrated()
        data = calibrated.encode(series)
        mean = calibrated.ensemble.from_origins(data, origins, self.horizon)
        steps = np.arange(1, self.horizon + 1)
        rolling = calibrated.by_week(series, data, int(origins[0]), self.horizon)
        quantiles = np.concatenate(
            [
                calibrated.to_kwh(mean[(origins >= begin) & (origins < end)], steps[:, None], by)
                for begin, end, by in rolling
            ]
        )
        times = series.times()
        frames = [
            self._frame(times[origin : origin + self.horizon], quantiles[i]).with_columns(
                cutoff=pl.lit(times[int(origin)]), horizon=pl.Series(np.tile(steps, len(series.names)))
            )
            for i, origin in enumerate(origins)
        ]
        return to_frame_type(pl.concat(frames), given.frame_type)

    def recalibrate(self, panel: Any) -> Self:
        """Calibrate `forecast` with the last weeks of a panel, except hours that the model was trained on.

        Forecasts of past hours do not change.
        """
        series = self.series(self.read(panel).table)
        calibrated = self._calibrated()
        self.latest_ = calibrated.calibration_before(series.hours, series, calibrated.encode(series), self.horizon)
        return self

    @property
    def title(self) -> str:
        """The model in words."""
        return f"{BACKBONES.named(self.backbone).title}, {LIKELIHOODS.named(self.likelihood).title.lower()}"

    @property
    def forecasts_true(self) -> bool:
        """Whether the model forecasts true rather than observed demand."""
        likelihood = LIKELIHOODS.named(self.likelihood)
        return likelihood.aware or likelihood.imputes or self.target != "y"

    def set_weights(self, weights: Sequence[dict[str, torch.Tensor]]) -> None:
        """Build the networks with these weights, one set per seed. Regions, positions and encoding must be set."""
        device = "cuda" if torch.cuda.is_available() else "cpu"
        outputs = self._likelihood().outputs
        self.scale_ = self.encoding_.scale
        self.networks_ = []
        for values in weights:
            graph = Graph(region_graph(self.positions_, len(self.regions_)))
            with torch.random.fork_rng(devices=[]):  # the random initial weights are replaced below
                backbone = BACKBONES.named(self.backbone)(self.encoding_.shape(self.lags), graph)
                network = ForecastNetwork(backbone, outputs).to(device)
            network.load_state_dict(values)
            self.networks_.append(network)

    def _check(self) -> Likelihood:
        """Check the options and return the likelihood."""
        likelihood = self._likelihood()
        try:
            BACKBONES.named(self.backbone)
        except InputError as error:
            raise InputError(f"{error} These are networks; {', '.join(DIRECT)} are not.") from None
        if self.seeds < 1 or self.lags < 1 or self.horizon < 1 or (self.workers is not None and self.workers < 1):
            raise InputError("seeds, lags, horizon and workers must be at least 1.")
        if self.horizon > 1 and self.training.by == "window":
            raise InputError("Training by windows looks one hour ahead: set the horizon to 1, or train by chunks.")
        if likelihood.imputes and self.target != "y":
            raise InputError(f"A model with likelihood {self.likelihood} learns from y, not from {self.target}.")
        train, stop = self.shares
        if not (train > 0 and stop > 0 and train + stop <= 1):
            raise InputError(
                f"Shares of {train:g} and {stop:g} make no sense: give positive shares that sum to at most 1."
            )
        return likelihood

    def _frame(self, times: pl.Series, quantiles: Floats) -> pl.DataFrame:
        return long_frame(self.regions_, times, quantiles, self._likelihood().levels)

    def _reads_lost(self) -> bool:
        return self._likelihood().imputes

    def _calibrated(self, networks: Sequence[ForecastNetwork] | None = None) -> CalibratedEnsemble:
        """The networks (all by default) with the calibration of the fit."""
        return CalibratedEnsemble(
            Ensemble(networks or self.networks_, self._likelihood(), self.encoding_, self.lags),
            self.calibration_,
            self.split_.train_end,
            self.split_.fit_end,
            self.floor,
            is_rolling=self.calibrate and self.target == "y",
        )

    def _likelihood(self) -> Likelihood:
        return LIKELIHOODS.named(self.likelihood)(self.levels)


def _split_hours(series: PanelSeries, shares: tuple[float, float], lags: int) -> tuple[int, int]:
    """Number of hours for training, and number of hours for training and early stopping together."""
    train_hours = int(series.hours * shares[0])
    fit_hours = int(round(series.hours * sum(shares), 6))  # 0.9 x hours may be just below a whole number
    min_hours = lags + MIN_TARGETS
    if train_hours < min_hours or fit_hours <= train_hours:
        needed = max(int(np.ceil(min_hours / shares[0])), int(np.ceil(MIN_TARGETS / shares[1])))
        raise InputError(
            f"The panel covers {series.hours} hours, too few to learn from with {lags} lags: give {needed} hours or "
            "more, or fewer lags."
        )
    empty = ~np.isfinite(series.target[lags:train_hours]).any(axis=0)
    if empty.any():
        name = series.names[int(empty.argmax())]
        raise InputError(
            f"Region {name} has no usable hour to learn from between {series.first + lags * HOUR:%Y-%m-%d} "
            f"and {series.first + train_hours * HOUR:%Y-%m-%d}: leave it out of the panel, or learn from a "
            "larger share of it."
        )
    if not np.isfinite(series.target[train_hours:fit_hours]).any():
        raise InputError(
            f"The panel has no usable hour between {series.first + train_hours * HOUR:%Y-%m-%d} and "
            f"{series.first + fit_hours * HOUR:%Y-%m-%d} for early stopping: give a longer panel."
        )
    return train_hours, fit_hours
