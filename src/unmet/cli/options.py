"""Options that several verbs share, and the city that several of them begin with."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from unmet.errors import InputError

if TYPE_CHECKING:
    from unmet.city.build import City

BACKBONES = ("tgcn", "mlp", "linear", "seasonal")  # for help and completion, without slow imports
LIKELIHOODS = ("exposure", "censored-quantile", "quantile", "tobit", "gaussian")
QUEUES = ("gas-station", "three-hour", "first-come", "reservation")

Seed = Annotated[
    int, typer.Option(min=0, max=2**63 - 1, help="Seed of every random choice: the same seed gives the same result.")
]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON on standard output.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is at --out already.")]
TripsFile = Annotated[
    Path | None,
    typer.Option(
        "--trips",
        help="Your own trips: CSV, Parquet, or a folder or pattern of Parquet files. Default: the built-in city's.",
    ),
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
StationsTable = Annotated[Path | None, typer.Option(help="Table of stations: ids, positions, plugs.")]
FormatName = Annotated[str, typer.Option("--format", help="Format of the files; auto finds it out for each.")]
Mapped = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="NAME=COLUMN", help="Which column holds what, as start=ConnectionStart."),
]
MapFile = Annotated[Path | None, typer.Option(help="The same as a YAML file.")]
JoinRestarts = Annotated[
    float,
    typer.Option(min=0, metavar="MINUTES", help="Join sessions that a user starts again within MINUTES. 0: never."),
]
Crs = Annotated[
    str | None,
    typer.Option(help="Grid of positions in --stations that are not degrees, as EPSG:2056. Default: by range."),
]
MapStations = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=COLUMN", help="Which column of --stations holds what, as station_id=Site."),
]
Since = Annotated[str | None, typer.Option(help="Leave out sessions that start before this day or time.")]
Until = Annotated[str | None, typer.Option(help="Leave out sessions that start on this day or time, or later.")]
PanelPath = Annotated[
    Path, typer.Argument(metavar="PANEL", help="Folder that `unmet panel` or `unmet simulate` wrote, or a file.")
]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="Folder that `unmet fit` wrote.")]
Waiting = Annotated[
    str, typer.Option(metavar="SHARE", help="Share of drivers at a full site who wait until served; auto: estimated.")
]
Spill = Annotated[
    str, typer.Option(metavar="SHARE", help="Share of the others who are served at a site nearby; auto: estimated.")
]
Energy = Annotated[
    str, typer.Option(help="What a lost driver would have taken: seen (as others there), or to-80 (up to 80 %).")
]


def with_options(options: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a verb all the options of `options`, whose result becomes the verb's first argument."""
    shared = _parameters(options)

    def add(verb: Callable[..., None]) -> Callable[..., None]:
        _, *own = _parameters(verb).values()

        @functools.wraps(verb)
        def run(**given: Any) -> None:
            verb(options(**{name: given.pop(name) for name in shared}), **given)

        del run.__wrapped__  # else the verb's own signature would show through
        together = [p.replace(kind=p.KEYWORD_ONLY) for p in (*shared.values(), *own)]
        run.__signature__ = inspect.Signature(together)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in together}
        return run

    return add


MaxMemory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", envvar="UNMET_MAX_MEMORY", help="Memory that data may take, as 8GB. [what is free]",
        show_default=False, show_envvar=False,
    ),
]  # fmt: skip


def with_memory_limit(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the option --max-memory, which it does not have to know of."""
    own = list(_parameters(verb).values())

    @functools.wraps(verb)
    def run(*, max_memory: str | None = None, **given: Any) -> None:
        from unmet.memory import allow_bytes, parse_size

        if max_memory is not None:
            allow_bytes(parse_size(max_memory))
        verb(**given)

    del run.__wrapped__
    option = inspect.Parameter("max_memory", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=MaxMemory)
    together = [*(parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in own), option]
    run.__signature__ = inspect.Signature(together)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in together}
    return run


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    # PanelChoices is imported by type checkers alone, because its import is slow.
    hints = get_type_hints(function, localns={"PanelChoices": Any}, include_extras=True)
    found = inspect.signature(function).parameters
    return {name: parameter.replace(annotation=hints[name]) for name, parameter in found.items()}


def share_option(name: str, text: str) -> float | None:
    """A share, or None if it is to be estimated."""
    if text == "auto":
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise InputError(f"{name} {text!r} makes no sense: give auto, or a share from 0 to 1, as 0.3.")
    return value


def complete_queue(incomplete: str) -> list[str]:
    """The queues whose names begin so."""
    return [name for name in QUEUES if name.startswith(incomplete)]


def make_city(trips: Path | None, stations: Path | None, cars: int | None, time_zone: str, seed: int) -> City:
    """The city to work on, with what there is to say of it."""
    from unmet.city.build import build_city
    from unmet.views.terminal import progress, report_set_aside, say

    with progress("Building the city"):
        city = build_city(trips, stations, cars, time_zone, seed)
    for note in city.notes():
        say(note)
    report_set_aside(city.rejected)
    return city
