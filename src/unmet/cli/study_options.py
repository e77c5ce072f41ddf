"""Options that the studies share: what to train, and how to run it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unmet.cli.options import BACKBONES, Json, Seed
from unmet.errors import InputError

if TYPE_CHECKING:
    from unmet.simulation.scenario import Scenario
    from unmet.study.experiments import Choices

__all__ = [
    "Cities",
    "Execution",
    "GridOptions",
    "ScenarioFile",
    "execution_options",
    "grid_options",
    "scenario_of",
]

Cities = Annotated[
    int,
    typer.Option(min=1, help="Number of cities, each with its own seed. Runs alternate between them; ± and p-values "
                 "are computed over cities.", rich_help_panel="Models"),
]  # fmt: skip
ScenarioFile = Annotated[
    Path | None,
    typer.Option(
        "--scenario", help="Scenario file with further assumptions, such as `turned_away: keep`.",
        rich_help_panel="City",
    ),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class GridOptions:
    """The models of a study, and how often each is trained."""

    models: tuple[str, ...] | None  # None: the default models
    backbones: tuple[str, ...]
    runs: int
    seed: int
    epochs: int | None

    def choices(self, cities: int = 3, scenario: Path | None = None) -> Choices:
        """These options, with a number of cities and a scenario file, as the study takes them."""
        from unmet.study.experiments import Choices

        base = Choices(
            backbones=self.backbones,
            runs=self.runs,
            cities=cities,
            seed=self.seed,
            epochs=self.epochs,
            scenario=scenario_of(scenario),
        )
        return base if self.models is None else replace(base, models=self.models)


@dataclass(frozen=True, slots=True)
class Execution:
    """Where a study runs, and what happens to its results."""

    workers: int | None
    scheduler: str | None
    dry_run: bool
    overwrite: bool
    as_json: bool


def grid_options(
    models: Annotated[
        str | None,
        typer.Option(
            help="Models, separated by commas. [the paper's four, exposure, oracle and four baselines]",
            rich_help_panel="Models",
        ),
    ] = None,
    backbones: Annotated[
        str,
        typer.Option(help=f"Backbones, separated by commas: {', '.join(BACKBONES)}.", rich_help_panel="Models"),
    ] = "tgcn",
    preset: Annotated[
        str, typer.Option(help="quick (three runs per cell) or paper (ten).", rich_help_panel="Models")
    ] = "quick",
    runs: Annotated[
        int | None, typer.Option(min=1, help="Runs per cell. [the preset's]", rich_help_panel="Models")
    ] = None,
    seed: Seed = 1,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of epochs. [80]", rich_help_panel="Models")
    ] = None,
) -> GridOptions:
    """The models of a study."""
    from unmet.study.experiments import PRESETS

    if preset not in PRESETS:
        raise InputError(f"There is no preset {preset!r}: choose one of {', '.join(PRESETS)}.")
    return GridOptions(_names(models) if models else None, _names(backbones), runs or PRESETS[preset], seed, epochs)


def execution_options(
    workers: Annotated[
        int | None, typer.Option(min=1, help="Networks to train at once. [one per core]", rich_help_panel="Running")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Dask scheduler to run on, such as tcp://host:8786.", rich_help_panel="Running")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="List the cells and the time they would take.", rich_help_panel="Running"),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Start again. By default an existing study is resumed.")
    ] = False,
    as_json: Json = False,
) -> Execution:
    """How a study runs."""
    return Execution(workers, scheduler, dry_run, overwrite, as_json)


def scenario_of(path: Path | None) -> Scenario:
    """The scenario in a file; its queue, penetration and seed are reset, because a study varies these itself."""
    from unmet.simulation.scenario import Scenario, read_scenario

    if path is None:
        return Scenario()
    scenario, city = read_scenario(path)
    if city:
        raise InputError(f"{path} names a city, but studies take the city from --trips and --stations: remove it.")
    return scenario.model_copy(update={"queue": "first-come", "penetration": 0.05, "seed": 1})


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
