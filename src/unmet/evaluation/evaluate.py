"""Evaluation of a fitted model on held-out hours, always compared with the table and with last week's value."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from unmet.csv_files import read_frame
from unmet.errors import InputError
from unmet.evaluation.compare import HORIZONS, Comparison, compare
from unmet.evaluation.rivals import SIMPLE, Rival
from unmet.evaluation.score import by_horizon, by_region, score, with_actual
from unmet.evaluation.thinning import FULL_EXPOSURE, GRID, thin_forecast
from unmet.frames import POLARS, Frame, to_frame_type
from unmet.models.calibration import EDGES
from unmet.models.direct.forecaster import DirectForecaster
from unmet.models.forecaster import Forecaster
from unmet.models.series import PanelSeries, read_series, with_lost
from unmet.tables import as_frame

__all__ = ["Evaluation", "evaluate"]

EVERY = 5  # hours between the origins of a network's backtest; as 5 does not divide 24, all hours of the day occur
AHEAD = (*EDGES, 168)  # horizons at which a direct forecaster is scored

TRUE, OBSERVED, THINNED = "true demand", "observed demand", "observed demand, thinned"
"""What forecasts are scored against. Thinned: forecasts of true demand, reduced to what would have been observed."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores of a model's forecasts of held-out hours."""

    since: dt.datetime
    against: str  # column: y, observed demand, or y_true, true demand
    scored_as: str  # TRUE, OBSERVED or THINNED
    overall: dict[str, float]  # one hour ahead
    fully_exposed: dict[str, float] | None  # scores of a forecast of true demand in hours without losses
    regions: list[dict[str, Any]]  # one hour ahead, by region
    horizons: list[dict[str, Any]]  # by horizon; empty for a model with a horizon of one hour
    comparison: Comparison
    hours: pl.DataFrame  # unique_id, ds, quantiles, y, y_true if it is known
    frame_type: str = POLARS

    @property
    def table(self) -> Frame:
        """Every held-out hour one hour ahead, as a data frame of the library that the panel came in.

        Columns: `unique_id, ds`, the quantiles [kWh], `y` [kWh], and `y_true` [kWh] if it is known.
        """
        return to_frame_type(self.hours, self.frame_type)

    def summary(self) -> dict[str, Any]:
        """All scores as plain values for JSON; NaN becomes None."""
        compared = self.comparison
        return {
            "since": self.since.isoformat(),
            "against": self.against,
            "scored_as": self.scored_as,
            **_plain(self.overall),
            "fully_exposed": None if self.fully_exposed is None else _plain(self.fully_exposed),
            "regions": [_plain(row) for row in self.regions],
            "horizons": [_plain(row) for row in self.horizons],
            "compared": [_plain(row) for row in compared.by_horizon().iter_rows(named=True)],
            "worse_than_table": compared.worse_regions(),
            "regions_and_table": [_plain(row) for row in compared.by_region().iter_rows(named=True)],
        }


def _plain(measures: dict[str, Any]) -> dict[str, Any]:
    """The measures with None for NaN, which is not equal to itself."""
    return {name: None if value != value else value for name, value in measures.items()}


def evaluate(
    model: Forecaster,
    panel: Any = None,
    since: dt.datetime | None = None,
    rivals: Sequence[Rival] = SIMPLE,
    ahead: Sequence[int] = AHEAD,
) -> Evaluation:
    """Score a model's forecasts of held-out hours.

    They are scored against true demand if the panel has it (`y_true`), else against observed demand: a forecast of true
    demand is then thinned by the exposure of each hour, and also scored over fully exposed hours alone. The measures
    are the paper's: the tilted loss sum_q rho_q(y - f_q), the coverage of the interval (ICP), its mean length (MIL).

    Args:
        model: a fitted forecaster.
        panel: a `Panel`, a fitted `LostDemand`, or a table; by default the panel of the fit.
        since: first hour to score; by default the end of the fit.
        rivals: methods to compare with, each fitted on the same hours.
        ahead: horizons at which a direct forecaster is scored [h]; a network is scored in pools of horizons.

    Returns:
        The evaluation: `.summary()` for the scores, in kWh and in units of each region's largest observed demand, and
        `.table` for every hour that was scored.

    Example:
        >>> model = unmet.Forecaster("climatology").fit(panel)  # an unmet.Panel
        >>> evaluation = evaluate(model, panel)
        >>> evaluation.scored_as
        'observed demand, thinned'
        >>> 0 <= evaluation.overall["icp"] <= 1
        True
    """
    given = model.read(panel)
    panel = read_frame(Path(given.table))[0] if isinstance(given.table, str | Path) else as_frame(given.table)
    since = since or model.split_.fit_end
    since = since if since.tzinfo else since.replace(tzinfo=dt.UTC)
    against = "y_true" if "y_true" in panel.columns else "y"
    actual = read_series(panel, target=against, names=model.regions_)
    if actual.first + dt.timedelta(hours=actual.hours) <= since:
        raise InputError(f"The panel ends before {since:%Y-%m-%d %H:%M}: no hours are left to score the model on. Give "
                         "later records, or fit with a larger --test-share.")  # fmt: skip
    scored_as = TRUE if against == "y_true" else OBSERVED
    if against == "y" and model.forecasts_true and isinstance(model, DirectForecaster) and "exposure" in panel.columns:
        scored_as = THINNED
    forecasts = _Forecasts(model, panel, since, thinned=scored_as == THINNED)
    table, scale = actual.table(), dict(zip(model.regions_, model.scale_.tolist(), strict=True))
    nearest = forecasts(1)
    rows = with_actual(nearest, table, "target", scale)
    horizons = _horizons(forecasts, actual, table, scale, ahead)
    if horizons and horizons[0]["to_hour"] == 1:  # one hour ahead, every hour is forecast
        horizons[0] |= score(rows, model.levels)
    open_hours = rows.filter(pl.col("exposure") >= FULL_EXPOSURE) if scored_as == THINNED else rows[:0]
    # Rivals learn what the model learned, unless only observed demand can be scored.
    learned = with_lost(model.series(panel)).target if against == "y_true" else actual.demand
    reach = [h for h in HORIZONS if h <= model.horizon and (h == 1 or horizons)]
    comparison = compare(forecasts, actual, learned, since, model.levels, reach, model.time_zone_, rivals)
    shown = table.rename({"target": against}) if against == "y" else table.rename({"demand": "y", "target": "y_true"})
    columns = [name for name in ("y", "y_true") if name in shown.columns]
    hours = nearest.join(shown.select("unique_id", "ds", *columns), on=["unique_id", "ds"], how="left")
    return Evaluation(
        since=since,
        against=against,
        scored_as=scored_as,
        overall=score(rows, model.levels),
        fully_exposed=score(open_hours, model.levels) if open_hours.height else None,
        regions=by_region(rows, model.levels),
        horizons=horizons,
        comparison=comparison,
        hours=hours,
        frame_type=given.frame_type,
    )


class _Forecasts:
    """Forecasts of past hours by horizon [h], each computed once."""

    def __init__(self, model: Forecaster, panel: pl.DataFrame, since: dt.datetime, *, thinned: bool) -> None:
        self.model, self.panel, self.since, self.thinned = model, panel, since, thinned
        self.by_horizon: dict[int, pl.DataFrame] = {}
        self.backtest: pl.DataFrame | None = None

    def __call__(self, horizon: int) -> pl.DataFrame:
        if horizon not in self.by_horizon:
            self.by_horizon[horizon] = self._compute(horizon)
        return self.by_horizon[horizon]

    def from_origins(self) -> pl.DataFrame:
        """Forecasts of a network over its whole horizon."""
        if self.backtest is None:
            self.backtest = self.model.backtest(self.panel, self.since, every=EVERY)
        return self.backtest

    def _compute(self, horizon: int) -> pl.DataFrame:
        model = self.model
        if not isinstance(model, DirectForecaster):
            if horizon == 1:
                predicted: pl.DataFrame = model.predict(self.panel, self.since)
                return predicted
            return self.from_origins().filter(pl.col("horizon") == horizon)
        if not self.thinned:
            hindcast: pl.DataFrame = model.hindcast(self.panel, horizon, self.since)
            return hindcast
        session_kwh = dict(zip(model.regions_, model.engine_.session_kwh.tolist(), strict=True))
        on_grid = model.hindcast(self.panel, horizon, self.since, GRID)
        return thin_forecast(on_grid, self.panel, session_kwh, model.levels)


def _horizons(
    forecasts: _Forecasts, actual: PanelSeries, table: pl.DataFrame, scale: dict[str, float], ahead: Sequence[int]
) -> list[dict[str, Any]]:
    """Scores by horizon, for horizons that fit into the held-out hours.

    `table` is that of `actual`, `scale` the scale of each region [kWh], and `ahead` the horizons to score [h].
    """
    model, since = forecasts.model, forecasts.since
    if model.horizon == 1:
        return []
    if isinstance(model, DirectForecaster):
        left = actual.hours - actual.hour_from(since)
        steps = [h for h in dict.fromkeys((*ahead, model.horizon)) if h <= min(model.horizon, left)]
        rows = {h: with_actual(forecasts(h), table, "target", scale) for h in sorted(steps)}
        return [{"from_hour": h, "to_hour": h} | score(part, model.levels) for h, part in rows.items()]
    lags = int(getattr(model, "lags", 0))
    earliest = max(since, actual.first + dt.timedelta(hours=lags))
    if actual.first + dt.timedelta(hours=actual.hours - model.horizon) < earliest:
        return []
    return by_horizon(with_actual(forecasts.from_origins(), table, "target", scale), model.levels)
