"""Verbs on cities: the demonstration, trips and simulations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unmet.cli.options import (
    QUEUES,
    Cars,
    Json,
    Overwrite,
    Seed,
    StationsFile,
    Tables,
    TimeZone,
    TripsFile,
    complete_queue,
    make_city,
)
from unmet.cli.study import censoring_study

__all__ = ["demo", "simulate", "trips"]


def demo(
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("demo"),
    seed: Seed = 1,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Tell the whole story on the built-in city: what its records hide, found again, a plan, and a report."""
    from unmet.evaluation.evaluate import evaluate as score
    from unmet.models.forecaster import Forecaster
    from unmet.runs import run_folder
    from unmet.study.scenes import total_scenes
    from unmet.views.censoring import print_censoring, write_censoring
    from unmet.views.demo import print_story, tell_story
    from unmet.views.model import print_model, write_fit
    from unmet.views.model_report import ModelReport
    from unmet.views.terminal import progress, training_progress

    city = make_city(None, None, None, "Europe/Copenhagen", seed)
    with run_folder(out, overwrite=overwrite) as folder:
        study = censoring_study(city, 10, seed)
        with progress("Drawing the figures"):
            write_censoring(study, folder)
        cell = study.fullest
        (scene,) = total_scenes(city, [cell.queue], [cell.penetration], seed=seed)
        model = Forecaster(likelihood="exposure", seeds=2, seed=seed, time_zone=city.time_zone)
        with training_progress(model.seeds, model.training.epochs) as advance:
            model.fit(scene.panel, scene.positions, on_progress=advance)
        with progress("Forecasting unseen hours and drawing the figures"):
            shown = ModelReport(model, score(model, scene.panel))
            write_fit(shown, folder)
        with progress("Recovering what the records hide, and planning"):
            story = tell_story(city, cell.queue, cell.penetration, seed, folder)
    if not as_json:
        print_censoring(study, out, as_json=False)
    print_model(shown, out, as_json=as_json)
    if not as_json:
        print_story(story, out)


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
    from unmet.views.terminal import next_step, progress, report, report_set_aside

    with progress("Stitching", parts="GPS points") if gps else progress("Driving through the city") as advance:
        summary, rejected = write_trips(
            out,
            gps,
            stop_minutes=stop_minutes,
            privacy_noise_m=privacy_noise,
            seed=seed,
            overwrite=overwrite,
            on_progress=advance,
        )
    report_set_aside(rejected)
    report("Trips", summary, as_json=as_json)
    next_step(f"`unmet simulate --trips {out} --stations STATIONS --out RUN` makes all of these cars electric.")


def simulate(
    out: Annotated[Path, typer.Option(help="Run folder to write to.")],
    queue: Annotated[
        str | None,
        typer.Option(autocompletion=complete_queue, help=f"Queue at all stations: {', '.join(QUEUES)}. [first-come]"),
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
    time_zone: TimeZone = "Europe/Copenhagen",
    tables: Tables = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Simulate a city of electric cars: every arrival at every station, served or lost."""
    from unmet.demand.regions import kmeans_regions
    from unmet.demand.stored import write_regions
    from unmet.runs import run_folder
    from unmet.simulation.run import summarise, write_run
    from unmet.simulation.scenario import read_scenario, scenario_from
    from unmet.simulation.simulate import prepare
    from unmet.simulation.simulate import simulate as play
    from unmet.study.scenes import simulated_records
    from unmet.views.table_files import parse_formats, write_table_files
    from unmet.views.terminal import next_step, progress, report

    formats = parse_formats(tables)

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
        city = make_city(trips, stations, cars, time_zone, chosen.seed)
        with progress("Simulating"):
            outcome = play(prepare(city), chosen)
        write_run(folder, city, chosen, outcome, {"trips": trips, "stations": stations})
        grouped = kmeans_regions(outcome.stations, regions)
        with progress("Estimating lost demand from the records alone"):
            table = simulated_records(outcome, outcome.stations, grouped, city)
        table.write_parquet(folder / "panel.parquet")
        write_regions(grouped, city.time_zone, folder)
        write_table_files(folder, formats)
        summary = summarise(city, chosen, outcome)
    report("Simulation", summary | {"out": str(out)}, as_json=as_json)
    next_step(
        f"`unmet recover {out / 'sessions.parquet'} --stations {out / 'stations.parquet'} --time-zone {city.time_zone} "
        "--out RUN` estimates what these records hide."
    )


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None
