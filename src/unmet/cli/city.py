"""Commands on cities: the demonstration, and trips."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from unmet.cli.city_options import CityOptions
from unmet.cli.options import Json, Mapped, Overwrite, Seed, pairs_of
from unmet.cli.study_runs import censoring_study
from unmet.errors import InputError

__all__ = ["demo", "trips"]

MONDAY = datetime(2024, 1, 8)  # default date of a MATSim scenario, which has none; as in `MatsimDay`


def demo(
    out: Annotated[Path, typer.Option(help="Output folder.")] = Path("demo"),
    seed: Seed = 1,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Demonstrate unmet on the built-in city: records, the demand they do not show, a plan and a report."""
    from unmet.evaluation.evaluate import evaluate as score
    from unmet.models.forecaster import Forecaster
    from unmet.runs import run_folder
    from unmet.study.scenes import total_scenes
    from unmet.views.censoring import print_censoring, write_censoring
    from unmet.views.demo import print_story, tell_story
    from unmet.views.model_pages import print_model, write_fit
    from unmet.views.model_report import ModelReport
    from unmet.views.terminal import progress

    city = CityOptions().build(seed)
    with run_folder(out, overwrite=overwrite) as folder:
        study = censoring_study(city, regions=10, seed=seed)
        with progress("Drawing the figures"):
            write_censoring(study, folder)
        cell = study.worst_cell
        (scene,) = total_scenes(city, [cell.queue], [cell.penetration], seed=seed)
        model = Forecaster(seed=seed, time_zone=city.time_zone)
        with progress("Fitting tables, regression and trees"):
            model.fit(scene.panel, scene.positions)
        with progress("Forecasting held-out hours and drawing the figures"):
            report = ModelReport(model, score(model, scene.panel))
            write_fit(report, folder)
        with progress("Estimating lost demand and planning"):
            story = tell_story(city, cell.queue, cell.penetration, seed, folder)
    if not as_json:
        print_censoring(study, out, as_json=False)
    print_model(report, out, as_json=as_json)
    if not as_json:
        print_story(story, out)


def trips(
    out: Annotated[Path, typer.Option(help="File to write the trips to, .parquet or .csv.")],
    gps: Annotated[
        Path | None, typer.Option(help="Raw GPS points (vehicle_id, time, lat, lon), CSV or Parquet, to stitch.")
    ] = None,
    privacy_noise: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="MIN MAX", help="Move every stop by MIN to MAX metres in a random direction."),
    ] = None,
    matsim: Annotated[Path | None, typer.Option(help="Plans or events of a MATSim scenario, .xml or .xml.gz.")] = None,
    network: Annotated[Path | None, typer.Option(help="Network of the MATSim scenario.")] = None,
    chargers: Annotated[
        Path | None, typer.Option(help="Chargers of the scenario, written as stations to OUT.stations.")
    ] = None,
    crs: Annotated[str | None, typer.Option(help="Coordinate system of the scenario, such as EPSG:25832.")] = None,
    mode: Annotated[str, typer.Option(help="Transport mode of the cars in the scenario.")] = "car",
    day: Annotated[datetime, typer.Option(formats=["%Y-%m-%d"], help="Date of the scenario's day.")] = MONDAY,
    days: Annotated[int, typer.Option(min=1, help="Number of days to write, all like the scenario's day.")] = 1,
    time_zone: Annotated[str, typer.Option(help="Time zone of the scenario.")] = "UTC",
    mapped: Mapped = None,
    stop_minutes: Annotated[float, typer.Option(min=0.5, help="A stop of this many minutes ends a trip.")] = 5.0,
    seed: Seed = 1,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Stitch raw GPS points into trips, or write the trips of a MATSim scenario or of the built-in city."""
    from unmet.city.export import MatsimSource, write_matsim, write_trips
    from unmet.city.matsim import MatsimDay
    from unmet.views.terminal import next_step, print_summary, progress, report_set_aside

    if matsim:
        if gps:
            raise InputError("Give --gps or --matsim, not both.")
        source = MatsimSource(matsim, network, chargers, crs, mode)
        with progress("Reading the scenario"):
            summary, rejected = write_matsim(out, source, MatsimDay(day.date(), days, time_zone), overwrite=overwrite)
        report_set_aside(rejected)
        print_summary("Trips", summary, as_json=as_json)
        next_step(after_trips(out))
        return
    with progress("Stitching", parts="GPS points") if gps else progress("Simulating trips") as advance:
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
    print_summary("Trips", summary, as_json=as_json)
    next_step(after_trips(out))


def after_trips(out: Path) -> str:
    """The suggested next step after writing trips."""
    return f"`unmet simulate --trips {out} --stations STATIONS --out RUN` makes all of these cars electric."
