"""Direct forecaster: a stack of tables and models of expected demand, with full distributions and joint draws."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import polars as pl

from unmet.arrays import Floats, Integers
from unmet.errors import InputError
from unmet.frames import Frame, to_frame_type
from unmet.models.direct import DIRECT, Recipe
from unmet.models.direct.conditional import WINDOW
from unmet.models.direct.engine import MIN_HOURS, STRIDE, Engine, PastForecasts, fit_engine, session_energy
from unmet.models.direct.features import WEEK, band_of, bands, blocks_of_origins
from unmet.models.direct.free_days import PRIOR, free_days, known_country, learned_quietness, local_days
from unmet.models.direct.history import HourlyHistory, build_history
from unmet.models.direct.member import Member
from unmet.models.direct.notes import direct_notes
from unmet.models.direct.paths import GRID, MIN_TRAJECTORIES, draw_paths, probabilities, trajectory_ranks
from unmet.models.direct.regression import Regression
from unmet.models.direct.trees import Trees
from unmet.models.forecaster import Forecaster, Split, long_frame
from unmet.models.quantile_levels import LEVELS, checked_levels
from unmet.models.series import HOUR, PanelSeries, read_ahead, read_positions, read_series, with_lost

__all__ = ["MEMBERS", "DirectForecaster"]


MEMBERS: dict[str, type[Member]] = {kind.name: kind for kind in (Regression, Trees)}
LIKELIHOODS = {"exposure": "true", "quantile": "observed"}  # which demand each of them forecasts
DRAWS_SEED = 4  # stream of random numbers for draws
DAY = 24


class DirectForecaster(Forecaster):
    """Forecast every future hour directly from the present.

    Args:
        backbone: stacked, climatology, regression or lightgbm.
        likelihood: exposure, which learns true demand from the panel's draws of lost demand, or quantile, which
            learns observed demand.
        levels: levels of the quantiles to forecast.
        seed: the same seed gives the same model.
        horizon: number of hours ahead [h].
        features: additional numeric columns of the panel that are known in advance, such as a weather forecast.
        target: the column to learn; the true demand of a simulation gives an oracle.
        shares: two shares of the hours; the model learns from their sum, and the rest is held out.
        time_zone: time zone of the calendar; by default the panel's, else UTC.
        country: country of the public holidays, such as DK or US-CA; by default the panel's, else that of the time
            zone.
        workers: threads for growing trees; by default one.
    """

    def __init__(
        self,
        backbone: str = "stacked",
        likelihood: str = "exposure",
        *,
        levels: Sequence[float] = LEVELS,
        seed: int = 1,
        horizon: int = 168,
        features: Sequence[str] = (),
        target: str = "y",
        shares: tuple[float, float] = (0.8, 0.1),
        time_zone: str | None = None,
        country: str | None = None,
        workers: int | None = None,
    ) -> None:
        self.backbone = backbone
        self.likelihood = likelihood
        self.levels = levels
        self.seed = seed
        self.horizon = horizon
        self.features = features
        self.target = target
        self.shares = shares
        self.time_zone = time_zone
        self.country = country
        self.workers = workers

    # Fitted: regions_, positions_, split_, engine_, scale_, extra_mean_, extra_spread_, country_, quietness_,
    # set_aside_, notes_
    engine_: Engine
    country_: str | None
    quietness_: dict[str, float]  # quietness of days off, by kind
    extra_mean_: Floats
    extra_spread_: Floats

    @property
    def title(self) -> str:
        """The model in words."""
        return DIRECT[self.backbone].title

    @property
    def forecasts_true(self) -> bool:
        """Whether the model forecasts true rather than observed demand."""
        return self.likelihood == "exposure" or self.target != "y"

    def fit(self, panel: Any, positions: Any = None) -> Self:
        """Fit on a panel, as for every `Forecaster`; for true demand, a table needs `lost_kwh_before, lost_draws`.

        `positions` are kept to recognise the regions of later panels.
        """
        recipe = self._check()
        given = self._read_training_input(panel, self.shares)
        positions = given.regions if positions is None else positions
        series = read_series(given.table, target=self.target, extras=self.features, with_lost=self._reads_lost())
        fit_hours = int(round(series.hours * sum(self.shares), 6))  # 0.9 x hours may be just below a whole number
        if fit_hours < WEEK:
            raise InputError(
                f"The panel has {fit_hours} hours to learn from: give one week or more, or learn from a larger share."
            )
        kinds = [MEMBERS[name] for name in recipe.members]
        if len(kinds) == 1 and not kinds[0].is_installed():
            raise InputError(
                f"The backbone {self.backbone} needs LightGBM: install it with `pip install 'unmet[trees]'`, or fit "
                "with --backbone stacked, which works without it."
            )
        installed = [kind for kind in kinds if kind.is_installed()]
        self.regions_ = series.names
        self.positions_ = None if positions is None else read_positions(positions, series.names)
        extras = series.extras[:fit_hours]
        self.extra_mean_ = np.array([_finite_mean(extras[..., i]) for i in range(extras.shape[2])])
        spread = np.sqrt([_finite_mean((extras[..., i] - m) ** 2) for i, m in enumerate(self.extra_mean_)])
        # A constant column has a spread of rounding errors only, and is not scaled.
        self.extra_spread_ = np.where(spread > 1e-9 * np.abs(self.extra_mean_), spread, 1.0)
        largest = np.nan_to_num(series.demand[:fit_hours]).max(axis=0, initial=0.0)
        self.scale_ = np.where(largest > 0, largest, 1.0)
        full = with_lost(series)
        self.country_ = self.country or given.country or known_country(self.time_zone_)
        self.quietness_ = learned_quietness(full, fit_hours, self.time_zone_, self.country_) if installed else {}
        session_kwh = session_energy(full.target[:fit_hours])
        history = self._history(full, session_kwh, fit_hours)
        threads = self.workers or 1  # more threads hardly speed up trees of this size
        self.engine_ = fit_engine(
            history, recipe.tables, installed, self.horizon, session_kwh, np.array(checked_levels(self.levels)),
            seed=self.seed, threads=threads,
        )  # fmt: skip
        end = series.first + fit_hours * HOUR
        self.split_ = Split(series.first, end, end)
        self.set_aside_ = series.set_aside
        missing = [kind.title for kind in kinds if kind not in installed]
        self.notes_ = direct_notes(series, fit_hours, missing, MIN_HOURS)
        return self

    def predict(self, panel: Any, since: dt.datetime | None = None) -> Frame:
        """Forecasts one hour ahead for every past hour from `since` on, by default the end of the fit.

        Columns: `unique_id, ds, mean` [kWh], `no_demand` (its probability), the quantiles [kWh].
        """
        return self.hindcast(panel, 1, since)

    def hindcast(
        self, panel: Any, horizon: int, since: dt.datetime | None = None, levels: Sequence[float] | None = None
    ) -> Frame:
        """Forecasts of every past hour from `since` on, as they would have been made `horizon` hours earlier.

        Args:
            panel: panel with the past hours; the model does not learn from those after the fit.
            horizon: number of hours ahead, at most the model's horizon [h].
            since: first hour; by default the end of the fit.
            levels: levels of the quantiles; by default those of the model.
        """
        self._check_hours(horizon)
        given = self.read(panel)
        series = self.series(given.table)
        hours = np.arange(max(series.hour_from(since or self.split_.fit_end), horizon), series.hours)
        if not len(hours):
            raise InputError(
                f"No hour of the panel comes after {since or self.split_.fit_end:%Y-%m-%d %H:%M}: give a longer panel."
            )
        chosen = checked_levels(self.levels if levels is None else levels)
        result = self._hindcast_quantiles(series, hours, np.full(len(hours), horizon), np.array(chosen))
        return to_frame_type(self._frame(series.times()[int(hours[0]) :], result, chosen), given.frame_type)

    def backtest(self, panel: Any, since: dt.datetime | None = None, every: int = 24) -> Frame:
        """Forecasts as they would have been made every `every` hours from `since` on, each over the whole horizon.

        Columns: `unique_id, ds, cutoff` (the first hour forecast), `horizon` [h], `mean`, `no_demand`, the quantiles
        [kWh]. `since` is by default the end of the fit.
        """
        if every < 1:
            raise InputError(f"Forecasts every {every} hours make no sense: give at least one hour.")
        given = self.read(panel)
        series = self.series(given.table)
        origins = np.arange(
            max(series.hour_from(since or self.split_.fit_end), 1), series.hours - self.horizon + 1, every
        )
        if not len(origins):
            raise InputError(
                f"The panel has fewer than {self.horizon} hours after {since or self.split_.fit_end:%Y-%m-%d %H:%M}: "
                "give a longer panel, or a model with a shorter horizon."
            )
        steps = np.arange(1, self.horizon + 1)
        hours = (origins[:, None] + steps - 1).ravel()
        chosen = checked_levels(self.levels)
        result = self._hindcast_quantiles(series, hours, np.tile(steps, len(origins)), np.array(chosen))
        times, regions = series.times(), len(series.names)
        frames = [
            self._frame(times[int(origin) : int(origin) + self.horizon], part, chosen).with_columns(
                cutoff=pl.lit(times[int(origin)]), horizon=pl.Series(np.tile(steps, regions))
            )
            for origin, part in zip(origins, np.split(result, len(origins)), strict=True)
        ]
        return to_frame_type(pl.concat(frames), given.frame_type)

    def _forecast(self, table: Any, hours: int | None, future: Any) -> pl.DataFrame:
        series, history, hours = self._ahead(table, hours, future)
        steps = np.arange(1, hours + 1)
        levels = np.array(checked_levels(self.levels))
        before = self._recent_forecasts(series, history, series.hours)
        breaks = self.engine_.breaks(history, before, before.expected)
        result = self.engine_.quantiles(history, series.hours - 1 + steps, steps, before, levels, breaks)
        frame = self._frame(series.times(hours)[-hours:], result, checked_levels(self.levels))
        return frame.insert_column(2, pl.Series("horizon", np.tile(steps, len(series.names))))

    def draw(self, panel: Any, number: int, hours: int | None = None, future: Any = None) -> tuple[pl.Series, Floats]:
        """Joint draws of demand in the hours after the end of a panel; they can be summed over hours and regions.

        `number` is the number of draws; the other arguments are those of `forecast`.

        Returns:
            The hours, and draws of shape (draws, hours, regions) [kWh], regions in the order of `regions_`.
        """
        if number < 1:
            raise InputError(f"{number} draws make no sense: ask for at least one.")
        series, history, hours = self._ahead(panel, hours, future)
        rng = np.random.default_rng([self.seed, DRAWS_SEED])
        before = self._recent_forecasts(series, history, series.hours)
        steps = np.arange(1, hours + 1)
        breaks = self.engine_.breaks(history, before, before.expected)
        ahead = self.engine_.quantiles(history, series.hours - 1 + steps, steps, before, GRID, breaks)
        ranks = self._ranks(series, history, before, hours, rng)
        drawn = draw_paths(np.sort(ahead[..., :-2], axis=-1), ahead[..., -2], ranks, number, rng)
        return series.times(hours)[-hours:], drawn

    def _ranks(
        self, series: PanelSeries, history: HourlyHistory, before: PastForecasts, hours: int, rng: np.random.Generator
    ) -> Floats | None:
        """Trajectories of ranks from origins at the same hour of past days, (origins, hours, regions).

        None if there are too few origins. `before` holds the past forecasts up to the end of the panel.
        """
        last = history.hours
        first = max(last - WINDOW, WEEK + hours)  # every forecast has at least a week of history
        origins = np.arange(last - hours, first - 1, -DAY)
        if len(origins) < MIN_TRAJECTORIES:
            return None
        start, n_bands = int(origins[-1]), int(band_of(np.array([hours]))[0]) + 1
        past = np.arange(start, last)
        probability = np.empty((n_bands, len(past), history.regions))  # of the demand within its forecast
        for band, (nearest, farthest) in enumerate(bands(self.horizon)[:n_bands]):
            ahead = nearest + past * STRIDE % (farthest - nearest + 1)
            result = self.engine_.quantiles(history, past, ahead, before, GRID)[..., :-2]
            demand, uniform = history.target[past], rng.random(result.shape[:2])
            probability[band] = probabilities(np.sort(result, axis=-1), demand, uniform)
        steps = np.arange(1, hours + 1)
        return trajectory_ranks(probability[band_of(steps)[None], origins[:, None] + steps - 1 - start], rng)

    def _ahead(self, panel: Any, hours: int | None, future: Any) -> tuple[PanelSeries, HourlyHistory, int]:
        """The series, its history with the covariates of future hours, and the number of future hours."""
        hours = self.horizon if hours is None else hours
        self._check_hours(hours)
        series = self.series(self.read(panel).table)
        ahead = read_ahead(future, self.features, series, hours)
        return series, self._history(with_lost(series), self.engine_.session_kwh, series.hours, ahead), hours

    def _history(
        self, series: PanelSeries, session_kwh: Floats, hours: int, ahead: Floats | None = None
    ) -> HourlyHistory:
        """The states of the first hours of a series, and the calendar and covariates of future hours.

        `ahead` are the covariates of the future hours, (future hours, regions, columns); None if there are none.
        """
        future_hours = 0 if ahead is None else len(ahead)
        extras = series.extras[:hours] if ahead is None else np.concatenate([series.extras[:hours], ahead])
        extras = np.nan_to_num((extras - self.extra_mean_) / self.extra_spread_)
        week = series.week(self.time_zone_, future_hours).astype(np.int64)
        quiet = self._quiet(series, future_hours)
        end = hours + future_hours
        return build_history(series.demand[:hours], series.target[:hours], extras, week[:end], session_kwh, quiet[:end])

    def _quiet(self, series: PanelSeries, ahead: int) -> Floats:
        """Quietness of the days of past and future hours; 0 on ordinary days."""
        if not self.quietness_:
            return np.zeros(series.hours + ahead)
        days = local_days(series.times(ahead), self.time_zone_)
        by_day = {day: self.quietness_.get(kind, PRIOR[kind]) for kind, free in free_days(days, self.country_).items()
                  for day in free}  # fmt: skip
        return np.array([by_day.get(day, 0.0) for day in days])

    def _recent_forecasts(self, series: PanelSeries, history: HourlyHistory, until: int) -> PastForecasts:
        """Forecasts of the last hours before `until`, and the demand that followed."""
        first = max(until - WINDOW, 0)
        fitted = series.hour_from(self.split_.fit_end)
        expected = self.engine_.expected(history, fitted, first, until)
        return PastForecasts(until, expected, history.target[first:until], fitted)

    def _hindcast_quantiles(self, series: PanelSeries, hours: Integers, horizon: Integers, levels: Floats) -> Floats:
        """Forecasts of past hours as made at the time, (targets, regions, levels + 2), as in `Engine.quantiles`.

        All forecasts of a day use the past forecasts up to its start; breaks are found once for a week.
        """
        history = self._history(with_lost(series), self.engine_.session_kwh, series.hours)
        result = np.empty((len(hours), history.regions, len(levels) + 2))
        fitted = series.hour_from(self.split_.fit_end)
        blocks = list(blocks_of_origins(hours - horizon + 1, fitted, DAY))
        first = max(blocks[0][0] - WEEK - WINDOW, 0)
        expected = self.engine_.expected(history, fitted, first, series.hours)

        def past(begin: int, end: int) -> Floats:
            """Expected demand from `WINDOW` hours before `begin` to `end`."""
            return np.asarray(expected[:, :, max(begin - WINDOW, 0) - first : end - first])

        def before(begin: int) -> PastForecasts:
            return PastForecasts(begin, past(begin, begin), history.target[max(begin - WINDOW, 0) : begin], fitted)

        week, breaks = -1, None
        for begin, in_block in blocks:
            start = begin - (begin - fitted) % WEEK
            if start != week:
                week, breaks = start, self.engine_.breaks(history, before(start), past(start, start + WEEK))
            targets, ahead = hours[in_block], horizon[in_block]
            result[in_block] = self.engine_.quantiles(history, targets, ahead, before(begin), levels, breaks)
        return result

    def _frame(self, times: pl.Series, result: Floats, levels: Sequence[float]) -> pl.DataFrame:
        extra = {"mean": result[..., -2], "no_demand": result[..., -1]}
        return long_frame(self.regions_, times, np.sort(result[..., :-2], axis=-1), levels, extra)

    def series(self, panel: Any, last_hours: int | None = None) -> PanelSeries:
        """A panel of the model's regions as arrays, with the column that was learned."""
        self.check_fitted()
        return read_series(
            panel,
            target=self.target,
            extras=self.features,
            with_lost=self._reads_lost(),
            names=self.regions_,
            last_hours=last_hours,
        )

    def _reads_lost(self) -> bool:
        return self.likelihood == "exposure"

    def _check(self) -> Recipe:
        """Check the options and return the recipe of the backbone."""
        if self.likelihood not in LIKELIHOODS:
            raise InputError(
                f"The backbone {self.backbone} does not combine with likelihood {self.likelihood}: give exposure "
                "(true demand) or quantile (observed demand), or name a network, such as --backbone tgcn."
            )
        checked_levels(self.levels)
        if self.horizon < 1 or (self.workers is not None and self.workers < 1):
            raise InputError("horizon and workers must be at least 1.")
        if self._reads_lost() and self.target != "y":
            raise InputError(f"A model with likelihood {self.likelihood} learns from y, not from {self.target}.")
        train, stop = self.shares
        if not (train > 0 and stop >= 0 and train + stop <= 1 + 1e-9):
            raise InputError(
                f"Shares of {train:g} and {stop:g} make no sense: give positive shares that sum to at most 1."
            )
        return DIRECT[self.backbone]


def _finite_mean(values: Floats) -> float:
    """Mean of the finite values; 0 if there are none."""
    finite = values[np.isfinite(values)]
    return float(finite.mean()) if len(finite) else 0.0
