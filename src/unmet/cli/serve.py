"""The command that serves the app."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["serve"]


def serve(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN...]", help="Folders that `unmet recover`, `panel`, `plan` or `forecast` wrote."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on. One that other machines can reach needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = 8050,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with the token that visitors need. [environment variable UNMET_TOKEN]", rich_help_panel="Network"
        ),
    ] = None,
    folder: Annotated[Path | None, typer.Option(help="Folder for uploads. [a new one, removed at the end]")] = None,
    basemap: Annotated[
        Path | None, typer.Option(help="GeoJSON file of coasts, streets or borders, to draw under maps.")
    ] = None,
    max_megabytes: Annotated[int, typer.Option(min=1, help="Maximum size of an uploaded file [MB].")] = 50,
    max_rows: Annotated[int, typer.Option(min=1, help="Maximum number of rows in an uploaded file.")] = 500_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of every random choice.")] = 1,
) -> None:
    """Explore a city, your records, plans and forecasts in a browser. The JSON API is documented at /docs."""
    from unmet.views.app.server import Limits, Settings, run_server

    settings = Settings.checked(
        runs=tuple(runs or ()), host=host, port=port, token_file=token_file, folder=folder, seed=seed,
        limits=Limits(max_megabytes * 1_000_000, max_rows), basemap=basemap,
    )  # fmt: skip
    run_server(settings)
