"""Commands on sources of records: inspect files, and fetch from a server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unmet.cli.options import Crs, FormatName, Json, MapFile, Mapped, MapStations, StationsTable

__all__ = ["fetch", "inspect"]


def inspect(
    files: Annotated[list[Path], typer.Argument(metavar="FILES...", help="Files, folders or patterns of records.")],
    format_name: FormatName = "auto",
    mapped: Mapped = None,
    map_file: MapFile = None,
    time_zone: Annotated[str | None, typer.Option(help="Time zone of times that carry none.")] = None,
    stations: StationsTable = None,
    map_stations: MapStations = None,
    crs: Crs = None,
    as_json: Json = False,
) -> None:
    """Show what files contain and how they would be read: columns, ten parsed rows and a mapping to start from."""
    from unmet.demand.from_records import PanelChoices, chosen_mapping, station_mapping
    from unmet.records.inspection import inspect_files
    from unmet.records.one_file import Reading
    from unmet.views.inspection import print_inspections
    from unmet.views.terminal import next_step, progress

    choices = PanelChoices(mapped=tuple(mapped or ()), map_file=map_file, station_columns=tuple(map_stations or ()))
    with progress("Reading records"):
        reading = Reading(format_name, chosen_mapping(choices), time_zone)
        found = inspect_files(list(files), reading, stations, station_mapping(choices), crs)
    print_inspections(found, as_json=as_json)
    given = " ".join(map(str, files[:3])) + (" ..." if len(files) > 3 else "")
    if any(inspection.problem and inspection.mapping for inspection in found):
        given += " --map-file mapping.yaml"
        step = f"save the mapping as mapping.yaml and check it; then `unmet recover {given} --out RUN` estimates"
    else:
        step = f"`unmet recover {given} --stations STATIONS --out RUN` (stations are optional) estimates"
    next_step(f"{step} what these records hide.")


def fetch(
    url: Annotated[str, typer.Argument(metavar="URL", help="OCPI endpoint, such as https://.../ocpi/cpo/2.2.1/cdrs.")],
    out: Annotated[Path, typer.Option(help="Output folder. An unfinished download there is resumed.")],
    token_file: Annotated[
        Path | None, typer.Option(help="File with the credentials token. [environment variable UNMET_OCPI_TOKEN]")
    ] = None,
    since: Annotated[str | None, typer.Option(help="Only objects updated on or after this day or time (UTC).")] = None,
    until: Annotated[str | None, typer.Option(help="Only objects updated before this day or time (UTC).")] = None,
    as_json: Json = False,
) -> None:
    """Download the CDRs or Locations of an OCPI server into a file that `unmet panel` reads."""
    from unmet.records.ocpi_http import fetch_ocpi, read_token
    from unmet.records.times import read_moment
    from unmet.views.terminal import next_step, print_summary, progress

    token = read_token(token_file)
    first, last = read_moment("--since", since, None), read_moment("--until", until, None)
    with progress("Fetching", parts="objects") as show:
        path, objects = fetch_ocpi(url, out, token, since=first, until=last, progress=lambda done, _: show(done))
    print_summary("Fetched", {"file": str(path), "objects": objects}, as_json=as_json)
    next_step(f"`unmet inspect {path}` shows how it would be read; `unmet recover {path} --out RUN` estimates losses.")
