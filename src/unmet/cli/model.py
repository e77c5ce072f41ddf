"""Commands on fitted models: forecast and evaluate."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from unmet.cli.options import Json, ModelPath, Overwrite, PanelPath, Tables

__all__ = ["evaluate", "forecast"]

DRAWS = 200  # default number of draws, from which the intervals of sums are computed
PAST_HOURS = 168  # observed hours that figures show before the forecast


def forecast(
    model: ModelPath,
    panel: PanelPath,
    out: Annotated[Path, typer.Option(help="Output folder.")],
    hours: Annotated[
        int | None, typer.Option(min=1, help="Hours to forecast. [the model's horizon]")
    ] = None,
    future: Annotated[
        Path | None, typer.Option(help="Table of the model's features in the hours ahead (unique_id, ds, features).")
    ] = None,
    update: Annotated[
        list[Path] | None,
        typer.Option(help="Recent records to append to the panel first; may be repeated. Sessions for a panel of "
                     "`unmet panel`, else rows of the table. Takes seconds and needs no new fit."),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(min=20, help="Write this many joint draws of the hours ahead, which may be summed over hours and "
                     "regions."),
    ] = None,
    tables: Tables = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Forecast true demand for the hours after a panel, with intervals for hours, days and all hours together."""
    from unmet.demand.stored import read_panel, write_table
    from unmet.errors import InputError
    from unmet.models.direct.forecaster import DirectForecaster
    from unmet.models.series import read_series
    from unmet.models.storage import load_model
    from unmet.runs import run_folder
    from unmet.views.forecast_pages import print_forecast, write_forecast
    from unmet.views.model_pages import worse_than_table
    from unmet.views.model_report import ForecastReport
    from unmet.views.table_files import parse_formats, write_table_files
    from unmet.views.terminal import next_step, progress

    formats = parse_formats(tables)
    fitted, stored = load_model(model), read_panel(panel)
    fitted.check_places(stored.regions)
    if draws and not isinstance(fitted, DirectForecaster):
        raise InputError(f"A {fitted.backbone} network forecasts quantiles, not draws: fit with --backbone stacked.")
    with run_folder(out, overwrite=overwrite) as folder, progress("Forecasting"):
        table = stored.table
        if update:
            from unmet.models.updating import updated_table

            table = updated_table(panel, update)
            write_table(table, folder)
        drawn = None
        if isinstance(fitted, DirectForecaster):
            expected = fitted.forecast(table, hours, future).hours
            drawn = fitted.draw(table, draws or DRAWS, hours, future)
        else:
            expected = fitted.recalibrate(table).forecast(table, hours, future).hours
        past = read_series(table, names=fitted.regions_, last_hours=PAST_HOURS).table()
        keep_draws, worse = draws is not None, worse_than_table(model)
        summary = write_forecast(ForecastReport(fitted, expected, past, drawn, keep_draws, worse), folder)
        write_table_files(folder, formats)
    print_forecast(summary, out, as_json=as_json)
    next_step(f"`unmet report RUN {out}` writes a report to share, together with a run of `unmet recover`.")


def evaluate(
    model: ModelPath,
    panel: PanelPath,
    out: Annotated[Path, typer.Option(help="Output folder.")],
    since: Annotated[
        datetime | None, typer.Option(help="First hour to score, UTC. [the end of the training hours]")
    ] = None,
    peers: Annotated[
        bool,
        typer.Option("--peers/--no-peers", help="Compare with LightGBM and statsforecast as well, if installed."),
    ] = True,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Score a model on held-out hours, next to a table of past weeks, last week's value and other libraries."""
    from datetime import UTC

    from unmet.demand.stored import read_panel
    from unmet.evaluation.evaluate import evaluate as score
    from unmet.evaluation.rivals import PEERS, SIMPLE
    from unmet.models.storage import load_model
    from unmet.runs import run_folder
    from unmet.views.model_pages import print_model, write_evaluation
    from unmet.views.model_report import ModelReport
    from unmet.views.terminal import next_step, progress

    fitted, stored = load_model(model), read_panel(panel)
    fitted.check_places(stored.regions)
    with run_folder(out, overwrite=overwrite) as folder, progress("Forecasting held-out hours and drawing the figures"):
        rivals = (*SIMPLE, *(rival for rival in PEERS if peers and rival.is_installed()))
        begin = since.replace(tzinfo=UTC) if since else None
        report = ModelReport(fitted, score(fitted, stored.table, begin, rivals))
        write_evaluation(report, folder)
    print_model(report, out, as_json=as_json)
    next_step(f"`unmet forecast {model} {panel} --out RUN` forecasts the hours ahead.")
