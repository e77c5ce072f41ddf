"""Verbs on cities: the demonstration, trips and simulations."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from unmet.cli.options import (
    QUEUES,
    Cars,
    Json,
    Mapped,
    MapStations,
    MapTrips,
    Overwrite,
    Seed,
    StationsFile,
    Tables,
    TimeZone,
    TripsFile,
    complete_queue,
    make_city,
    pairs_of,
)
from unmet.cli.study import censoring_study
from unmet.errors import InputError

__all__ = ["demo", "simulate", "trips"]

MONDAY = datetime(2024, 1, 8)


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
    from unmet.views.terminal import progress

    city = make_city(None, None, None, None, seed)
    with run_folder(out, overwrite=overwrite) as folder:
        study = censoring_study(city, 10, seed)
        with progress("Drawing the figures"):
            write_censoring(study, folder)
        cell = study.fullest
        (scene,) = total_scenes(city, [cell.queue], [cell.penetration], seed=seed)
        model = Forecaster(seed=seed, time_zone=city.time_zone)
        with progress("Fitting tables, regression and trees"):
            model.fit(scene.panel, scene.positions)
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
    matsim: Annotated[
        Path | None, typer.Option(help="Plans or events of a MATSim scenario, .xml or .xml.gz, whose cars to take.")
    ] = None,
    network: Annotated[Path | None, typer.Option(help="Its network, for places of links and lengths.")] = None,
    chargers: Annotated[
        Path | None, typer.Option(help="Its chargers, written as stations beside the trips (OUT.stations).")
    ] = None,
    crs: Annotated[str | None, typer.Option(help="Grid of the scenario's positions, as EPSG:25832.")] = None,
    mode: Annotated[str, typer.Option(help="Mode of the cars in the scenario.")] = "car",
    day: Annotated[datetime, typer.Option(formats=["%Y-%m-%d"], help="Date of the scenario's day.")] = MONDAY,
    days: Annotated[int, typer.Option(min=1, help="Days on end on which that day is driven.")] = 1,
    time_zone: Annotated[str, typer.Option(help="Time zone of the scenario's clocks.")] = "UTC",
    mapped: Mapped = None,
    stop_minutes: Annotated[float, typer.Option(min=0.5, help="A rest this long ends a trip.")] = 5.0,
    seed: Seed = 1,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Stitch raw GPS points into trips, read those of a MATSim scenario, or write those of the built-in city."""
    from unmet.city.export import MatsimSource, write_matsim, write_trips
    from unmet.city.matsim import MatsimDay
    from unmet.views.terminal import next_step, progress, report, report_set_aside

    if matsim:
        if gps:
            raise InputError("Give --gps or --matsim, not both: either says where the trips come from.")
        source = MatsimSource(matsim, network, chargers, crs, mode)
        with progress("Reading the scenario"):
            summary, rejected = write_matsim(out, source, MatsimDay(day.date(), days, time_zone), overwrite=overwrite)
        report_set_aside(rejected)
        report("Trips", summary, as_json=as_json)
        return
    with progress("Stitching", parts="GPS points") if gps else progress("Driving through the city") as advance:
        summary, rejected = write_trips(
            out,
            gps,
            mapped=pairs_of(mapped, "--map"),
            stop_minutes=stop_minutes,
            privacy_noise_m=privacy_noise,
            seed=seed,
            overwrite=overwrite,
            on_progress=advance,
        )
    report_set_aside(rejected, listed=f"in {summary.get('rejected')}")
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
        typer.Option(help="What drivers do who find no plug: elsewhere, keep (their charge, decide anew), "
                     "retry (after the next trip) or divert (to the next nearest station at once). [elsewhere]"),
    ] = None,
    turned_away_share: Annotated[float | None, typer.Option(help="Share who keep, retry or divert. [1]")] = None,
    curve: Annotated[
        str | None,
        typer.Option(help="Charging curve: continuous, literal as the paper prints it, or literal-lost, by which lost "
                     "drivers' energy is counted too. [continuous]"),
    ] = None,
    plug_in_a: Annotated[
        float | None, typer.Option(help="a of Beta(a, b), the state of charge at which drivers plug in. [3.4]")
    ] = None,
    plug_in_b: Annotated[float | None, typer.Option(help="b of it; its mean is a / (a + b). [3.7]")] = None,
    fleet: Annotated[
        Path | None,
        typer.Option(help="Your own fleet, YAML (models, initial_soc, home_charging) or CSV (models). [Denmark's]"),
    ] = None,
    distance_sensitivity: Annotated[
        float | None, typer.Option(help="s in exp(-s D), 1/km; -1 is the paper's literal formula. [1]")
    ] = None,
    regions: Annotated[int, typer.Option(min=1, help="Regions of the panel that is written with it.")] = 10,
    trips: TripsFile = None,
    stations: StationsFile = None,
    cars: Cars = None,
    time_zone: TimeZone = None,
    map_trips: MapTrips = None,
    map_stations: MapStations = None,
    tables: Tables = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Simulate a city of electric cars: every arrival at every station, served or lost."""
    from unmet.demand.regions import kmeans_regions
    from unmet.demand.stored import write_regions
    from unmet.runs import run_folder
    from unmet.simulation.fleet import read_fleet
    from unmet.simulation.run import summarise, write_run
    from unmet.simulation.scenario import read_scenario, scenario_from
    from unmet.simulation.simulate import prepare
    from unmet.simulation.simulate import simulate as play
    from unmet.simulation.stream import files_to_stream, stream_simulation, write_streamed_run
    from unmet.study.scenes import simulated_records
    from unmet.views.table_files import parse_formats, write_table_files
    from unmet.views.terminal import next_step, progress, report, report_set_aside, say

    formats = parse_formats(tables)

    read, city_of = read_scenario(scenario) if scenario else (None, {})
    base = read.model_dump(mode="json") if read else {}
    trips = trips or _path(city_of.get("trips"))
    stations = stations or _path(city_of.get("stations"))
    cars = cars or city_of.get("cars")
    time_zone = time_zone or city_of.get("time_zone")
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
        "plug_in_a": plug_in_a,
        "plug_in_b": plug_in_b,
        "fleet": read_fleet(fleet) if fleet else None,
    }
    chosen = scenario_from(base | {k: v for k, v in given.items() if v is not None}, "The scenario")
    if many := files_to_stream(trips):
        with run_folder(out, overwrite=overwrite) as folder:
            with progress("Simulating", parts="trips") as advance:
                streamed = stream_simulation(
                    many, stations, chosen, folder, cars=cars, time_zone=time_zone or "UTC", on_progress=advance
                )
            summary = write_streamed_run(folder, streamed, chosen, {"trips": trips, "stations": stations})
        report_set_aside(streamed.city.rejected)
        say(f"Trips were streamed, so there is no panel yet: `unmet panel {out / 'sessions.parquet'} "
            f"--stations {out / 'stations.parquet'}` makes it.")  # fmt: skip
        report("Simulation", summary | {"out": str(out)}, as_json=as_json)
        return
    with run_folder(out, overwrite=overwrite) as folder:
        city = make_city(trips, stations, cars, time_zone, chosen.seed, map_trips, map_stations)
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
