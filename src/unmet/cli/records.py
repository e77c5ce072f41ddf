"""Commands on records: build a panel, and estimate the demand that the records do not show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unmet.cli.option_groups import with_options
from unmet.cli.options import (
    Crs,
    Energy,
    FormatName,
    JoinRestarts,
    Json,
    MapFile,
    Mapped,
    MapStations,
    Overwrite,
    Seed,
    Since,
    SpillOption,
    StationsTable,
    Tables,
    Until,
    WaitingOption,
    share_option,
)

if TYPE_CHECKING:
    from unmet.demand.from_records import PanelChoices

__all__ = ["panel", "recover"]


def record_options(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILES...", help="Session records: files, folders, or patterns such as 2024-*.csv."),
    ] = None,
    stations: StationsTable = None,
    format_name: FormatName = "auto",
    mapped: Mapped = None,
    map_file: MapFile = None,
    sql: Annotated[str | None, typer.Option(help="Database to read from: postgresql://... or sqlite:///file.")] = None,
    query: Annotated[str | None, typer.Option(help="SQL that selects the sessions, with --sql.")] = None,
    regions: Annotated[
        str, typer.Option(help="Number of regions, auto, station (one per station), or a GeoJSON file of areas.")
    ] = "10",
    time_zone: Annotated[
        str | None,
        typer.Option(help="Local time zone, also assumed for times that state none. [that of the records, else UTC]"),
    ] = None,
    country: Annotated[str | None, typer.Option(help="Country for holidays, such as DK or US-CA.")] = None,
    booking: Annotated[
        str, typer.Option(help="Book energy at: arrival (its hour) or delivery (the hours of delivery).")
    ] = "arrival",
    outages: Annotated[Path | None, typer.Option(help="Table of plugs out of order: station_id, start, end.")] = None,
    operator: Annotated[
        str | None,
        typer.Option(help="Operator of these records; --stations must then list the stations of all operators."),
    ] = None,
    share: Annotated[
        str | None, typer.Option(help="Market share of this operator: a number (0.25) or a range (0.2-0.3).")
    ] = None,
    join_restarts: JoinRestarts = 15,
    map_stations: MapStations = None,
    crs: Crs = None,
    since: Since = None,
    until: Until = None,
) -> PanelChoices:
    """Which records to read, and how."""
    from unmet.demand.from_records import PanelChoices

    return PanelChoices(
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
        join_restarts=join_restarts,
        station_columns=tuple(map_stations or ()),
        crs=crs,
        since=since,
        until=until,
    )


@with_options(record_options)
def panel(
    choices: PanelChoices,
    out: Annotated[Path, typer.Option(help="Output folder.")],
    waiting: WaitingOption = "auto",
    spill: SpillOption = "auto",
    energy: Energy = "auto",
    tables: Tables = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Build the demand panel of an operator's records: demand by region and hour, and how much was lost."""
    from unmet.demand.from_records import panel_from_records
    from unmet.estimation.lost_demand import LostDemand
    from unmet.runs import run_folder
    from unmet.views.lost_report import LostReport
    from unmet.views.panel import print_panel, write_panel_page
    from unmet.views.table_files import parse_formats, write_table_files
    from unmet.views.terminal import next_step, progress, report_set_aside, say

    formats = parse_formats(tables)
    estimator = LostDemand(
        waiting=share_option("--waiting", waiting),
        spill=share_option("--spill", spill),
        energies=energies_of(choices, energy),
    )
    with run_folder(out, overwrite=overwrite) as folder:
        with progress("Reading records", parts="files") as show:
            built, rejected, about = panel_from_records(choices, lambda done, _: show(done))
        with progress("Estimating lost demand"):
            report = LostReport.of(estimator.fit(built))
        with progress("Writing tables and figures"):
            summary = write_panel_page(report, rejected, about, folder)
            notes = write_table_files(folder, formats)
    report_set_aside(rejected, listed=f"in {out / 'rejected.csv'}", sessions=about["rows_set_aside"])
    print_panel(report, summary, out, as_json=as_json)
    for note in notes:
        say(note)
    next_step(f"`unmet fit {out} --out MODEL` fits a forecaster; `unmet report {out}` writes a report to share.")


@with_options(record_options)
def recover(
    choices: PanelChoices,
    out: Annotated[Path, typer.Option(help="Output folder.")],
    interval: Annotated[float, typer.Option(help="Probability that an interval contains the truth.")] = 0.9,
    draws: Annotated[int, typer.Option(help="Number of posterior draws.")] = 200,
    seed: Seed = 1,
    waiting: WaitingOption = "auto",
    spill: SpillOption = "auto",
    energy: Energy = "auto",
    by_area: Annotated[
        int | None,
        typer.Option(min=1, help="Number of areas of nearby stations to estimate separately. [as memory requires]"),
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Areas to estimate at once. [one per core]")] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Dask scheduler whose workers estimate areas, such as tcp://host:8786.")
    ] = None,
    tables: Tables = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Estimate lost demand: what the records do not show, where and when, with intervals.

    FILES are session records, or one folder that `unmet panel` wrote. Records that do not fit into memory are estimated
    area by area.
    """
    from unmet.demand.from_records import panel_from_records
    from unmet.demand.stored import load_panel
    from unmet.estimation.lost_demand import LostDemand
    from unmet.runs import run_folder
    from unmet.views.lost_report import LostReport
    from unmet.views.recovery import print_recovery, write_recovery
    from unmet.views.table_files import parse_formats, write_table_files
    from unmet.views.terminal import next_step, progress, report_set_aside, say

    formats = parse_formats(tables)
    estimator = LostDemand(
        waiting=share_option("--waiting", waiting),
        spill=share_option("--spill", spill),
        energies=energies_of(choices, energy),
        draws=draws,
        interval=interval,
        seed=seed,
    )
    folder_of_panel = panel_folder(choices)
    if folder_of_panel is None and (by_area or scheduler or need_areas(choices)):
        recover_areas(choices, estimator.get_params(), out, by_area, workers, scheduler, formats, overwrite, as_json)
        return
    with run_folder(out, overwrite=overwrite) as folder:
        with progress("Reading records", parts="files") as show:
            if folder_of_panel is None:
                built, rejected, about = panel_from_records(choices, lambda done, _: show(done))
            else:
                built, rejected, about = load_panel(folder_of_panel), None, None
        with progress("Estimating lost demand"):
            report = LostReport.of(estimator.fit(built))
        with progress("Writing tables and figures"):
            summary = write_recovery(report, rejected, about, folder)
            notes = write_table_files(folder, formats)
    if rejected is not None and about is not None:
        report_set_aside(rejected, listed=f"in {out / 'rejected.csv'}", sessions=about["rows_set_aside"])
    print_recovery(report, summary, out, as_json=as_json)
    for note in notes:
        say(note)
    next_step(after_recover(out, can_plan=summary["lost_arrivals"]["mean"] > 0))


def need_areas(choices: PanelChoices) -> bool:
    """Whether the records must be estimated area by area; if so, this is also printed.

    They must be if they are Parquet files with more sessions than fit into memory. They can be divided by area only
    with a table of stations, and without --operator and --share.
    """
    from unmet.estimation.recover_areas import rows_beyond_memory
    from unmet.views.terminal import say

    if choices.stations is None or choices.operator or choices.share or not (rows := rows_beyond_memory(choices.files)):
        return False
    say(f"{rows:,} sessions do not fit into memory at once, so they are estimated area by area.")
    return True


def recover_areas(
    choices: PanelChoices,
    estimator_options: dict[str, Any],
    out: Path,
    areas: int | None,
    workers: int | None,
    scheduler: str | None,
    formats: Any,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Estimate lost demand area by area, and write and print it.

    `estimator_options` are the parameters of a `LostDemand`; `formats` is the result of `parse_formats`.
    """
    from unmet.estimation.recover_areas import Places, recover_by_area
    from unmet.runs import run_folder
    from unmet.views.area_recovery import write_area_recovery
    from unmet.views.recovery import print_recovery
    from unmet.views.table_files import write_table_files
    from unmet.views.terminal import next_step, progress, report_set_aside, say

    with run_folder(out, overwrite=overwrite) as folder:
        with progress("Reading records and estimating areas", parts="parts") as show:
            added, rejected, about = recover_by_area(
                choices, estimator_options, folder, areas=areas, places=Places(workers, scheduler),
                on_read=lambda done, _: show(done), on_area=lambda done, _: show(done),
            )  # fmt: skip
        with progress("Writing tables and figures"):
            report, summary = write_area_recovery(added, rejected, about, estimator_options, folder)
            notes = write_table_files(folder, formats)
    report_set_aside(rejected, listed=f"in {out / 'rejected.csv'}", sessions=about["rows_set_aside"])
    print_recovery(report, summary, out, as_json=as_json)
    for note in notes:
        say(note)
    next_step(f"`unmet report {out}` writes a report to share; areas.csv lists the areas.")


def after_recover(out: Path, *, can_plan: bool) -> str:
    """The suggested next steps; a plan is suggested only if some demand was lost."""
    plan = f"`unmet plan {out} --plugs 10 --out {out}-plan` says where to add plugs; " if can_plan else ""
    return f"{plan}`unmet report {out}` writes a report to share; `unmet serve {out}` opens it in a browser."


def energies_of(choices: PanelChoices, energy: str) -> str:
    """The energy assumed for lost drivers: `to-80` if the records are simulated, else `seen`.

    In a simulation, lost drivers would have charged to 80 %. Its records are recognised by their name,
    sessions.parquet, and the scenario.yaml beside them.
    """
    if energy != "auto":
        return energy
    simulated = [
        (path.parent / "scenario.yaml").is_file() and path.name == "sessions.parquet" for path in choices.files
    ]
    return "to-80" if simulated and all(simulated) else "seen"


def panel_folder(choices: PanelChoices) -> Path | None:
    """The folder of a panel, if one was given instead of records. Options for reading records are then refused."""
    from dataclasses import replace

    from unmet.demand.from_records import PanelChoices
    from unmet.demand.stored import holds_panel
    from unmet.errors import InputError

    panels = [path for path in choices.files if (path / "panel.parquet").is_file()]
    if not panels:
        return None
    folder = panels[0]
    if len(choices.files) > 1:
        raise InputError(f"{folder} is a panel: give one panel, or any number of files of records.")
    if not holds_panel(folder) and (folder / "arrivals.parquet").is_file():
        raise InputError(
            f"{folder} is a simulation: give its records, {folder / 'sessions.parquet'} and "
            f"--stations {folder / 'stations.parquet'}."
        )
    if replace(choices, files=()) != PanelChoices():
        raise InputError(
            f"{folder} is a panel and already has stations, regions and a time zone: give such options to "
            "`unmet panel`, or give the records instead."
        )
    return folder
