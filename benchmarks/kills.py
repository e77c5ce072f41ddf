"""Random `kill -9` of every command that writes: `python -m benchmarks.kills`, or of some: `... panel fit 5`.

`simulate`, `panel`, `recover` and `fit` replace their own run repeatedly, and are killed at random moments. After each
kill the next command (`unmet check`) must find a complete run, no process may be left after ten seconds, and other
files in the folder must be unchanged; the last run, undisturbed, must give the same bytes as the first one.

A study is killed ten times and resumed each time; it must give the same bytes as an undisturbed one. A study that ends
before it is killed is compared as well, and another one is started in its place.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from unmet.manifest import read_manifest

KILLS = 10
STUDY = ("study", "total", "--queue", "first-come", "--penetration", "0.05", "--models", "quantile,censored-quantile",
         "--backbones", "linear", "--runs", "3")  # fmt: skip


def begin(out: Path) -> subprocess.Popen[bytes]:
    """Start the study in a new process, with its results in `out`."""
    command = [sys.executable, "-m", "unmet", *STUDY, "--out", out]
    quiet = os.environ | {"PYTHONWARNINGS": "ignore"}  # cleaning up after a killed process gives warnings
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, env=quiet)


def kept(out: Path) -> int:
    """Number of stored runs of a study."""
    return len(list((out / "runs").glob("*.parquet")))


def results(out: Path) -> dict[str, bytes]:
    """The results of a finished study: its runs and its cells."""
    return {path.name: path.read_bytes() for path in (*(out / "runs").glob("*.parquet"), out / "cells.parquet")}


def finish(out: Path) -> None:
    """Run the study to its end."""
    if begin(out).wait() != 0:
        sys.exit(f"unmet {' '.join(STUDY)} failed")


VERBS = ("simulate", "panel", "recover", "fit")
KILLS_EACH = 10
ORPHAN_SECONDS = 10


def unmet(*arguments: object) -> subprocess.Popen[bytes]:
    """Start a command in a new process."""
    command = [sys.executable, "-m", "unmet", *map(str, arguments)]
    quiet = os.environ | {"PYTHONWARNINGS": "ignore"}
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=quiet)


def write_inputs(folder: Path) -> None:
    """A small city, its records and their panel."""
    from tests.simulation.cities import small_city

    city = small_city(1, 60, 200, 6, 2)
    city.trips.write_parquet(folder / "trips.parquet")
    city.stations.write_parquet(folder / "stations.parquet")
    given = ["--trips", folder / "trips.parquet", "--stations", folder / "stations.parquet"]
    if unmet("simulate", *given, "--out", folder / "run").wait() != 0:
        sys.exit("unmet simulate failed")


def arguments_of(verb: str, folder: Path) -> list[object]:
    """The arguments of a command."""
    stations = ["--stations", folder / "stations.parquet"]
    return {
        "simulate": ["--trips", folder / "trips.parquet", *stations],
        "panel": [folder / "run" / "sessions.parquet", *stations],
        "recover": [folder / "run" / "sessions.parquet", *stations, "--draws", 50],
        "fit": [folder / "run", "--seeds", 2, "--workers", 2, "--epochs", 3, "--lags", 24, "--horizon", 24],
    }[verb]


def kill_verb(verb: str, folder: Path, kills: int) -> bool:
    """Kill a command `kills` times, and return whether nothing was damaged."""
    out, thesis = folder / f"out-{verb}" / "run", folder / f"out-{verb}" / "thesis.txt"
    thesis.parent.mkdir()
    thesis.write_text("precious")
    command = [verb, *arguments_of(verb, folder), "--overwrite", "--out", out]
    started = time.perf_counter()
    if unmet(*command).wait() != 0:
        sys.exit(f"unmet {verb} failed")
    seconds, expected = time.perf_counter() - started, whole_files(out)
    fine, done = True, 0
    while done < kills:
        process = psutil.Process((running := unmet(*command)).pid)
        try:
            running.wait(random.uniform(0, 1.05 * seconds))  # noqa: S311
            continue
        except subprocess.TimeoutExpired:
            workers = process.children(recursive=True)
            running.kill()
            running.wait()
        done += 1
        orphans = psutil.wait_procs(workers, timeout=ORPHAN_SECONDS)[1]
        checked = unmet("check", out).wait() == 0
        good = checked and not orphans and thesis.read_text() == "precious" and whole_files(out) == expected
        fine &= good
        print(f"{verb}, kill {done}: {'whole' if good else 'HARMED'} ({len(workers)} workers ended)", flush=True)
    again = unmet(*command).wait() == 0 and whole_files(out) == expected
    left = sorted(path.name for path in out.parent.iterdir() if path.name not in ("run", "thesis.txt"))
    verdict = "the same bytes" if again else "OTHER BYTES"
    print(f"{verb}: the next run gives {verdict}; left beside it: {left or 'nothing'}", flush=True)
    return fine and again and not left


def whole_files(out: Path) -> dict[str, str]:
    """Hashes of a run's files, from its manifest; pages and models contain no times, so they are compared too."""
    manifest = read_manifest(out)
    return {} if manifest is None else manifest.files


def main() -> None:
    """Kill the given commands, or all of them."""
    chosen = [word for word in sys.argv[1:] if not word.isdecimal()] or [*VERBS, "study"]
    kills = next((int(word) for word in sys.argv[1:] if word.isdecimal()), KILLS_EACH)
    fine = True
    with tempfile.TemporaryDirectory(prefix="unmet-kills-") as name:
        folder = Path(name)
        if set(chosen) & set(VERBS):
            write_inputs(folder)
        for verb in chosen:
            if verb in VERBS:
                fine &= kill_verb(verb, folder, kills)
    sys.exit(not (fine and ("study" not in chosen or kill_study())))


def kill_study() -> bool:
    """Kill a study repeatedly, resume it, and compare its results with those of an undisturbed one."""
    same = True
    with tempfile.TemporaryDirectory(prefix="unmet-kills-") as name:
        folder = Path(name)
        started = time.perf_counter()
        finish(folder / "alone")
        seconds = time.perf_counter() - started
        expected = results(folder / "alone")
        print(f"Left alone, {len(expected) - 1} runs took {seconds:.0f} s.", flush=True)
        kills, studies = 0, 1
        while kills < KILLS:
            out = folder / f"killed-{studies}"
            study = begin(out)
            try:
                study.wait(random.uniform(0, 0.7 * seconds))  # noqa: S311
            except subprocess.TimeoutExpired:
                study.kill()
                study.wait()
                kills += 1
                print(f"Kill {kills}, study {studies}: {kept(out)} of {len(expected) - 1} runs kept.", flush=True)
                continue
            same &= compare(out, expected, studies)
            studies += 1
        finish(out)
        same &= compare(out, expected, studies)
    return same


def compare(out: Path, expected: dict[str, bytes], study: int) -> bool:
    """Whether a study that was killed has the results of the undisturbed one."""
    same = results(out) == expected
    verdict = "equal" if same else "DIFFER FROM"
    print(f"Study {study} ended: its bytes {verdict} those of the one left alone.", flush=True)
    return same


if __name__ == "__main__":
    main()
