"""Random `kill -9` of every command that writes: `python -m benchmarks.kills`, or of some, as in `... panel fit 5`.

`simulate`, `panel`, `recover`, `fit` and `plan` replace a run of their own again and again, and are killed at random
moments, and once between the two renames of the replacement. After each kill, the next command (`unmet check`) must
find a whole run, no process may be left after ten seconds, and files beside the run must be unchanged. The last run is
not killed, and must give the same bytes as the first one.

A study is killed too, and resumed each time. In the end it must give the same bytes as one that was never killed. A
study that ends before it is killed is compared as well, and another one is started.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import psutil

from unmet.manifest import read_manifest

COMMANDS = ("simulate", "panel", "recover", "fit", "plan")
KILLS = {"simulate": 9, "panel": 9, "recover": 9, "fit": 9, "plan": 7, "study": 7}  # 50 in all
ORPHAN_SECONDS = 10
MARK = "UNMET_BENCHMARK"  # environment variable that identifies a command and all processes that it starts
STUDY = ("total", "--queue", "first-come", "--penetration", "0.05", "--models", "quantile,censored-quantile",
         "--backbones", "linear", "--runs", "3", "--workers", "2")  # fmt: skip
BETWEEN_THE_RENAMES = """
import os, pathlib, signal
rename = pathlib.Path.rename
def rename_and_die(self, target):
    made = rename(self, target)
    if pathlib.Path(target).name == "old":  # the older run was moved aside, and the newer one has no name yet
        os.kill(os.getpid(), signal.SIGKILL)
    return made
pathlib.Path.rename = rename_and_die
from unmet import cli
cli.main()
"""


def unmet(
    *arguments: object, code: str | None = None, errors: int = subprocess.DEVNULL, **variables: str
) -> subprocess.Popen[str]:
    """Start a command in a process of its own.

    Args:
        arguments: the command and its arguments.
        code: Python code to run instead of `unmet`.
        errors: where standard error goes.
        variables: environment variables to set.
    """
    start = ["-m", "unmet"] if code is None else ["-c", code]
    # Python's resource tracker warns when it cleans up after a killed process.
    given = os.environ | {"PYTHONWARNINGS": "ignore"} | variables
    command = [sys.executable, *start, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=given, text=True)


def finish(*arguments: object) -> float:
    """Run a command that must succeed, and return the seconds that it took."""
    begun = time.perf_counter()
    if unmet(*arguments).wait() != 0:
        sys.exit(f"unmet {' '.join(map(str, arguments))} failed")
    return time.perf_counter() - begun


def write_inputs(folder: Path) -> None:
    """A small city, its records and their lost demand."""
    from tests.simulation.cities import small_city

    city = small_city(1, 60, 200, 6, 2)
    city.trips.write_parquet(folder / "trips.parquet")
    city.stations.write_parquet(folder / "stations.parquet")
    finish("simulate", *arguments_of("simulate", folder), "--out", folder / "run")
    finish("recover", *arguments_of("recover", folder), "--out", folder / "recovered")


def arguments_of(name: str, folder: Path) -> list[object]:
    """The arguments of a command, for the inputs in a folder."""
    stations = ["--stations", folder / "stations.parquet"]
    return {
        "simulate": ["--trips", folder / "trips.parquet", *stations],
        "panel": [folder / "run" / "sessions.parquet", *stations],
        "recover": [folder / "run" / "sessions.parquet", *stations, "--draws", 50],
        "fit": [folder / "run", "--backbone", "tgcn", "--seeds", 2, "--workers", 2, "--epochs", 3, "--lags", 24],
        "plan": [folder / "recovered", "--plugs", 3],
    }[name]


def kill_command(name: str, folder: Path, kills: int) -> bool:
    """Kill a command this many times, and return whether everything stayed intact."""
    out, user_file = folder / f"out-{name}" / "run", folder / f"out-{name}" / "thesis.txt"
    user_file.parent.mkdir()
    user_file.write_text("precious")
    command = [name, *arguments_of(name, folder), "--overwrite", "--out", out]
    seconds, expected = finish(*command), whole_files(out)
    fine, done = bool(expected), 0
    while done < kills:
        mark = uuid.uuid4().hex
        running = unmet(*command, code=BETWEEN_THE_RENAMES if done == 0 else None, **{MARK: mark})
        try:
            running.wait(None if done == 0 else random.uniform(0, 1.05 * seconds))  # noqa: S311
            if running.returncode == 0:  # it ended before it was killed: try again
                continue
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()
        done += 1
        orphans = left_after(mark, ORPHAN_SECONDS)
        checked = unmet("check", out).wait() == 0
        good = checked and not orphans and user_file.read_text() == "precious" and whole_files(out) == expected
        fine &= good
        when = "between the renames" if done == 1 else "at random"
        print(f"{name}, kill {done} {when}: {'whole' if good else 'HARMED'}", flush=True)
    finish(*command)
    again = whole_files(out) == expected
    left = sorted(path.name for path in out.parent.iterdir() if path.name not in ("run", "thesis.txt"))
    verdict = "the same bytes" if again else "OTHER BYTES"
    print(f"{name}: the next run gives {verdict}; left beside it: {left or 'nothing'}", flush=True)
    return fine and again and not left


def left_after(mark: str, seconds: float) -> list[int]:
    """Ids of the processes of a command, its workers included, that are still alive after this many seconds."""
    until = time.monotonic() + seconds
    while (found := _marked(mark)) and time.monotonic() < until:
        time.sleep(0.2)
    return found


def _marked(mark: str) -> list[int]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process.pid)
        except psutil.Error:
            continue
    return found


def whole_files(out: Path) -> dict[str, str]:
    """Hashes of a run's files, from its manifest. All are comparable, since no file contains a time stamp."""
    manifest = read_manifest(out)
    return {} if manifest is None else manifest.files


def study_files(out: Path) -> dict[str, bytes]:
    """The results of a finished study: its runs and its cells."""
    return {path.name: path.read_bytes() for path in (*(out / "runs").glob("*.parquet"), out / "cells.parquet")}


def kill_study(folder: Path, kills: int) -> bool:
    """Kill a study this many times, resume it each time, and return whether it equals one that was never killed."""
    seconds = finish("study", *STUDY, "--out", folder / "alone")
    expected = study_files(folder / "alone")
    print(f"study: left alone, {len(expected) - 1} runs took {seconds:.0f} s", flush=True)
    fine, done, studies = True, 0, 1
    while done < kills:
        out = folder / f"killed-{studies}"
        mark = uuid.uuid4().hex
        running = unmet("study", *STUDY, "--out", out, **{MARK: mark})
        try:
            running.wait(random.uniform(0, 0.7 * seconds))  # noqa: S311
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()
            done += 1
            orphans = left_after(mark, ORPHAN_SECONDS)
            fine &= not orphans
            kept = len(list((out / "runs").glob("*.parquet")))
            harm = f"{len(orphans)} PROCESSES LEFT" if orphans else "no process left"
            print(f"study {studies}, kill {done}: {kept} of {len(expected) - 1} runs kept, {harm}", flush=True)
            continue
        fine &= _same_study(out, expected, studies)
        studies += 1
    finish("study", *STUDY, "--out", out)
    return fine & _same_study(out, expected, studies)


def _same_study(out: Path, expected: dict[str, bytes], study: int) -> bool:
    same = study_files(out) == expected
    verdict = "equal" if same else "DIFFER FROM"
    print(f"study {study} ended: its bytes {verdict} those of the one left alone", flush=True)
    return same


def main() -> None:
    """Kill the commands that were named, or all of them."""
    chosen = [word for word in sys.argv[1:] if not word.isdecimal()] or [*COMMANDS, "study"]
    given = next((int(word) for word in sys.argv[1:] if word.isdecimal()), None)
    fine, kills = True, 0
    with tempfile.TemporaryDirectory(prefix="unmet-kills-") as temporary:
        folder = Path(temporary)
        if set(chosen) & set(COMMANDS):
            write_inputs(folder)
        for name in chosen:
            count = KILLS[name] if given is None else given
            fine &= kill_study(folder, count) if name == "study" else kill_command(name, folder, count)
            kills += count
    print(f"{kills} kills: {'nothing was harmed' if fine else 'SOMETHING WAS HARMED'}")
    sys.exit(not fine)


if __name__ == "__main__":
    main()
