"""The verb on records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unmet.cli.options import (
    Crs,
    FormatName,
    JoinRestarts,
    Json,
    MapFile,
    Mapped,
    MapStations,
    Overwrite,
    Since,
    StationsTable,
    Until,
)

__all__ = ["panel"]


def panel(
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
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
        str, typer.Option(help="Number of regions, auto, station (one each), or a GeoJSON file of areas.")
    ] = "10",
    time_zone: Annotated[
        str | None,
        typer.Option(help="Local time zone: of times without one, and of the week. [that of the records, else UTC]"),
    ] = None,
    country: Annotated[str | None, typer.Option(help="Country for holidays, as DK or US-CA.")] = None,
    booking: Annotated[str, typer.Option(help="Book energy at arrival, or by delivery over the hours.")] = "arrival",
    outages: Annotated[Path | None, typer.Option(help="Plugs out of order: station_id, start, end.")] = None,
    operator: Annotated[
        str | None, typer.Option(help="Whose records these are; --stations then has everybody's stations.")
    ] = None,
    share: Annotated[
        str | None, typer.Option(help="Market share of this operator, as 0.25, or a range that holds it, as 0.2-0.3.")
    ] = None,
    waiting: Annotated[
        str,
        typer.Option(help="Share of drivers at a full station who wait until served, 0 to 1; auto: by the records."),
    ] = "auto",
    spill: Annotated[
        str,
        typer.Option(
            help="Share of the others who are seen at another station or time, 0 to 1; auto: as records tell."
        ),
    ] = "0",
    energy: Annotated[
        str, typer.Option(help="What drivers who were not seen would have taken: seen (as others), or to-80 (to 80 %).")
    ] = "seen",
    join_restarts: JoinRestarts = 15,
    map_stations: MapStations = None,
    crs: Crs = None,
    since: Since = None,
    until: Until = None,
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
        waiting=waiting,
        spill=spill,
        energy=energy,
        join_restarts=join_restarts,
        station_columns=tuple(map_stations or ()),
        crs=crs,
        since=since,
        until=until,
    )
    with run_folder(out, overwrite=overwrite) as folder:
        with progress("Reading records and counting plugs", parts="files") as show:
            made, rejected, about = panel_from_records(choices, lambda done, _: show(done))
        with progress("Writing tables and figures"):
            summary = write_panel(made, rejected, about, folder)
            if rejected.height:
                rejected.write_csv(folder / "rejected.csv")
    report_set_aside(rejected)
    print_panel(made, summary, out, as_json=as_json)
