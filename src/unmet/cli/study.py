"""Verbs that run the paper's experiments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from unmet.cli.options import (
    BACKBONES,
    Cars,
    FormatName,
    Json,
    MapFile,
    Mapped,
    MapStations,
    MapTrips,
    Overwrite,
    ScenarioFile,
    Seed,
    StationsFile,
    StationsTable,
    TimeZone,
    TripsFile,
    complete_queue,
    make_city,
)
from unmet.errors import InputError

if TYPE_CHECKING:
    from unmet.city.build import City
    from unmet.simulation.scenario import Scenario
    from unmet.study.censoring import CensoringStudy
    from unmet.study.experiments import Choices, Experiment
    from unmet.study.outline import Outline
    from unmet.study.scenes import Sampling

__all__ = ["app", "censoring_study"]

app = typer.Typer(
    help="Run the paper's experiments, its numbers beside ours, or test models on your own records.",
    no_args_is_help=True,
)

Models = Annotated[
    str | None, typer.Option(help="Models, by commas. [the paper's four, exposure, oracle and four baselines]")
]
Backbones = Annotated[str, typer.Option(help=f"Backbones, by commas, of {', '.join(BACKBONES)}.")]
Preset = Annotated[str, typer.Option(help="quick (three runs a cell) or paper (ten).")]
Runs = Annotated[int | None, typer.Option(min=1, help="Runs a cell. [the preset's]")]
Cities = Annotated[
    int, typer.Option(min=1, help="Cities, of other seeds, that runs take turns among; ± and p are over cities.")
]
Epochs = Annotated[int | None, typer.Option(min=1, help="Epochs of a training at most. [80]")]
Workers = Annotated[int | None, typer.Option(min=1, help="Trainings at once. [one a core]")]
Scheduler = Annotated[str | None, typer.Option(help="Dask scheduler to run on, as tcp://host:8786.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="List the cells and the time they would take.")]
StudyOverwrite = Annotated[bool, typer.Option("--overwrite", help="Start anew; else a study goes on where it ended.")]


class _How(NamedTuple):
    """How a study is run and told."""

    workers: int | None
    scheduler: str | None
    dry_run: bool
    overwrite: bool
    as_json: bool


@app.command("censoring")
def study_censoring(
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("runs/censoring"),
    regions: Annotated[int, typer.Option(min=1, help="Regions to group the stations into.")] = 10,
    penetration: Annotated[
        list[float] | None,
        typer.Option(
            help="Electric share of the city's cars; give it several times. [0.01 to 0.05; 0.2 to 1 for your own trips]"
        ),
    ] = None,
    seed: Seed = 1,
    trips: TripsFile = None,
    stations: StationsFile = None,
    cars: Cars = None,
    time_zone: TimeZone = None,
    map_trips: MapTrips = None,
    map_stations: MapStations = None,
    scenario: ScenarioFile = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """How much demand is lost under three queues and five penetrations, beside the paper's Table 1."""
    shares = tuple(penetration or ((0.2, 0.4, 0.6, 0.8, 1.0) if trips and not cars else ()))
    city = make_city(trips, stations, cars, time_zone, seed, map_trips, map_stations)
    _run_censoring(city, out, regions, seed, overwrite, as_json, shares, scenario)


@app.command("total")
def study_total(
    out: Annotated[Path, typer.Option(help="Output folder. An existing study there is resumed.")] = Path("runs/total"),
    queue: Annotated[list[str] | None, typer.Option(help="Queue; give it several times. [the paper's three]")] = None,
    penetration: Annotated[
        list[float] | None, typer.Option(help="Electric share of cars; give it several times. [0.01 to 0.05]")
    ] = None,
    models: Models = None,
    backbones: Backbones = "tgcn",
    preset: Preset = "quick",
    runs: Runs = None,
    cities: Cities = 3,
    seed: Seed = 1,
    epochs: Epochs = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    trips: TripsFile = None,
    stations: StationsFile = None,
    cars: Cars = None,
    time_zone: TimeZone = None,
    map_trips: MapTrips = None,
    map_stations: MapStations = None,
    scenario: ScenarioFile = None,
    dry_run: DryRun = False,
    overwrite: StudyOverwrite = False,
    as_json: Json = False,
) -> None:
    """Forecast the demand of the whole city with every model: the paper's Table 3, and the gap that each closes."""
    from unmet.study.experiments import total
    from unmet.study.outline import outline
    from unmet.study.paper import PENETRATIONS
    from unmet.study.paper import QUEUES as PAPER_QUEUES

    city_of = _cities(trips, stations, cars, time_zone, map_trips, map_stations)
    shares = tuple(penetration or ((1.0,) if trips and not cars else PENETRATIONS))
    choices = _choices(models, backbones, preset, runs, seed, epochs, cities, scenario)
    how = _How(workers, scheduler, dry_run, overwrite, as_json)
    queues = tuple(queue or PAPER_QUEUES)
    planned = outline(
        "total", "Forecasting the demand of the whole city", choices, {"queue": queues, "penetration": shares}
    )
    _run_studies({out: _Study(planned, lambda: total(city_of, choices, queues, shares))}, how)


@app.command("competition")
def study_competition(
    out: Annotated[Path, typer.Option(help="Output folder. An existing study there is resumed.")] = Path(
        "runs/competition"
    ),
    share: Annotated[
        list[float] | None, typer.Option(help="Market share; give it several times. [0.1, 0.25, 0.5, 0.75, 0.95]")
    ] = None,
    queue: Annotated[str, typer.Option(autocompletion=complete_queue, help="Queue at all stations.")] = "gas-station",
    penetration: Annotated[float | None, typer.Option(help="Electric share of cars. [0.05; 1 for your own]")] = None,
    sampling: Annotated[
        str, typer.Option(help="Stations of an operator: a share of each region's, or of the whole city's.")
    ] = "region",
    models: Models = None,
    backbones: Backbones = "tgcn",
    preset: Preset = "quick",
    runs: Runs = None,
    cities: Cities = 3,
    seed: Seed = 1,
    epochs: Epochs = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    trips: TripsFile = None,
    stations: StationsFile = None,
    cars: Cars = None,
    time_zone: TimeZone = None,
    map_trips: MapTrips = None,
    map_stations: MapStations = None,
    scenario: ScenarioFile = None,
    dry_run: DryRun = False,
    overwrite: StudyOverwrite = False,
    as_json: Json = False,
) -> None:
    """Forecast all demand from the records of one operator among others: the paper's Table 4."""
    from unmet.study.experiments import competition
    from unmet.study.outline import outline
    from unmet.study.paper import MARKET_SHARES

    city_of = _cities(trips, stations, cars, time_zone, map_trips, map_stations)
    electric = (1.0 if trips and not cars else 0.05) if penetration is None else penetration
    choices = _choices(models, backbones, preset, runs, seed, epochs, cities, scenario)
    how = _How(workers, scheduler, dry_run, overwrite, as_json)
    shares, drawn = tuple(share or MARKET_SHARES), _sampling(sampling)
    axes = {"queue": (queue,), "penetration": (electric,), "share": shares}
    planned = outline("competition", "Forecasting from one operator's records", choices, axes, scene_a_run=True)
    _run_studies({out: _Study(planned, lambda: competition(city_of, choices, shares, queue, electric, drawn))}, how)


@app.command("application")
def study_application(
    out: Annotated[Path, typer.Option(help="Output folder. An existing study there is resumed.")] = Path(
        "runs/application"
    ),
    queue: Annotated[str, typer.Option(autocompletion=complete_queue, help="Queue at all stations.")] = "first-come",
    penetration: Annotated[float | None, typer.Option(help="Electric share of cars. [0.05; 1 for your own]")] = None,
    models: Models = None,
    backbones: Backbones = "tgcn",
    preset: Preset = "quick",
    runs: Runs = None,
    seed: Seed = 1,
    epochs: Epochs = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    trips: TripsFile = None,
    stations: StationsFile = None,
    cars: Cars = None,
    time_zone: TimeZone = None,
    map_trips: MapTrips = None,
    map_stations: MapStations = None,
    scenario: ScenarioFile = None,
    dry_run: DryRun = False,
    overwrite: StudyOverwrite = False,
    as_json: Json = False,
) -> None:
    """What the models say of the most censored region: true, observed and predicted demand, with intervals."""
    from unmet.study.experiments import application
    from unmet.study.outline import outline

    city_of = _cities(trips, stations, cars, time_zone, map_trips, map_stations)
    electric = (1.0 if trips and not cars else 0.05) if penetration is None else penetration
    choices = _choices(models, backbones, preset, runs, seed, epochs, scenario=scenario)
    how = _How(workers, scheduler, dry_run, overwrite, as_json)
    axes = {"queue": (queue,), "penetration": (electric,)}
    planned = outline("application", "The most censored region", replace(choices, cities=1), axes)
    _run_studies({out: _Study(planned, lambda: application(city_of, choices, queue, electric))}, how)


@app.command("thinning")
def study_thinning(
    files: Annotated[list[Path], typer.Argument(metavar="FILES...", help="Session records of one operator.")],
    stations: StationsTable = None,
    format_name: FormatName = "auto",
    mapped: Mapped = None,
    map_file: MapFile = None,
    out: Annotated[Path, typer.Option(help="Output folder. An existing study there is resumed.")] = Path(
        "runs/thinning"
    ),
    removed: Annotated[
        list[float] | None,
        typer.Option(help="Share of the energy to turn away; give it several times. [0.1, 0.2, 0.35]"),
    ] = None,
    regions: Annotated[str, typer.Option(help="Number of regions, auto, station, or a GeoJSON file of areas.")] = "10",
    time_zone: Annotated[str | None, typer.Option(help="Local time zone. [that of the records, else UTC]")] = None,
    since: Annotated[datetime | None, typer.Option(help="First session to use, UTC. [the first]")] = None,
    until: Annotated[datetime | None, typer.Option(help="Leave out sessions from then on, UTC. [none]")] = None,
    models: Models = None,
    backbones: Backbones = "tgcn",
    preset: Preset = "quick",
    runs: Runs = None,
    seed: Seed = 1,
    epochs: Epochs = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    dry_run: DryRun = False,
    overwrite: StudyOverwrite = False,
    as_json: Json = False,
) -> None:
    """Remove plugs from real records on paper, and see how well each model finds again what that turned away."""
    from unmet.demand.from_records import PanelChoices, chosen_records
    from unmet.study.experiments import thinning
    from unmet.study.outline import outline
    from unmet.study.thinning import REMOVED
    from unmet.views.terminal import progress, report_set_aside

    asked = PanelChoices(tuple(files), stations, format_name, tuple(mapped or ()), map_file)
    with progress("Reading records"):
        records = chosen_records(asked)
    report_set_aside(records.rejected, listed="by `unmet panel`")
    choices = _choices(models, backbones, preset, runs, seed, epochs)
    how = _How(workers, scheduler, dry_run, overwrite, as_json)
    first, last = (when.replace(tzinfo=UTC) if when else None for when in (since, until))
    shares = tuple(removed or REMOVED)
    planned = outline("thinning", "Plugs removed from real records", choices, {"removed": shares}, scene_a_run=True)
    _run_studies(
        {out: _Study(planned, lambda: thinning(records, choices, shares, regions, time_zone, first, last))}, how
    )


@app.command("all")
def study_all(
    out: Annotated[Path, typer.Option(help="Folder to write the studies into, one folder each.")] = Path("runs/all"),
    models: Models = None,
    backbones: Backbones = "tgcn",
    preset: Preset = "quick",
    runs: Runs = None,
    cities: Cities = 3,
    seed: Seed = 1,
    epochs: Epochs = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    trips: TripsFile = None,
    stations: StationsFile = None,
    cars: Cars = None,
    time_zone: TimeZone = None,
    map_trips: MapTrips = None,
    map_stations: MapStations = None,
    scenario: ScenarioFile = None,
    dry_run: DryRun = False,
    overwrite: StudyOverwrite = False,
    as_json: Json = False,
) -> None:
    """Every table and figure of the paper: censoring, total, competition and application."""
    from unmet.study.experiments import application, competition, total
    from unmet.study.outline import outline
    from unmet.study.paper import MARKET_SHARES, PENETRATIONS
    from unmet.study.paper import QUEUES as PAPER_QUEUES

    city_of = _cities(trips, stations, cars, time_zone, map_trips, map_stations)
    own = bool(trips) and not cars
    choices = _choices(models, backbones, preset, runs, seed, epochs, cities, scenario)
    if not dry_run:
        # The table of censored hours is quick to make, and is made again.
        _run_censoring(
            city_of(seed), out / "censoring", 10, seed, True, as_json, (0.2, 0.4, 0.6, 0.8, 1.0) if own else ()
        )
    most = 1.0 if own else 0.05
    rates = (most,) if own else PENETRATIONS
    one = replace(choices, cities=1)
    competing = {"queue": ("gas-station",), "penetration": (most,), "share": MARKET_SHARES}
    studies = {
        out / "total": _Study(
            outline("total", "The whole city", choices, {"queue": PAPER_QUEUES, "penetration": rates}),
            lambda: total(city_of, choices, PAPER_QUEUES, rates),
        ),
        out / "competition": _Study(
            outline("competition", "One operator among others", choices, competing, scene_a_run=True),
            lambda: competition(city_of, choices, MARKET_SHARES, penetration=most),
        ),
        out / "application": _Study(
            outline("application", "The most censored region", one, {"queue": ("first-come",), "penetration": (most,)}),
            lambda: application(city_of, choices, penetration=most),
        ),
    }
    _run_studies(studies, _How(workers, scheduler, dry_run, overwrite, as_json))


def _cities(
    trips: Path | None,
    stations: Path | None,
    cars: int | None,
    time_zone: str | None,
    map_trips: list[str] | None = None,
    map_stations: list[str] | None = None,
) -> Callable[[int], City]:
    """The city of a seed. One's own trips are read once, and are the same for every seed."""
    made: dict[int, City] = {}

    def city_of(seed: int) -> City:
        key = 0 if trips else seed
        if key not in made:
            made.clear()  # one at a time: a city of trips is large
            made[key] = make_city(trips, stations, cars, time_zone, seed, map_trips, map_stations)
        return made[key]

    return city_of


def _scenario(path: Path | None) -> Scenario:
    """What a scenario file says beside queue, penetration and seed, which a study varies."""
    from unmet.simulation.scenario import Scenario, read_scenario

    if path is None:
        return Scenario()
    read, city = read_scenario(path)
    if city:
        raise InputError(f"{path} names a city, which a study takes from --trips and --stations: leave it out there.")
    return read.model_copy(update={"queue": "first-come", "penetration": 0.05, "seed": 1})


def _sampling(name: str) -> Sampling:
    from unmet.study.scenes import Sampling

    if name not in [each.value for each in Sampling]:
        raise InputError(f"There is no sampling {name!r}: choose {' or '.join(each.value for each in Sampling)}.")
    return Sampling(name)


def _choices(
    models: str | None,
    backbones: str,
    preset: str,
    runs: int | None,
    seed: int,
    epochs: int | None,
    cities: int = 3,
    scenario: Path | None = None,
) -> Choices:
    from unmet.study.experiments import PRESETS, Choices

    if preset not in PRESETS:
        raise InputError(f"There is no preset {preset!r}: choose one of {', '.join(PRESETS)}.")
    base = Choices(
        backbones=tuple(name.strip() for name in backbones.split(",") if name.strip()),
        runs=runs or PRESETS[preset],
        cities=cities,
        seed=seed,
        epochs=epochs,
        scenario=_scenario(scenario),
    )
    return replace(base, models=tuple(name.strip() for name in models.split(",") if name.strip())) if models else base


class _Study(NamedTuple):
    """A study: what it would run, and how its scenes are made."""

    outline: Outline
    make: Callable[[], Experiment]


def _run_studies(studies: Mapping[Path, _Study], how: _How) -> None:
    """Run studies one after the other, each into its folder; exit with code 1 if any run of them failed."""
    whole = [_run_study(study, out, how) for out, study in studies.items()]
    if not all(whole):
        raise typer.Exit(1)


def _run_study(study: _Study, out: Path, how: _How) -> bool:
    """Run a study, write and print it; and say whether all of its runs came to a result."""
    from unmet.runs import available_cores
    from unmet.study.execute import connected, execute
    from unmet.study.store import Store
    from unmet.views.study import print_plan, print_study, study_report, write_study
    from unmet.views.terminal import progress, say, study_progress

    Store(out, read_only=True)  # refuses a folder that is not a study's, before any work is done
    if how.dry_run:
        store = Store(out, name=study.outline.name, read_only=True)
        print_plan(study.outline, store, how.workers or available_cores(), as_json=how.as_json)
        return True
    if how.scheduler:
        connected(how.scheduler).close()
    with progress("Playing the scenes"):
        experiment = study.make()
    store = Store(out, name=experiment.name, overwrite=how.overwrite)
    try:
        with study_progress(experiment.title) as advance:
            done = execute(
                experiment.runs,
                experiment.scenes,
                store,
                workers=how.workers,
                scheduler=how.scheduler,
                on_progress=advance,
            )
    except KeyboardInterrupt:
        kept = sum(store.has(run) for run in experiment.runs)
        say(f"Stopped: {kept} of {len(experiment.runs)} runs are kept. The same command goes on from there.")
        raise typer.Exit(130) from None
    report = study_report(experiment, store, done)
    if report.cells.is_empty():
        raise InputError(f"All runs of the study failed, as {report.failed[0]}")
    with progress("Drawing the figures"):
        write_study(report, out)
    print_study(report, store, out, as_json=how.as_json)
    return not done.failed


def _run_censoring(
    city: City,
    out: Path,
    regions: int,
    seed: int,
    overwrite: bool,
    as_json: bool,
    shares: tuple[float, ...] = (),
    scenario: Path | None = None,
) -> None:
    from unmet.runs import run_folder
    from unmet.views.censoring import print_censoring, write_censoring
    from unmet.views.terminal import progress

    with run_folder(out, overwrite=overwrite) as folder:
        study = censoring_study(city, regions, seed, shares, scenario)
        with progress("Drawing the figures"):
            write_censoring(study, folder)
    print_censoring(study, out, as_json=as_json)


def censoring_study(
    city: City, regions: int, seed: int, shares: tuple[float, ...] = (), scenario: Path | None = None
) -> CensoringStudy:
    """Play the paper's queues and penetrations in a city."""
    from unmet.study.censoring import run_censoring
    from unmet.study.paper import PENETRATIONS
    from unmet.study.paper import QUEUES as PAPER_QUEUES
    from unmet.views.terminal import progress

    penetrations = shares or PENETRATIONS
    with progress("Playing queues and penetrations", len(PAPER_QUEUES) * len(penetrations)) as advance:
        return run_censoring(
            city,
            penetrations=penetrations,
            regions=regions,
            scenario=_scenario(scenario).model_copy(update={"seed": seed}),
            on_cell=advance,
        )
