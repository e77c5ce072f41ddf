"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unmet.errors import InputError

BACKBONES = (  # for help and completion, without slow imports
    "stacked", "climatology", "regression", "lightgbm", "tgcn", "mlp", "linear", "seasonal", "tgcn-adaptive",
)  # fmt: skip
# The last three are for networks only.
LIKELIHOODS = ("exposure", "censored-quantile", "quantile", "tobit", "gaussian")
QUEUES = ("gas-station", "three-hour", "first-come", "reservation")

Seed = Annotated[
    int, typer.Option(min=0, max=2**63 - 1, help="Seed of every random choice: the same seed gives the same result.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON on standard output.")]
Tables = Annotated[
    str | None,
    typer.Option("--tables", metavar="FORMATS", help="Formats of all tables, including rejected rows: csv, xlsx. "
                 "Parquet is always written. [csv for tables up to 100,000 rows]"),
]  # fmt: skip
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing output.")]
StationsTable = Annotated[Path | None, typer.Option(help="Table of stations: ids, positions, plugs.")]
FormatName = Annotated[str, typer.Option("--format", help="Format of the files; auto detects it for each file.")]
Mapped = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="NAME=COLUMN", help="Heading of a column, such as start=ConnectionStart."),
]
MapFile = Annotated[Path | None, typer.Option(help="YAML file with a mapping like that of --map.")]
JoinRestarts = Annotated[
    float,
    typer.Option(min=0, metavar="MINUTES", help="Join sessions that a user restarts within MINUTES. 0: never."),
]
Crs = Annotated[
    str | None,
    typer.Option(help="Coordinate system of --stations if not degrees, such as EPSG:2056. Default: detected."),
]
MapStations = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=COLUMN", help="Heading of a column of --stations, such as station_id=Site."),
]
Since = Annotated[str | None, typer.Option(help="Leave out sessions that start before this day or time.")]
Until = Annotated[str | None, typer.Option(help="Leave out sessions that start on this day or time, or later.")]
PanelPath = Annotated[
    Path, typer.Argument(metavar="PANEL", help="Folder that `unmet panel`, `recover` or `simulate` wrote, or a file.")
]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="Folder that `unmet fit` wrote.")]
WaitingOption = Annotated[
    str, typer.Option(metavar="SHARE", help="Share of drivers at a full site who wait for a plug, or auto (estimate).")
]
SpillOption = Annotated[
    str,
    typer.Option(metavar="SHARE", help="Share of those not waiting who charge at a site nearby, or auto (estimate)."),
]
Energy = Annotated[
    str,
    typer.Option(help="Energy of a lost driver: seen (like recorded sessions there), to-80 (up to 80 %), or auto: "
                 "to-80 for sessions of `unmet simulate`, which counts lost drivers that way, else seen."),
]  # fmt: skip


def share_option(name: str, text: str) -> float | None:
    """The share given to an option, or None for auto."""
    if text == "auto":
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise InputError(f"{name} {text!r} makes no sense: give auto, or a share from 0 to 1, such as 0.3.")
    return value


def complete_queue(incomplete: str) -> list[str]:
    """The queues whose names start with this text."""
    return [name for name in QUEUES if name.startswith(incomplete)]


def pairs_of(mapped: list[str] | None, option: str) -> dict[str, str]:
    """The NAME=COLUMN pairs given to an option, as {name: column}."""
    pairs = {}
    for text in mapped or ():
        name, equals, column = text.partition("=")
        if not (name and equals and column):
            raise InputError(f"{option} {text!r} makes no sense: give NAME=COLUMN, such as vehicle_id=car.")
        pairs[name] = column
    return pairs
