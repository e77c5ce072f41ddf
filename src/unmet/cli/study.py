"""Commands that run the paper's experiments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unmet.cli.city_options import CityOptions, city_options
from unmet.cli.help import CommandGroup, GroupedCommand
from unmet.cli.option_groups import with_options
from unmet.cli.options import FormatName, Json, MapFile, Mapped, Overwrite, Seed, StationsTable, complete_queue
from unmet.cli.study_options import Cities, Execution, GridOptions, ScenarioFile, execution_options, grid_options
from unmet.cli.study_runs import Study, run_and_print_censoring, run_studies
from unmet.errors import InputError

if TYPE_CHECKING:
    from unmet.city.build import City
    from unmet.study.experiments import Choices
    from unmet.study.scenes import Sampling

__all__ = ["study_commands"]

OWN_PENETRATIONS = (0.2, 0.4, 0.6, 0.8, 1.0)  # electric shares of the vehicles in the user's own trips
FOLDER_HELP = "Output folder. An existing study there is resumed."

study_commands = typer.Typer(
    cls=CommandGroup,
    help="Repeat the paper's experiments and compare its numbers with ours, or test models on your own records.",
    no_args_is_help=True,
)

StudyQueue = Annotated[str, typer.Option(autocompletion=complete_queue, help="Queue at all stations.")]
Penetration = Annotated[float | None, typer.Option(help="Electric share of cars. [0.05; 1 for your own trips]")]


@study_commands.command("censoring", cls=GroupedCommand)
@with_options(city_options)
def study_censoring(
    city: CityOptions,
    out: Annotated[Path, typer.Option(help="Output folder.")] = Path("runs/censoring"),
    regions: Annotated[int, typer.Option(min=1, help="Number of regions.")] = 10,
    penetration: Annotated[
        list[float] | None,
        typer.Option(help="Electric share of cars; may be repeated. [0.01 to 0.05; 0.2 to 1 for your own trips]"),
    ] = None,
    seed: Seed = 1,
    scenario: ScenarioFile = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Simulate how much demand is lost under three queues and five penetrations, next to the paper's Table 1."""
    shares = tuple(penetration or (OWN_PENETRATIONS if city.has_own_cars else ()))
    run_and_print_censoring(
        city.build(seed), out, regions, seed, shares, scenario, overwrite=overwrite, as_json=as_json
    )


@study_commands.command("total", cls=GroupedCommand)
@with_options(city_options, grid_options, execution_options)
def study_total(
    city: CityOptions,
    grid: GridOptions,
    execution: Execution,
    out: Annotated[Path, typer.Option(help=FOLDER_HELP)] = Path("runs/total"),
    queue: Annotated[list[str] | None, typer.Option(help="Queue; may be repeated. [the paper's three]")] = None,
    penetration: Annotated[
        list[float] | None,
        typer.Option(help="Electric share of cars; may be repeated. [0.01 to 0.05; 1 for your own trips]"),
    ] = None,
    cities: Cities = 3,
    scenario: ScenarioFile = None,
) -> None:
    """Forecast the demand of the whole city with every model: the paper's Table 3, and the gap that each closes."""
    choices = grid.choices(cities, scenario)
    run_studies({out: _total(city, city.by_seed(), choices, tuple(queue or ()), tuple(penetration or ()))}, execution)


@study_commands.command("competition", cls=GroupedCommand)
@with_options(city_options, grid_options, execution_options)
def study_competition(
    city: CityOptions,
    grid: GridOptions,
    execution: Execution,
    out: Annotated[Path, typer.Option(help=FOLDER_HELP)] = Path("runs/competition"),
    share: Annotated[
        list[float] | None, typer.Option(help="Market share; may be repeated. [0.1, 0.25, 0.5, 0.75, 0.95]")
    ] = None,
    queue: StudyQueue = "gas-station",
    penetration: Penetration = None,
    sampling: Annotated[
        str, typer.Option(help="Stations of the operator: a share of each region's, or of the whole city's.")
    ] = "region",
    cities: Cities = 3,
    scenario: ScenarioFile = None,
) -> None:
    """Forecast all demand from the records of one operator among others: the paper's Table 4."""
    electric = _one_penetration(city) if penetration is None else penetration
    choices = grid.choices(cities, scenario)
    study = _competition(city.by_seed(), choices, tuple(share or ()), queue, electric, _sampling(sampling))
    run_studies({out: study}, execution)


@study_commands.command("application", cls=GroupedCommand)
@with_options(city_options, grid_options, execution_options)
def study_application(
    city: CityOptions,
    grid: GridOptions,
    execution: Execution,
    out: Annotated[Path, typer.Option(help=FOLDER_HELP)] = Path("runs/application"),
    queue: StudyQueue = "first-come",
    penetration: Penetration = None,
    scenario: ScenarioFile = None,
) -> None:
    """Forecast the most censored region: true, observed and predicted demand, with intervals."""
    electric = _one_penetration(city) if penetration is None else penetration
    choices = grid.choices(scenario=scenario)
    run_studies({out: _application(city.by_seed(), choices, queue, electric)}, execution)


@study_commands.command("thinning", cls=GroupedCommand)
@with_options(grid_options, execution_options)
def study_thinning(
    grid: GridOptions,
    execution: Execution,
    files: Annotated[list[Path], typer.Argument(metavar="FILES...", help="Session records of one operator.")],
    stations: StationsTable = None,
    format_name: FormatName = "auto",
    mapped: Mapped = None,
    map_file: MapFile = None,
    out: Annotated[Path, typer.Option(help=FOLDER_HELP)] = Path("runs/thinning"),
    removed: Annotated[
        list[float] | None,
        typer.Option(help="Share of the energy to turn away; may be repeated. [0.1, 0.2, 0.35]"),
    ] = None,
    regions: Annotated[str, typer.Option(help="Number of regions, auto, station, or a GeoJSON file of areas.")] = "10",
    time_zone: Annotated[str | None, typer.Option(help="Local time zone. [that of the records, else UTC]")] = None,
    since: Annotated[datetime | None, typer.Option(help="Use sessions from this time on, UTC.")] = None,
    until: Annotated[datetime | None, typer.Option(help="Use sessions before this time, UTC.")] = None,
) -> None:
    """Remove plugs from real records on paper, and test how well each model recovers the demand they turn away."""
    from unmet.demand.from_records import PanelChoices, chosen_records
    from unmet.study.experiments import thinning
    from unmet.study.outline import outline
    from unmet.study.thinning import REMOVED
    from unmet.views.terminal import progress, report_set_aside

    source = PanelChoices(tuple(files), stations, format_name, tuple(mapped or ()), map_file)
    with progress("Reading records"):
        records = chosen_records(source)
    report_set_aside(records.rejected, listed="by `unmet panel`")
    choices, shares = grid.choices(), tuple(removed or REMOVED)
    first, last = (when.replace(tzinfo=UTC) if when else None for when in (since, until))
    planned = outline("thinning", "Plugs removed from real records", choices, {"removed": shares}, scene_per_run=True)
    study = Study(planned, lambda: thinning(records, choices, shares, regions, time_zone, first, last))
    run_studies({out: study}, execution)


@study_commands.command("all", cls=GroupedCommand)
@with_options(city_options, grid_options, execution_options)
def study_all(
    city: CityOptions,
    grid: GridOptions,
    execution: Execution,
    out: Annotated[Path, typer.Option(help="Output folder; each study gets a folder in it.")] = Path("runs/all"),
    cities: Cities = 3,
    scenario: ScenarioFile = None,
) -> None:
    """Reproduce every table and figure of the paper: censoring, total, competition and application."""
    city_of, choices, electric = city.by_seed(), grid.choices(cities, scenario), _one_penetration(city)
    if not execution.dry_run:
        # The table of censored hours is quick, so it is computed again each time.
        shares = OWN_PENETRATIONS if city.has_own_cars else ()
        run_and_print_censoring(
            city_of(grid.seed), out / "censoring", 10, grid.seed, shares, overwrite=True, as_json=execution.as_json
        )
    studies = {
        out / "total": _total(city, city_of, choices),
        out / "competition": _competition(city_of, choices, penetration=electric),
        out / "application": _application(city_of, choices, penetration=electric),
    }
    run_studies(studies, execution)


def _total(
    city: CityOptions,
    city_of: Callable[[int], City],
    choices: Choices,
    queues: tuple[str, ...] = (),
    penetrations: tuple[float, ...] = (),
) -> Study:
    """The study of the whole city; empty axes default to the paper's."""
    from unmet.study.experiments import total
    from unmet.study.outline import outline
    from unmet.study.paper import PENETRATIONS
    from unmet.study.paper import QUEUES as PAPER_QUEUES

    queues = queues or PAPER_QUEUES
    shares = penetrations or ((1.0,) if city.has_own_cars else PENETRATIONS)
    axes = {"queue": queues, "penetration": shares}
    planned = outline("total", "Forecasting the demand of the whole city", choices, axes)
    return Study(planned, lambda: total(city_of, choices, queues, shares))


def _competition(
    city_of: Callable[[int], City],
    choices: Choices,
    shares: tuple[float, ...] = (),
    queue: str = "gas-station",
    penetration: float = 0.05,
    sampling: Sampling | None = None,
) -> Study:
    """The study of one operator among others; without `shares`, those of the paper are used."""
    from unmet.study.experiments import competition
    from unmet.study.outline import outline
    from unmet.study.paper import MARKET_SHARES
    from unmet.study.scenes import Sampling

    shares, drawn = shares or MARKET_SHARES, sampling or Sampling.REGION
    axes = {"queue": (queue,), "penetration": (penetration,), "share": shares}
    planned = outline("competition", "Forecasting from one operator's records", choices, axes, scene_per_run=True)
    return Study(planned, lambda: competition(city_of, choices, shares, queue, penetration, drawn))


def _application(
    city_of: Callable[[int], City], choices: Choices, queue: str = "first-come", penetration: float = 0.05
) -> Study:
    """The study of the most censored region."""
    from unmet.study.experiments import application
    from unmet.study.outline import outline

    axes = {"queue": (queue,), "penetration": (penetration,)}
    planned = outline("application", "The most censored region", replace(choices, cities=1), axes)
    return Study(planned, lambda: application(city_of, choices, queue, penetration))


def _one_penetration(city: CityOptions) -> float:
    """Default of studies with a single penetration: all of the user's own cars, or 5 % of the built-in city's."""
    return 1.0 if city.has_own_cars else 0.05


def _sampling(name: str) -> Sampling:
    from unmet.study.scenes import Sampling

    if name not in [each.value for each in Sampling]:
        raise InputError(f"There is no sampling {name!r}: choose {' or '.join(each.value for each in Sampling)}.")
    return Sampling(name)
