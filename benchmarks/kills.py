"""Ten random `kill -9` of a study, which must give the bytes of one left alone: `python -m benchmarks.kills` (minutes).

A study that ends before it is killed is compared as well, and another one is begun in its place.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KILLS = 10
STUDY = ("study", "total", "--queue", "first-come", "--penetration", "0.05", "--models", "quantile,censored-quantile",
         "--backbones", "linear", "--runs", "3")  # fmt: skip


def begin(out: Path) -> subprocess.Popen[bytes]:
    """The command in a process of its own, which keeps its results in `out`."""
    command = [sys.executable, "-m", "unmet", *STUDY, "--out", out]
    quiet = os.environ | {"PYTHONWARNINGS": "ignore"}  # what cleans up after a killed process warns of doing so
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, env=quiet)


def kept(out: Path) -> int:
    """How many runs are in a folder of results."""
    return len(list((out / "runs").glob("*.parquet")))


def results(out: Path) -> dict[str, bytes]:
    """The results of a study that was ended: its runs and its cells."""
    return {path.name: path.read_bytes() for path in (*(out / "runs").glob("*.parquet"), out / "cells.parquet")}


def finish(out: Path) -> None:
    """Go on to the end."""
    if begin(out).wait() != 0:
        sys.exit(f"unmet {' '.join(STUDY)} failed")


def main() -> None:
    """Kill, go on, and compare."""
    same = True
    with tempfile.TemporaryDirectory(prefix="unmet-kills-") as name:
        folder = Path(name)
        begun = time.perf_counter()
        finish(folder / "alone")
        seconds = time.perf_counter() - begun
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
    sys.exit(not same)


def compare(out: Path, expected: dict[str, bytes], study: int) -> bool:
    """Say whether a study that was killed has the results of the one left alone."""
    same = results(out) == expected
    verdict = "equal" if same else "DIFFER FROM"
    print(f"Study {study} ended: its bytes {verdict} those of the one left alone.", flush=True)
    return same


if __name__ == "__main__":
    main()
