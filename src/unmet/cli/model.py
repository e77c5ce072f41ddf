"""Verbs on models: fit, forecast and evaluate."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from unmet.cli.options import BACKBONES, LIKELIHOODS, Json, ModelPath, Overwrite, PanelPath, Seed, Tables

__all__ = ["evaluate", "fit", "forecast"]


def fit(
    panel: PanelPath,
    out: Annotated[Path, typer.Option(help="Run folder to write to.")],
    backbone: Annotated[
        str, typer.Option(help=f"What forecasts: {', '.join(BACKBONES)}. The last four are networks.")
    ] = "stacked",
    likelihood: Annotated[
        str,
        typer.Option(help=f"What an hour of the records says of true demand: {', '.join(LIKELIHOODS)}. The first "
                     "learns from the draws of lost demand in a panel of `unmet panel`, the others do not; quantile "
                     "forecasts observed demand. The last three need a network."),
    ] = "exposure",
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Of a network: trainings from different beginnings. [10]")
    ] = None,
    seed: Seed = 1,
    horizon: Annotated[int, typer.Option(min=1, help="Hours to look ahead; 1 is the paper's model.")] = 168,
    lags: Annotated[int | None, typer.Option(min=1, help="Of a network: hours to look back. [168]")] = None,
    level: Annotated[
        list[float] | None, typer.Option(help="Quantile to forecast; give it several times. [0.05, 0.5, 0.95]")
    ] = None,
    feature: Annotated[
        list[str] | None, typer.Option(help="Further numeric column of the panel to read; give it several times.")
    ] = None,
    target: Annotated[str, typer.Option(help="Column to learn; y_true of a simulation gives an oracle.")] = "y",
    training: Annotated[
        str | None,
        typer.Option(help="Of a network: chunk (fast), or paper: windows, 3e-4, up to 1000 epochs, with --horizon 1. "
                     "[chunk]"),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Of a network: epochs at most. [80; 1000 with --training paper]")
    ] = None,
    test_share: Annotated[float, typer.Option(min=0, max=0.5, help="Last share of the hours, kept to test on.")] = 0.1,
    regions: Annotated[
        Path | None, typer.Option(help="Table of positions (unique_id, lat, lon). [that of the panel's folder]")
    ] = None,
    time_zone: Annotated[
        str | None, typer.Option(help="Time zone of the calendar. [that of the panel, else UTC]")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Trainings of a network at once. [one a core]")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the training of a network that was stopped.")
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Fit a model of true demand on a panel, and say how it compares with a table of the last weeks.

    Ctrl-C during the training of a network keeps the best weights so far; --resume goes on.
    """
    import shutil

    from unmet.demand.stored import read_panel
    from unmet.evaluation.evaluate import evaluate as score
    from unmet.models.direct import DIRECT
    from unmet.models.forecaster import Forecaster
    from unmet.models.levels import LEVELS
    from unmet.runs import run_folder
    from unmet.views.model import print_model, write_fit
    from unmet.views.model_report import ModelReport
    from unmet.views.terminal import next_step, progress, report_set_aside, say, training_progress

    stored = read_panel(panel)
    common = {
        "levels": tuple(level or LEVELS),
        "seed": seed,
        "horizon": horizon,
        "features": tuple(feature or ()),
        "target": target,
        "shares": (0.9 - test_share, 0.1),
        "time_zone": time_zone or stored.time_zone or "UTC",
    }
    trainings = None
    model: Any
    if backbone in DIRECT:
        given = {"--seeds": seeds, "--lags": lags, "--training": training, "--epochs": epochs, "--workers": workers}
        _refuse_of_networks(backbone, [name for name, value in given.items() if value] + ["--resume"] * resume)
        model = Forecaster(backbone, likelihood, **common)
    else:
        from unmet.models.checkpoint import training_folder
        from unmet.models.training import training_named

        model = Forecaster(
            backbone,
            likelihood,
            **common,
            seeds=seeds or 10,
            lags=lags or 168,
            training=training_named(training or "chunk", epochs),
            workers=workers,
        )
        trainings = training_folder(out, resume=resume, overwrite=overwrite)
    with run_folder(out, overwrite=overwrite or resume) as folder:
        places = regions or stored.regions
        if trainings is None:
            with progress("Fitting tables, regression and trees"):
                model.fit(stored.source, places)
        else:
            with training_progress(model.seeds, model.training.epochs) as advance:
                model.fit(stored.source, places, checkpoints=trainings, on_progress=advance)
        with progress("Forecasting unseen hours and drawing the figures"):
            shown = ModelReport(model, score(model, stored.table) if test_share else None)
            write_fit(shown, folder)
    report_set_aside(model.set_aside_)
    print_model(shown, out, as_json=as_json)
    if not model.finished_:
        say(f"Stopped: the best weights so far are kept. The same command with --resume goes on from {trainings}.")
        raise typer.Exit(130)
    if trainings is not None:
        shutil.rmtree(trainings)
    next_step(f"`unmet forecast {out} {panel} --out RUN` gives the hours to come.")


def _refuse_of_networks(backbone: str, given: list[str]) -> None:
    """Refuse options that only networks have."""
    from unmet.errors import InputError

    if given:
        raise InputError(
            f"Only a network has {', '.join(given)}, and {backbone} is none: name one, as --backbone tgcn, or leave "
            "that out."
        )


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
    update: Annotated[
        list[Path] | None,
        typer.Option(help="Records of the last days to put onto the panel first; give it several times. Sessions for a "
                     "panel of `unmet panel`, else rows of the table. Takes seconds, and no new fit."),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(min=20, help="Write so many draws of the hours to come, which may be summed over hours and "
                     "regions."),
    ] = None,
    tables: Tables = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Forecast true demand for the hours after the end of a panel, with intervals for hours, days and their sum."""
    from unmet.demand.stored import read_panel
    from unmet.errors import InputError
    from unmet.models.direct.forecaster import DirectForecaster
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
    direct = isinstance(fitted, DirectForecaster)
    if draws and not direct:
        raise InputError(f"A {fitted.backbone} network tells quantiles, not draws: fit with --backbone stacked.")
    with run_folder(out, overwrite=overwrite) as folder, progress("Forecasting"):
        table = stored.table
        if update:
            from unmet.models.updating import updated_table

            table = updated_table(panel, update)
            table.write_parquet(folder / "panel.parquet")
        drawn = None
        if isinstance(fitted, DirectForecaster):
            made = fitted.forecast(table, hours, future).hours
            drawn = fitted.draw(table, draws or DRAWS, hours, future)
        else:
            made = fitted.recalibrate(table).forecast(table, hours, future).hours
        past = read_series(table, names=fitted.regions_, last_hours=168).table()
        summary = write_forecast(ForecastReport(fitted, made, past, drawn, keep_draws=draws is not None), folder)
        write_table_files(folder, formats)
    print_forecast(summary, out, as_json=as_json)
    next_step(f"`unmet report {out}` makes a page to send, together with a run of `unmet recover`.")


DRAWS = 200  # by which sums have intervals, unless more are asked for


def evaluate(
    model: ModelPath,
    panel: PanelPath,
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
    since: Annotated[
        datetime | None, typer.Option(help="First hour to score, UTC. [the end of what the model was fitted on]")
    ] = None,
    peers: Annotated[
        bool,
        typer.Option("--peers/--no-peers", help="Compare with LightGBM and statsforecast as well, if installed."),
    ] = True,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Score a model on hours that it has not seen, beside a table, last week's value and other libraries."""
    from datetime import UTC

    from unmet.demand.stored import read_panel
    from unmet.evaluation.evaluate import evaluate as score
    from unmet.evaluation.rivals import PEERS, SIMPLE
    from unmet.models.storage import load_model
    from unmet.runs import run_folder
    from unmet.views.model import print_model, write_evaluation
    from unmet.views.model_report import ModelReport
    from unmet.views.terminal import next_step, progress

    fitted, stored = load_model(model), read_panel(panel)
    fitted.check_places(stored.regions)
    with run_folder(out, overwrite=overwrite) as folder, progress("Forecasting unseen hours and drawing the figures"):
        rivals = (*SIMPLE, *(rival for rival in PEERS if peers and rival.is_installed()))
        begin = since.replace(tzinfo=UTC) if since else None
        shown = ModelReport(fitted, score(fitted, stored.table, begin, rivals))
        write_evaluation(shown, folder)
    print_model(shown, out, as_json=as_json)
    next_step(f"`unmet forecast {model} {panel} --out RUN` gives the hours to come.")
