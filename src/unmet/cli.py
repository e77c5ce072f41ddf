"""The `unmet` command: verbs only. What they do lives in the rooms, which are imported when a verb is called."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unmet import __version__
from unmet.errors import InputError

if TYPE_CHECKING:
    from unmet.city.build import City

__all__ = ["QUEUES", "app", "main"]

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
    trips: TripsFile = None,
    stations: StationsFile = None,
    cars: Cars = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Simulate a city of electric cars: every arrival at every station, served or lost."""
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
