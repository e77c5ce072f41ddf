"""The command that fits a model of true demand."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from unmet.cli.option_groups import with_options
from unmet.cli.options import BACKBONES, LIKELIHOODS, Json, Overwrite, PanelPath, Seed
from unmet.errors import InputError

__all__ = ["fit"]

_NETWORKS = "Networks only"


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """Options for training a network. They do not apply to other models."""

    seeds: int | None
    lags: int | None
    training: str | None
    epochs: int | None
    workers: int | None
    resume: bool

    def check_unused(self, backbone: str) -> None:
        """Refuse these options for a backbone that is not a network."""
        given = {
            "--seeds": self.seeds, "--lags": self.lags, "--training": self.training, "--epochs": self.epochs,
            "--workers": self.workers, "--resume": self.resume,
        }  # fmt: skip
        if used := [name for name, value in given.items() if value]:
            raise InputError(
                f"Only networks take {', '.join(used)}, and {backbone} is not a network: choose one, such as "
                "--backbone tgcn, or leave the option out."
            )

    def arguments(self) -> dict[str, Any]:
        """The options as keyword arguments of `Forecaster`."""
        from unmet.models.training import training_named

        return {
            "seeds": self.seeds or 10,
            "lags": self.lags or 168,
            "training": training_named(self.training or "chunk", self.epochs),
            "workers": self.workers,
        }


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Which model is fitted, and what it forecasts."""

    backbone: str
    likelihood: str
    seed: int
    horizon: int
    levels: tuple[float, ...]  # empty: the default levels
    features: tuple[str, ...]
    target: str
    test_share: float
    time_zone: str | None
    country: str | None

    def model(self, time_zone: str | None, country: str | None, network: NetworkOptions) -> Any:
        """The model, not yet fitted. `time_zone` and `country` are those of the panel."""
        from unmet.models.direct import DIRECT
        from unmet.models.forecaster import Forecaster
        from unmet.models.quantile_levels import LEVELS

        if self.backbone in DIRECT:
            network.check_unused(self.backbone)
            own_arguments: dict[str, Any] = {"country": self.country or country}
        elif self.country:
            raise InputError(
                "A network reads holidays as a column of the panel: give --feature holiday, not --country."
            )
        else:
            own_arguments = network.arguments()
        return Forecaster(
            self.backbone,
            self.likelihood,
            levels=self.levels or LEVELS,
            seed=self.seed,
            horizon=self.horizon,
            features=self.features,
            target=self.target,
            shares=(0.9 - self.test_share, 0.1),  # for training, and for early stopping and calibration
            time_zone=self.time_zone or time_zone or "UTC",
            **own_arguments,
        )


def model_options(
    backbone: Annotated[
        str, typer.Option(help=f"Forecasting method: {', '.join(BACKBONES)}. The last five are networks.")
    ] = "stacked",
    likelihood: Annotated[
        str,
        typer.Option(help=f"What the records of an hour say about its true demand: {', '.join(LIKELIHOODS)}. exposure "
                     "learns from the draws of lost demand in a panel of `unmet panel`; the others do not. quantile "
                     "forecasts observed demand. The last three need a network."),
    ] = "exposure",
    seed: Seed = 1,
    horizon: Annotated[
        int, typer.Option(min=1, help="Hours to look ahead; 1 is the paper's model.", rich_help_panel="Options")
    ] = 168,
    level: Annotated[
        list[float] | None, typer.Option(help="Quantile to forecast; may be repeated. [0.05, 0.5, 0.95]")
    ] = None,
    feature: Annotated[
        list[str] | None, typer.Option(help="Further numeric column of the panel to use; may be repeated.")
    ] = None,
    target: Annotated[str, typer.Option(help="Column to forecast; y_true of a simulation gives an oracle.")] = "y",
    test_share: Annotated[
        float, typer.Option(min=0, max=0.5, help="Share of the hours, at the end, that is held out for testing.")
    ] = 0.1,
    time_zone: Annotated[
        str | None, typer.Option(help="Time zone of the calendar. [that of the panel, else UTC]")
    ] = None,
    country: Annotated[
        str | None,
        typer.Option(help="Country whose public holidays are known, such as DK or US-CA. [that of the panel, else of "
                     "the time zone]"),
    ] = None,
) -> ModelOptions:  # fmt: skip
    """The model to fit."""
    return ModelOptions(
        backbone, likelihood, seed, horizon, tuple(level or ()), tuple(feature or ()), target, test_share, time_zone,
        country,
    )  # fmt: skip


def network_options(
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="Networks to train, each with its own seed. [10]", rich_help_panel=_NETWORKS),
    ] = None,
    lags: Annotated[
        int | None, typer.Option(min=1, help="Hours to look back. [168]", rich_help_panel=_NETWORKS)
    ] = None,
    training: Annotated[
        str | None,
        typer.Option(help="chunk (fast), or paper: windows, learning rate 3e-4, up to 1000 epochs, with --horizon 1. "
                     "[chunk]", rich_help_panel=_NETWORKS),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            min=1, help="Maximum number of epochs. [80; 1000 with --training paper]", rich_help_panel=_NETWORKS
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Networks to train at once. [one per core]", rich_help_panel=_NETWORKS)
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume training that was stopped.", rich_help_panel=_NETWORKS)
    ] = False,
) -> NetworkOptions:  # fmt: skip
    """How to train a network."""
    return NetworkOptions(seeds, lags, training, epochs, workers, resume)


@with_options(model_options, network_options)
def fit(
    options: ModelOptions,
    network: NetworkOptions,
    panel: PanelPath,
    out: Annotated[Path, typer.Option(help="Output folder.")],
    regions: Annotated[
        Path | None, typer.Option(help="Table of positions (unique_id, lat, lon). [that of the panel's folder]")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Fit a model of true demand on a panel, and compare it with a table of the last weeks.

    Ctrl-C during the training of a network keeps the best weights so far; --resume continues.
    """
    from unmet.demand.stored import read_panel
    from unmet.evaluation.evaluate import evaluate as score
    from unmet.runs import run_folder
    from unmet.views.model_pages import print_model, write_fit
    from unmet.views.model_report import ModelReport
    from unmet.views.terminal import next_step, progress, report_set_aside, say, training_progress

    stored = read_panel(panel)
    model = options.model(stored.time_zone, stored.country, network)
    unfinished = _checkpoint_folder(options.backbone, out, resume=network.resume, overwrite=overwrite)
    with run_folder(out, overwrite=overwrite or network.resume) as folder, unfinished as checkpoints:
        positions = regions or stored.regions
        if checkpoints is None:
            with progress("Fitting tables, regression and trees"):
                model.fit(stored.source, positions)
        else:
            with training_progress(model.seeds, model.training.epochs) as advance:
                model.fit(stored.source, positions, checkpoints=checkpoints, on_progress=advance)
        with progress("Forecasting held-out hours and drawing the figures"):
            result = ModelReport(model, score(model, stored.table) if options.test_share else None)
            write_fit(result, folder)
    report_set_aside(model.set_aside_)
    print_model(result, out, as_json=as_json)
    if not model.finished_:
        say(f"Stopped: the best weights so far are kept. The same command with --resume continues from {checkpoints}.")
        raise typer.Exit(130)  # the usual code of a program that was interrupted
    if checkpoints is not None:
        from unmet.models.checkpoint import discard_trainings

        discard_trainings(out)
    next_step(f"`unmet forecast {out} {panel} --out RUN` forecasts the hours ahead.")


def _checkpoint_folder(
    backbone: str, out: Path, *, resume: bool, overwrite: bool
) -> AbstractContextManager[Path | None]:
    """The folder of a network's checkpoints during training; None for other models, which are fitted in seconds."""
    from unmet.models.direct import DIRECT

    if backbone in DIRECT:
        return nullcontext()
    from unmet.models.checkpoint import check_trainings, training_folder

    check_trainings(out, resume=resume, overwrite=overwrite)
    return training_folder(out, resume=resume, overwrite=overwrite)
