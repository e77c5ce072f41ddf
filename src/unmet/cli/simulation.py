"""The command that simulates a city of electric cars."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unmet.cli.city_options import CityOptions, city_options
from unmet.cli.option_groups import with_options
from unmet.cli.options import QUEUES, Json, Overwrite, Tables, complete_queue

if TYPE_CHECKING:
    from unmet.city.build import City
    from unmet.demand.regions import Regions
    from unmet.simulation.outcome import Outcome
    from unmet.simulation.scenario import Scenario

__all__ = ["simulate"]


@dataclass(frozen=True, slots=True)
class ScenarioOptions:
    """Values of a scenario: those in a file, overridden by options."""

    values: dict[str, Any]
    city: dict[str, Any]  # trips, stations, cars and time_zone of the file, if given

    def complete(self, given: CityOptions) -> CityOptions:
        """The options of the city; those that were not given are taken from the scenario file."""
        trips, stations = (Path(text) if (text := self.city.get(name)) else None for name in ("trips", "stations"))
        return replace(
            given,
            trips=given.trips or trips,
            stations=given.stations or stations,
            cars=given.cars or self.city.get("cars"),
            time_zone=given.time_zone or self.city.get("time_zone"),
        )

    def scenario(self, city: CityOptions) -> Scenario:
        """The scenario. All of the user's own cars are electric unless a penetration is given."""
        from unmet.simulation.scenario import scenario_from

        default = {"penetration": 1.0} if city.has_own_cars else {}
        return scenario_from(default | self.values, "The scenario")


def scenario_options(
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
        typer.Option(help="What drivers who find no plug do: elsewhere (charge elsewhere), keep (keep their charge "
                     "and decide again after the next trip), retry (try again after the next trip) or divert (to "
                     "the next nearest station at once). [elsewhere]"),
    ] = None,
    turned_away_share: Annotated[float | None, typer.Option(help="Share who keep, retry or divert. [1]")] = None,
    curve: Annotated[
        str | None,
        typer.Option(help="Charging curve: continuous, literal (as the paper prints it), or literal-lost (also for the "
                     "energy of lost drivers). [continuous]"),
    ] = None,
    plug_in_a: Annotated[
        float | None, typer.Option(help="a of Beta(a, b), the state of charge at which drivers plug in. [3.35]")
    ] = None,
    plug_in_b: Annotated[float | None, typer.Option(help="b of Beta(a, b); the mean is a / (a + b). [3.7]")] = None,
    fleet: Annotated[
        Path | None,
        typer.Option(help="Your own fleet, YAML (models, initial_soc, home_charging) or CSV (models). [Denmark's]"),
    ] = None,
    distance_sensitivity: Annotated[
        float | None,
        typer.Option(help="s [1/km] in exp(-s D), D the distance to a station; -1 is the paper's literal formula. [1]"),
    ] = None,
) -> ScenarioOptions:  # fmt: skip
    """The scenario to simulate."""
    from unmet.simulation.fleet import read_fleet
    from unmet.simulation.scenario import read_scenario

    stored, city = read_scenario(scenario) if scenario else (None, {})
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
    values = stored.model_dump(mode="json") if stored else {}
    return ScenarioOptions(values | {name: value for name, value in given.items() if value is not None}, city)


@with_options(scenario_options, city_options)
def simulate(
    options: ScenarioOptions,
    given: CityOptions,
    out: Annotated[Path, typer.Option(help="Output folder.")],
    regions: Annotated[int, typer.Option(min=1, help="Number of regions of the panel written with the run.")] = 10,
    tables: Tables = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Simulate a city of electric cars: every arrival at every station, served or lost."""
    from unmet.demand.regions import kmeans_regions
    from unmet.runs import run_folder
    from unmet.simulation.run import summarise, write_run
    from unmet.simulation.simulate import prepare
    from unmet.simulation.simulate import simulate as run_simulation
    from unmet.simulation.trip_files import files_to_stream
    from unmet.views.table_files import parse_formats, write_table_files
    from unmet.views.terminal import next_step, print_summary, progress

    formats, chosen = parse_formats(tables), options.complete(given)
    scenario = options.scenario(chosen)
    if files := files_to_stream(chosen.trips):
        _stream(files, chosen, scenario, out, overwrite=overwrite, as_json=as_json)
        return
    with run_folder(out, overwrite=overwrite) as folder:
        city = chosen.build(scenario.seed)
        with progress("Simulating"):
            outcome = run_simulation(prepare(city), scenario)
        write_run(folder, city, scenario, outcome, {"trips": chosen.trips, "stations": chosen.stations})
        _write_panel(folder, city, outcome, kmeans_regions(outcome.stations, regions))
        write_table_files(folder, formats)
        summary = summarise(city, scenario, outcome)
    print_summary("Simulation", summary | {"out": str(out)}, as_json=as_json)
    next_step(
        f"`unmet recover {out / 'sessions.parquet'} --stations {out / 'stations.parquet'} --time-zone {city.time_zone} "
        "--out RUN` estimates what these records hide."
    )


def _write_panel(folder: Path, city: City, outcome: Outcome, regions: Regions) -> None:
    """Write the panel of a simulation's records, with the demand that they do not show."""
    from unmet.demand.stored import write_table
    from unmet.study.scenes import SceneRecords, observed_and_true
    from unmet.views.terminal import progress

    with progress("Estimating lost demand from the records alone"):
        observed = SceneRecords(outcome.arrivals, outcome.sessions, outcome.stations)
        table = observed_and_true(observed, regions, city.period, city.time_zone)
    write_table(table, folder, regions, city.time_zone)


def _stream(
    files: list[Path], city: CityOptions, scenario: Scenario, out: Path, *, overwrite: bool, as_json: bool
) -> None:
    """Simulate trips that are read file by file, because together they may not fit into memory."""
    from unmet.runs import run_folder
    from unmet.simulation.stream import stream_simulation, write_streamed_run
    from unmet.views.terminal import print_summary, progress, report_set_aside, say

    with run_folder(out, overwrite=overwrite) as folder:
        with progress("Simulating", parts="trips") as advance:
            streamed = stream_simulation(
                files,
                city.stations,
                scenario,
                folder,
                cars=city.cars,
                time_zone=city.time_zone or "UTC",
                on_progress=advance,
            )
        summary = write_streamed_run(folder, streamed, scenario, {"trips": city.trips, "stations": city.stations})
    report_set_aside(streamed.city.rejected)
    say(
        f"The trips were streamed, so no panel was written: `unmet panel {out / 'sessions.parquet'} "
        f"--stations {out / 'stations.parquet'}` builds one."
    )
    print_summary("Simulation", summary | {"out": str(out)}, as_json=as_json)
