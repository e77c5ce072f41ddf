"""Verbs on models: fit, forecast and evaluate."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from unmet.cli.options import BACKBONES, LIKELIHOODS, Json, ModelPath, Overwrite, PanelPath, Seed, Tables

__all__ = ["evaluate", "fit", "forecast"]


def fit(
    panel: PanelPath,
    out: Annotated[Path, typer.Option(help="Run folder to write to.")],
    backbone: Annotated[str, typer.Option(help=f"What reads the past hours: {', '.join(BACKBONES)}.")] = "tgcn",
    likelihood: Annotated[
        str,
        typer.Option(help=f"What an hour of the records says of true demand: {', '.join(LIKELIHOODS)}. The first "
                     "learns from the draws of lost demand in a panel of `unmet panel`, the others do not."),
    ] = "exposure",
    seeds: Annotated[int, typer.Option(min=1, help="Trainings from different beginnings.")] = 10,
    seed: Seed = 1,
    horizon: Annotated[int, typer.Option(min=1, help="Hours to look ahead; 1 is the paper's model.")] = 168,
    lags: Annotated[int, typer.Option(min=1, help="Hours to look back.")] = 168,
    level: Annotated[
        list[float] | None, typer.Option(help="Quantile to forecast; give it several times. [0.05, 0.5, 0.95]")
    ] = None,
    feature: Annotated[
        list[str] | None, typer.Option(help="Further numeric column of the panel to read; give it several times.")
    ] = None,
    target: Annotated[str, typer.Option(help="Column to learn; y_true of a simulation gives an oracle.")] = "y",
    training: Annotated[
        str, typer.Option(help="chunk (fast), or paper: windows, 3e-4, up to 1000 epochs, with --horizon 1.")
    ] = "chunk",
    epochs: Annotated[int | None, typer.Option(min=1, help="Epochs at most. [80; 1000 with --training paper]")] = None,
    test_share: Annotated[float, typer.Option(min=0, max=0.5, help="Last share of the hours, kept to test on.")] = 0.1,
    regions: Annotated[
        Path | None, typer.Option(help="Table of positions (unique_id, lat, lon). [that of the panel's folder]")
    ] = None,
    time_zone: Annotated[
        str | None, typer.Option(help="Time zone of the calendar. [that of the panel, else UTC]")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Trainings at once. [one a core]")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the training that was stopped.")] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Fit a model of true demand on a panel. Ctrl-C keeps the best weights so far; --resume goes on."""
    import shutil

    from unmet.demand.stored import read_panel
    from unmet.evaluation.evaluate import evaluate as score
    from unmet.models.checkpoint import training_folder
    from unmet.models.forecaster import Forecaster
    from unmet.models.likelihoods import LEVELS
    from unmet.models.training import training_named
    from unmet.runs import run_folder
    from unmet.views.model import print_model, write_fit
    from unmet.views.model_report import ModelReport
    from unmet.views.terminal import next_step, progress, report_set_aside, say, training_progress

    stored = read_panel(panel)
    model = Forecaster(
        backbone,
        likelihood,
        levels=tuple(level or LEVELS),
        seeds=seeds,
        seed=seed,
        lags=lags,
        horizon=horizon,
        features=tuple(feature or ()),
        target=target,
        shares=(0.9 - test_share, 0.1),
        training=training_named(training, epochs),
        time_zone=time_zone or stored.time_zone or "UTC",
        workers=workers,
    )
    trainings = training_folder(out, resume=resume, overwrite=overwrite)
    with run_folder(out, overwrite=overwrite or resume) as folder:
        with training_progress(seeds, model.training.epochs) as advance:
            model.fit(stored.source, regions or stored.regions, checkpoints=trainings, on_progress=advance)
        with progress("Forecasting unseen hours and drawing the figures"):
            shown = ModelReport(model, score(model, stored.table) if test_share else None)
            write_fit(shown, folder)
    report_set_aside(model.set_aside_)
    print_model(shown, out, as_json=as_json)
    if model.finished_:
        shutil.rmtree(trainings)
        next_step(f"`unmet forecast {out} {panel} --out RUN` gives the hours to come.")
    else:
        say(f"Stopped: the best weights so far are kept. The same command with --resume goes on from {trainings}.")
        raise typer.Exit(130)


def forecast(
    model: ModelPath,
    panel: PanelPath,
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
    hours: Annotated[
        int | None, typer.Option(min=1, help="Hours to forecast. [as far as the model looks ahead]")
    ] = None,
    future: Annotated[
        Path | None, typer.Option(help="Table of the model's features for the hours to come (unique_id, ds and them).")
    ] = None,
    tables: Tables = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Forecast true demand for the hours after the end of a panel, with intervals calibrated by its last weeks."""
    from unmet.demand.stored import read_panel
    from unmet.models.series import read_series
    from unmet.models.storage import load_model
    from unmet.runs import run_folder
    from unmet.views.model import print_forecast, write_forecast
    from unmet.views.model_report import ForecastReport
    from unmet.views.table_files import parse_formats, write_table_files
    from unmet.views.terminal import next_step, progress

    formats = parse_formats(tables)

    fitted, stored = load_model(model), read_panel(panel)
    fitted.check_places(stored.regions)
    with run_folder(out, overwrite=overwrite) as folder, progress("Forecasting"):
        made = fitted.recalibrate(stored.table).forecast(stored.table, hours, future)
        past = read_series(stored.table, names=fitted.regions_, last_hours=fitted.lags).table()
        summary = write_forecast(ForecastReport(fitted, made, past), folder)
        write_table_files(folder, formats)
    print_forecast(summary, out, as_json=as_json)
    next_step(f"`unmet report {out}` makes a page to send, together with a run of `unmet recover`.")


def evaluate(
    model: ModelPath,
    panel: PanelPath,
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
    since: Annotated[
        datetime | None, typer.Option(help="First hour to score, UTC. [the end of what the model was fitted on]")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Score a model on hours that it has not seen: against true demand where the panel has it, else observed."""
    from datetime import UTC

    from unmet.demand.stored import read_panel
    from unmet.evaluation.evaluate import evaluate as score
    from unmet.models.storage import load_model
    from unmet.runs import run_folder
    from unmet.views.model import print_model, write_evaluation
    from unmet.views.model_report import ModelReport
    from unmet.views.terminal import next_step, progress

    fitted, stored = load_model(model), read_panel(panel)
    fitted.check_places(stored.regions)
    with run_folder(out, overwrite=overwrite) as folder, progress("Forecasting unseen hours and drawing the figures"):
        shown = ModelReport(fitted, score(fitted, stored.table, since.replace(tzinfo=UTC) if since else None))
        write_evaluation(shown, folder)
    print_model(shown, out, as_json=as_json)
    next_step(f"`unmet forecast {model} {panel} --out RUN` gives the hours to come.")
