"""The `unmet` command: verbs only. What they do lives in the rooms, which are imported when a verb is called."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unmet import __version__
from unmet.errors import InputError

if TYPE_CHECKING:
    from unmet.city.build import City
    from unmet.study.experiments import Choices, Experiment

__all__ = ["BACKBONES", "LIKELIHOODS", "QUEUES", "app", "main"]

BACKBONES = ("tgcn", "mlp", "linear", "seasonal")
LIKELIHOODS = ("censored-quantile", "quantile", "tobit", "gaussian")
QUEUES = ("gas-station", "three-hour", "first-come", "reservation")  # for help and completion, without slow imports

app = typer.Typer(
    help="See the electric-vehicle charging demand that charging records do not show.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
study_app = typer.Typer(help="Run the paper's experiments, its numbers beside ours.", no_args_is_help=True)
app.add_typer(study_app, name="study")


def main() -> None:
    """Run the command; input that cannot be used gives one sentence and exit code 2."""
    try:
        app()
    except InputError as error:
        print(f"unmet: {error}", file=sys.stderr)
        sys.exit(2)


def _version(asked: bool) -> None:
    if asked:
        print(f"unmet {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    pass


Seed = Annotated[int, typer.Option(min=0, help="Seed of every random choice: the same seed gives the same result.")]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON on standard output.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is at --out already.")]
TripsFile = Annotated[
    Path | None, typer.Option("--trips", help="Your own trips, CSV or Parquet. Default: the built-in city's.")
]
StationsFile = Annotated[
    Path | None, typer.Option("--stations", help="Your own stations, CSV or Parquet. Default: the built-in city's.")
]
Cars = Annotated[
    int | None,
    typer.Option(min=1, help="Cars in the city, which a penetration is a share of. Default: 571,627 for the built-in "
                 "trips, the vehicles in the file for your own."),
]  # fmt: skip
TimeZone = Annotated[str, typer.Option(help="Time zone of the city, for figures by hour of the day.")]


def _complete_queue(incomplete: str) -> list[str]:
    return [name for name in QUEUES if name.startswith(incomplete)]


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("demo"),
    seed: Seed = 1,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Show the main job on the built-in city: how much charging demand it loses, beside the paper's numbers."""
    _run_censoring(_city(None, None, None, "Europe/Copenhagen", seed), out, 10, seed, overwrite, as_json)


@app.command()
def trips(
    out: Annotated[Path, typer.Option(help="File to write the trips to, .parquet or .csv.")],
    gps: Annotated[
        Path | None, typer.Option(help="Raw GPS points (vehicle_id, time, lat, lon), CSV or Parquet, to stitch.")
    ] = None,
    privacy_noise: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="LEAST MOST", help="Move every stop by this many metres in a random direction."),
    ] = None,
    stop_minutes: Annotated[float, typer.Option(min=0.5, help="A rest this long ends a trip.")] = 5.0,
    seed: Seed = 1,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Stitch raw GPS points into trips, or write the trips of the built-in city."""
    from unmet.city.export import write_trips
    from unmet.views.terminal import progress, report, report_set_aside

    with progress("Stitching GPS points" if gps else "Driving through the city"):
        summary, rejected = write_trips(
            out, gps, stop_minutes=stop_minutes, privacy_noise_m=privacy_noise, seed=seed, overwrite=overwrite
        )
    report_set_aside(rejected)
    report("Trips", summary, as_json=as_json)


@app.command()
def simulate(
    out: Annotated[Path, typer.Option(help="Run folder to write to.")],
    queue: Annotated[
        str | None,
        typer.Option(autocompletion=_complete_queue, help=f"Queue at all stations: {', '.join(QUEUES)}. [first-come]"),
    ] = None,
    penetration: Annotated[
        float | None, typer.Option(help="Electric share of the city's cars. [0.05, that is 5 %; 1 for your own trips]")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of every random choice. [1]")] = None,
    scenario: Annotated[
        Path | None, typer.Option(help="Scenario file, as a run writes it; options given here take precedence.")
    ] = None,
    turned_away: Annotated[
        str | None,
        typer.Option(help="What drivers do who find no plug: elsewhere, retry (after the next trip) or divert (to the "
                     "next nearest station at once). [elsewhere]"),
    ] = None,
    turned_away_share: Annotated[float | None, typer.Option(help="Share of them who retry or divert. [1]")] = None,
    curve: Annotated[
        str | None, typer.Option(help="Charging curve: continuous, or literal as the paper prints it. [continuous]")
    ] = None,
    distance_sensitivity: Annotated[
        float | None, typer.Option(help="s in exp(-s D), 1/km; -1 is the paper's literal formula. [1]")
    ] = None,
    regions: Annotated[int, typer.Option(min=1, help="Regions of the panel that is written with it.")] = 10,
    trips: TripsFile = None,
    stations: StationsFile = None,
    cars: Cars = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Simulate a city of electric cars: every arrival at every station, served or lost."""
    from unmet.demand.simulated import records_and_truth
    from unmet.demand.stored import write_regions
    from unmet.runs import run_folder
    from unmet.simulation.run import summarise, write_run
    from unmet.simulation.scenario import read_scenario, scenario_from
    from unmet.simulation.simulate import prepare
    from unmet.simulation.simulate import simulate as play
    from unmet.views.terminal import progress, report

    read, city_of = read_scenario(scenario) if scenario else (None, {})
    base = read.model_dump(mode="json") if read else {}
    trips = trips or _path(city_of.get("trips"))
    stations = stations or _path(city_of.get("stations"))
    cars = cars or city_of.get("cars")
    if trips and not cars and penetration is None and "penetration" not in base:
        penetration = 1.0
    given = {
        "queue": queue,
        "penetration": penetration,
        "seed": seed,
        "turned_away": turned_away,
        "turned_away_share": turned_away_share,
        "curve": curve,
        "distance_sensitivity": distance_sensitivity,
    }
    chosen = scenario_from(base | {k: v for k, v in given.items() if v is not None}, "The scenario")
    with run_folder(out, overwrite=overwrite) as folder:
        city = _city(trips, stations, cars, "Europe/Copenhagen", chosen.seed)
        with progress("Simulating"):
            outcome = play(prepare(city), chosen)
        write_run(folder, city, chosen, outcome, {"trips": trips, "stations": stations})
        table, grouped = records_and_truth(
            outcome.sessions, outcome.arrivals, outcome.stations, city.period, regions, city.time_zone
        )
        table.write_parquet(folder / "panel.parquet")
        write_regions(grouped, city.time_zone, folder)
        summary = summarise(city, chosen, outcome)
    report("Simulation", summary | {"out": str(out)}, as_json=as_json)


@study_app.command("censoring")
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
    time_zone: TimeZone = "Europe/Copenhagen",
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """How much demand is lost under three queues and five penetrations, beside the paper's Table 1."""
    shares = tuple(penetration or ((0.2, 0.4, 0.6, 0.8, 1.0) if trips and not cars else ()))
    _run_censoring(_city(trips, stations, cars, time_zone, seed), out, regions, seed, overwrite, as_json, shares)


Models = Annotated[
    str | None, typer.Option(help="Models, by commas. [gaussian,tobit,quantile,censored-quantile,oracle]")
]
Backbones = Annotated[str, typer.Option(help=f"Backbones, by commas, of {', '.join(BACKBONES)}.")]
Preset = Annotated[str, typer.Option(help="quick (two runs a cell) or paper (ten).")]
Runs = Annotated[int | None, typer.Option(min=1, help="Runs a cell. [the preset's]")]
Epochs = Annotated[int | None, typer.Option(min=1, help="Epochs of a training at most. [80]")]
Workers = Annotated[int | None, typer.Option(min=1, help="Trainings at once. [one a core]")]
Scheduler = Annotated[str | None, typer.Option(help="Dask scheduler to run on, as tcp://host:8786.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="List the cells and the time they would take.")]
StudyOverwrite = Annotated[bool, typer.Option("--overwrite", help="Start anew; else a study goes on where it ended.")]


@study_app.command("total")
def study_total(
    out: Annotated[Path, typer.Option(help="Folder of the study; one that is there is gone on with.")] = Path(
        "runs/total"
    ),
    queue: Annotated[list[str] | None, typer.Option(help="Queue; give it several times. [the paper's three]")] = None,
    penetration: Annotated[
        list[float] | None, typer.Option(help="Electric share of cars; give it several times. [0.01 to 0.05]")
    ] = None,
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
    dry_run: DryRun = False,
    overwrite: StudyOverwrite = False,
    as_json: Json = False,
) -> None:
    """Forecast the demand of the whole city with every model: the paper's Table 3, and the gap that each closes."""
    from unmet.study.experiments import total
    from unmet.study.paper import PENETRATIONS
    from unmet.study.paper import QUEUES as PAPER_QUEUES

    city = _city(trips, stations, cars, "Europe/Copenhagen", seed)
    shares = tuple(penetration or ((1.0,) if trips and not cars else PENETRATIONS))
    choices = _choices(models, backbones, preset, runs, seed, epochs)
    _run_study(
        lambda: total(city, choices, tuple(queue or PAPER_QUEUES), shares),
        out,
        workers,
        scheduler,
        dry_run,
        overwrite,
        as_json,
    )


@study_app.command("competition")
def study_competition(
    out: Annotated[Path, typer.Option(help="Folder of the study; one that is there is gone on with.")] = Path(
        "runs/competition"
    ),
    share: Annotated[
        list[float] | None, typer.Option(help="Market share; give it several times. [0.1, 0.25, 0.5, 0.75, 0.95]")
    ] = None,
    queue: Annotated[str, typer.Option(autocompletion=_complete_queue, help="Queue at all stations.")] = "gas-station",
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
    dry_run: DryRun = False,
    overwrite: StudyOverwrite = False,
    as_json: Json = False,
) -> None:
    """Forecast all demand from the records of one operator among others: the paper's Table 4."""
    from unmet.study.experiments import competition
    from unmet.study.paper import MARKET_SHARES

    city = _city(trips, stations, cars, "Europe/Copenhagen", seed)
    electric = penetration or (1.0 if trips and not cars else 0.05)
    choices = _choices(models, backbones, preset, runs, seed, epochs)
    _run_study(
        lambda: competition(city, choices, tuple(share or MARKET_SHARES), queue, electric),
        out,
        workers,
        scheduler,
        dry_run,
        overwrite,
        as_json,
    )


@study_app.command("application")
def study_application(
    out: Annotated[Path, typer.Option(help="Folder of the study; one that is there is gone on with.")] = Path(
        "runs/application"
    ),
    queue: Annotated[str, typer.Option(autocompletion=_complete_queue, help="Queue at all stations.")] = "first-come",
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
    dry_run: DryRun = False,
    overwrite: StudyOverwrite = False,
    as_json: Json = False,
) -> None:
    """What the models say of the most censored region: true, observed and predicted demand, with intervals."""
    from unmet.study.experiments import application

    city = _city(trips, stations, cars, "Europe/Copenhagen", seed)
    electric = penetration or (1.0 if trips and not cars else 0.05)
    choices = _choices(models, backbones, preset, runs, seed, epochs)
    _run_study(
        lambda: application(city, choices, queue, electric), out, workers, scheduler, dry_run, overwrite, as_json
    )


@study_app.command("all")
def study_all(
    out: Annotated[Path, typer.Option(help="Folder to write the studies into, one folder each.")] = Path("runs/all"),
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
    dry_run: DryRun = False,
    overwrite: StudyOverwrite = False,
    as_json: Json = False,
) -> None:
    """Every table and figure of the paper: censoring, total, competition and application."""
    from unmet.study.experiments import application, competition, total
    from unmet.study.paper import MARKET_SHARES, PENETRATIONS
    from unmet.study.paper import QUEUES as PAPER_QUEUES

    city = _city(trips, stations, cars, "Europe/Copenhagen", seed)
    own = bool(trips) and not cars
    choices = _choices(models, backbones, preset, runs, seed, epochs)
    if not dry_run:
        # The table of censored hours is quick to make, and is made again.
        _run_censoring(city, out / "censoring", 10, seed, True, as_json, (0.2, 0.4, 0.6, 0.8, 1.0) if own else ())
    most = 1.0 if own else 0.05
    for name, make in (
        ("total", lambda: total(city, choices, PAPER_QUEUES, (most,) if own else PENETRATIONS)),
        ("competition", lambda: competition(city, choices, MARKET_SHARES, penetration=most)),
        ("application", lambda: application(city, choices, penetration=most)),
    ):
        _run_study(make, out / name, workers, scheduler, dry_run, overwrite, as_json)


def _choices(
    models: str | None, backbones: str, preset: str, runs: int | None, seed: int, epochs: int | None
) -> Choices:
    from unmet.study.experiments import PRESETS, Choices

    if preset not in PRESETS:
        raise InputError(f"There is no preset {preset!r}: choose one of {', '.join(PRESETS)}.")
    base = Choices(
        backbones=tuple(name.strip() for name in backbones.split(",") if name.strip()),
        runs=runs or PRESETS[preset],
        seed=seed,
        epochs=epochs,
    )
    return replace(base, models=tuple(name.strip() for name in models.split(",") if name.strip())) if models else base


def _run_study(
    make: Callable[[], Experiment],
    out: Path,
    workers: int | None,
    scheduler: str | None,
    dry_run: bool,
    overwrite: bool,
    as_json: bool,
) -> None:
    from unmet.runs import available_cores
    from unmet.study.execute import execute
    from unmet.study.store import Store
    from unmet.views.study import print_plan, print_study, study_report, write_study
    from unmet.views.terminal import progress, say, study_progress

    with progress("Playing the scenes"):
        experiment = make()
    store = Store(out, overwrite=overwrite and not dry_run, read_only=dry_run)
    if dry_run:
        print_plan(experiment, store, workers or available_cores(), as_json=as_json)
        return
    try:
        with study_progress(experiment.title) as advance:
            done = execute(
                experiment.runs, experiment.scenes, store, workers=workers, scheduler=scheduler, on_progress=advance
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
    print_study(report, store, out, as_json=as_json)
    if done.failed:
        raise typer.Exit(1)


@app.command()
def panel(
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILES...", help="Session records, of any number and known format.")
    ] = None,
    stations: Annotated[Path | None, typer.Option(help="Table of stations: ids, positions, plugs.")] = None,
    format_name: Annotated[
        str, typer.Option("--format", help="Format of the files; auto finds it out for each.")
    ] = "auto",
    mapped: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="NAME=COLUMN", help="Which column holds what, as start=ConnectionStart."),
    ] = None,
    map_file: Annotated[Path | None, typer.Option(help="The same as a YAML file.")] = None,
    sql: Annotated[str | None, typer.Option(help="Database to read from: postgresql://... or sqlite:///file.")] = None,
    query: Annotated[str | None, typer.Option(help="SQL that selects the sessions, with --sql.")] = None,
    regions: Annotated[
        str, typer.Option(help="Number of regions, auto, station (one each), or a GeoJSON file of areas.")
    ] = "10",
    time_zone: Annotated[
        str | None, typer.Option(help="Local time zone, for the hours of the week. [that of the records, else UTC]")
    ] = None,
    country: Annotated[str | None, typer.Option(help="Country for holidays, as DK or US-CA.")] = None,
    booking: Annotated[str, typer.Option(help="Book energy at arrival, or by delivery over the hours.")] = "arrival",
    outages: Annotated[Path | None, typer.Option(help="Plugs out of order: station_id, start, end.")] = None,
    operator: Annotated[
        str | None, typer.Option(help="Whose records these are; --stations then has everybody's stations.")
    ] = None,
    share: Annotated[float | None, typer.Option(help="Market share of this operator, as 0.25.")] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Make the demand panel of an operator's records: demand by region and hour, and how much of it was hidden."""
    from unmet.demand.from_records import PanelChoices, panel_from_records
    from unmet.runs import run_folder
    from unmet.views.panel import print_panel, write_panel
    from unmet.views.terminal import progress, report_set_aside

    choices = PanelChoices(
        files=tuple(files or ()),
        stations=stations,
        format=format_name,
        mapped=tuple(mapped or ()),
        map_file=map_file,
        sql=sql,
        query=query,
        regions=regions,
        time_zone=time_zone,
        country=country,
        booking=booking,
        outages=outages,
        operator=operator,
        share=share,
    )
    with run_folder(out, overwrite=overwrite) as folder:
        with progress("Reading records and counting plugs"):
            made, rejected, about = panel_from_records(choices)
        with progress("Writing tables and figures"):
            summary = write_panel(made, rejected, about, folder)
    report_set_aside(rejected)
    print_panel(made, summary, out, as_json=as_json)


PanelPath = Annotated[
    Path, typer.Argument(metavar="PANEL", help="Folder that `unmet panel` or `unmet simulate` wrote, or a file.")
]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="Folder that `unmet fit` wrote.")]


@app.command()
def fit(
    panel: PanelPath,
    out: Annotated[Path, typer.Option(help="Run folder to write to.")],
    backbone: Annotated[str, typer.Option(help=f"What reads the past hours: {', '.join(BACKBONES)}.")] = "tgcn",
    likelihood: Annotated[
        str, typer.Option(help=f"What an hour of the records says of true demand: {', '.join(LIKELIHOODS)}.")
    ] = "censored-quantile",
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
) -> None:
    """Fit a model of true demand on a panel. Ctrl-C keeps the best weights so far; --resume goes on."""
    import shutil

    from unmet.demand.stored import read_panel
    from unmet.evaluation.evaluate import evaluate as score
    from unmet.models.checkpoint import training_folder
    from unmet.models.forecaster import Forecaster
    from unmet.models.training import training_named
    from unmet.runs import run_folder
    from unmet.views.model import print_model, write_fit
    from unmet.views.model_report import ModelReport
    from unmet.views.terminal import progress, say, training_progress

    stored = read_panel(panel)
    model = Forecaster(
        backbone,
        likelihood,
        levels=tuple(level or (0.05, 0.5, 0.95)),
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
            model.fit(stored.table, regions or stored.regions, checkpoints=trainings, on_progress=advance)
        with progress("Forecasting unseen hours and drawing the figures"):
            shown = ModelReport(model, score(model, stored.table) if test_share else None)
            write_fit(shown, folder)
    print_model(shown, out, as_json=as_json)
    if model.finished_:
        shutil.rmtree(trainings)
    else:
        say(f"Stopped: the best weights so far are kept. The same command with --resume goes on from {trainings}.")


@app.command()
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
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Forecast true demand for the hours after the end of a panel, with intervals."""
    from unmet.demand.stored import read_panel
    from unmet.models.series import read_series
    from unmet.models.storage import load_model
    from unmet.runs import run_folder
    from unmet.views.model import print_forecast, write_forecast
    from unmet.views.model_report import ForecastReport
    from unmet.views.terminal import progress

    fitted, stored = load_model(model), read_panel(panel)
    with run_folder(out, overwrite=overwrite) as folder, progress("Forecasting"):
        made = fitted.forecast(stored.table, hours, future)
        past = read_series(stored.table, names=fitted.regions_, last_hours=fitted.lags).table()
        summary = write_forecast(ForecastReport(fitted, made, past), folder)
    print_forecast(summary, out, as_json=as_json)


@app.command()
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
    from unmet.views.terminal import progress

    fitted, stored = load_model(model), read_panel(panel)
    with run_folder(out, overwrite=overwrite) as folder, progress("Forecasting unseen hours and drawing the figures"):
        shown = ModelReport(fitted, score(fitted, stored.table, since.replace(tzinfo=UTC) if since else None))
        write_evaluation(shown, folder)
    print_model(shown, out, as_json=as_json)


def _run_censoring(
    city: City, out: Path, regions: int, seed: int, overwrite: bool, as_json: bool, shares: tuple[float, ...] = ()
) -> None:
    from unmet.runs import run_folder
    from unmet.simulation.scenario import Scenario
    from unmet.study.censoring import run_censoring
    from unmet.study.paper import PENETRATIONS
    from unmet.study.paper import QUEUES as PAPER_QUEUES
    from unmet.views.censoring import print_censoring, write_censoring
    from unmet.views.terminal import progress

    with run_folder(out, overwrite=overwrite) as folder:
        penetrations = shares or PENETRATIONS
        with progress("Playing queues and penetrations", len(PAPER_QUEUES) * len(penetrations)) as advance:
            study = run_censoring(
                city, penetrations=penetrations, regions=regions, scenario=Scenario(seed=seed), on_cell=advance
            )
        with progress("Drawing the figures"):
            write_censoring(study, folder)
    print_censoring(study, out, as_json=as_json)


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


def _city(trips: Path | None, stations: Path | None, cars: int | None, time_zone: str, seed: int) -> City:
    from unmet.city.build import build_city
    from unmet.views.terminal import progress, report_set_aside, say

    with progress("Building the city"):
        city = build_city(trips, stations, cars, time_zone, seed)
    for note in city.notes():
        say(note)
    report_set_aside(city.rejected)
    return city
