"""Running studies from the command line: progress, results and exit codes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from unmet.cli.study_options import Execution, scenario_of
from unmet.errors import InputError

if TYPE_CHECKING:
    from unmet.city.build import City
    from unmet.study.censoring import CensoringStudy
    from unmet.study.experiments import Experiment
    from unmet.study.outline import StudyOutline

__all__ = ["Study", "censoring_study", "run_and_print_censoring", "run_studies"]


class Study(NamedTuple):
    """A study before it runs: its grid, and a function that simulates its scenes, which takes a while."""

    outline: StudyOutline
    make_experiment: Callable[[], Experiment]


def run_studies(studies: Mapping[Path, Study], execution: Execution) -> None:
    """Run each study into its folder, one after the other. Exit with code 1 if any run failed."""
    complete = [_run_study(study, out, execution) for out, study in studies.items()]
    if not all(complete):
        raise typer.Exit(1)


def _run_study(study: Study, out: Path, execution: Execution) -> bool:
    """Run a study, write and print its results, and return whether every run succeeded."""
    from unmet.runs import available_cores
    from unmet.study.execute import connected, execute
    from unmet.study.store import Store
    from unmet.views.study_pages import print_study, print_study_plan, study_report, write_study
    from unmet.views.terminal import next_step, progress, say, study_progress

    Store(out, read_only=True)  # refuses a folder with other files before any work is done
    if execution.dry_run:
        store = Store(out, name=study.outline.name, read_only=True)
        print_study_plan(study.outline, store, execution.workers or available_cores(), as_json=execution.as_json)
        return True
    if execution.scheduler:
        connected(execution.scheduler).close()  # fails now, rather than after the simulations, if it cannot be reached
    with progress("Simulating the scenes"):
        experiment = study.make_experiment()
    store = Store(out, name=experiment.name, overwrite=execution.overwrite)
    try:
        with study_progress(experiment.title) as advance:
            done = execute(
                experiment.runs,
                experiment.scenes,
                store,
                workers=execution.workers,
                scheduler=execution.scheduler,
                on_progress=advance,
            )
    except KeyboardInterrupt:
        kept = sum(store.has(run) for run in experiment.runs)
        say(f"Stopped: {kept} of {len(experiment.runs)} runs are kept. Run the same command again to resume.")
        raise typer.Exit(130) from None  # the usual code of a program that was interrupted
    report = study_report(experiment, store, done)
    if report.cells.is_empty():
        raise InputError(f"All runs of the study failed, for example {report.failed[0]}")
    with progress("Drawing the figures"):
        write_study(report, out)
    print_study(report, store, out, as_json=execution.as_json)
    next_step(after_study(out))
    return not done.failed


def run_and_print_censoring(
    city: City,
    out: Path,
    regions: int,
    seed: int,
    penetrations: tuple[float, ...] = (),
    scenario: Path | None = None,
    *,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Run the study of censored hours, write it to a folder and print it."""
    from unmet.runs import run_folder
    from unmet.views.censoring import print_censoring, write_censoring
    from unmet.views.terminal import next_step, progress

    with run_folder(out, overwrite=overwrite) as folder:
        study = censoring_study(city, regions, seed, penetrations, scenario)
        with progress("Drawing the figures"):
            write_censoring(study, folder)
    print_censoring(study, out, as_json=as_json)
    next_step(after_study(out))


def after_study(out: Path) -> str:
    """The suggested next step after a study."""
    return f"open {out / 'study.html'} in a browser; docs/reproducing.md explains its tables."


def censoring_study(
    city: City, regions: int, seed: int, penetrations: tuple[float, ...] = (), scenario: Path | None = None
) -> CensoringStudy:
    """Simulate a city under the paper's queues, with these penetrations or else the paper's."""
    from unmet.study.censoring import run_censoring
    from unmet.study.paper import PENETRATIONS
    from unmet.study.paper import QUEUES as PAPER_QUEUES
    from unmet.views.terminal import progress

    shares = penetrations or PENETRATIONS
    with progress("Simulating queues and penetrations", len(PAPER_QUEUES) * len(shares)) as advance:
        return run_censoring(
            city,
            penetrations=shares,
            regions=regions,
            scenario=scenario_of(scenario).model_copy(update={"seed": seed}),
            on_cell=advance,
        )
