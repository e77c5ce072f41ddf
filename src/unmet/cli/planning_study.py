"""The command that tests plans in cities whose true demand is known."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from unmet.cli.options import Json, Overwrite, complete_queue
from unmet.errors import InputError

__all__ = ["study_planning"]


def study_planning(
    out: Annotated[Path, typer.Option(help="Output folder.")] = Path("runs/planning"),
    plugs: Annotated[
        list[int] | None, typer.Option(min=1, help="Plugs to add; may be repeated. [25, 50, 100, 200]")
    ] = None,
    penetration: Annotated[
        list[float] | None, typer.Option(help="Electric share of cars; may be repeated. [0.05, 0.03]")
    ] = None,
    seed: Annotated[list[int] | None, typer.Option(min=0, help="Seed of a city; may be repeated. [1, 2, 3]")] = None,
    queue: Annotated[str, typer.Option(autocompletion=complete_queue, help="Queue at all stations.")] = "first-come",
    methods: Annotated[
        str | None,
        typer.Option(
            help="Plans, separated by commas; truth is always added. [observed,time-full,censored-quantile,exposure]"
        ),
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Simulate plans made from records, and compare them with a plan that knows every lost driver."""
    from unmet.city.build import build_city
    from unmet.runs import run_folder
    from unmet.study.planning import METHODS, PENETRATIONS, PLUGS, SEEDS, run_planning
    from unmet.views.planning_study import print_planning, write_planning
    from unmet.views.terminal import next_step, progress

    chosen = tuple(name.strip() for name in (methods or ",".join(METHODS)).split(",") if name.strip())
    if unknown := [name for name in chosen if name not in METHODS]:
        raise InputError(f"There is no plan {unknown[0]!r}: choose among {', '.join(METHODS)}.")
    if "exposure" not in chosen:
        raise InputError("The study is about plans from the exposure-aware estimate: include exposure in --methods.")
    seeds, shares = tuple(seed or SEEDS), tuple(penetration or PENETRATIONS)
    with run_folder(out, overwrite=overwrite) as folder:
        with progress("Planning cities", len(seeds) * len(shares)) as show:
            study = run_planning(
                lambda number: build_city(seed=number),
                plugs=tuple(sorted(set(plugs or PLUGS))),
                penetrations=shares,
                seeds=seeds,
                queue=queue,
                methods=chosen,
                on_cell=show,
            )
        with progress("Drawing the figures"):
            write_planning(study, folder)
    print_planning(study, out, as_json=as_json)
    next_step(f"open {out / 'study.html'} in a browser; docs/planning.md explains its tables.")
