"""Mutants: alter the estimator's formulas one at a time, and count those that the tests catch.

`python -m benchmarks.mutants` reads the mutants from `mutants.toml`: a file of the package, a text that occurs in it
exactly once, and its replacement. Each one is applied to a copy of the sources, and the tests of `demand` and
`estimation` run until one fails: first the files that should catch it, then the others. Arguments select the mutants
whose description or file contains one of them. A run of all mutants writes docs/results/mutants.md.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

__all__ = ["Mutant", "read_mutants"]

ROOT = Path(__file__).parents[1]
LIST = Path(__file__).with_suffix(".toml")
PAGE = ROOT / "docs" / "results" / "mutants.md"
TESTS = ("tests/estimation", "tests/demand")
WARM_UP = ("tests/estimation/test_sums.py", "tests/estimation/test_exposed.py")  # enough to compile most of the code
PROCESSES = 2
MIN_CAUGHT = 0.9
PASSED, FAILED, INTERRUPTED = 0, 1, 2  # exit codes of pytest


@dataclass(frozen=True, slots=True)
class Mutant:
    """One altered formula."""

    what: str
    file: str  # below src/unmet
    old: str
    new: str
    tests: tuple[str, ...]  # files that should catch it, below tests


@dataclass(frozen=True, slots=True)
class Outcome:
    """The test that caught a mutant, if any."""

    mutant: Mutant
    caught_by: str | None


def read_mutants() -> list[Mutant]:
    """All mutants; exits if the text of one does not occur exactly once in its file."""
    rows = tomllib.loads(LIST.read_text(encoding="utf-8"))["mutant"]
    mutants = [Mutant(row["what"], row["file"], row["old"], row["new"], tuple(row["tests"])) for row in rows]
    for mutant in mutants:
        occurrences = _source(ROOT, mutant).read_text(encoding="utf-8").count(mutant.old)
        if occurrences != 1:
            sys.exit(f"{mutant.file}: {mutant.old!r} occurs {occurrences} times instead of once. Update mutants.toml.")
        missing = [name for name in mutant.tests if not (ROOT / "tests" / name).is_file()]
        if missing or mutant.old == mutant.new:
            sys.exit(
                f"{mutant.what}: there is no tests/{missing[0]}." if missing else f"{mutant.what}: nothing changes."
            )
    return mutants


def _source(root: Path, mutant: Mutant) -> Path:
    return root / "src" / "unmet" / mutant.file


def _copy(folder: Path) -> Path:
    """A copy of sources and tests to apply mutants to."""
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "pyproject.toml", folder / "pyproject.toml")
    return folder


@contextmanager
def _applied(mutant: Mutant, copy: Path) -> Iterator[Path]:
    """Apply a mutant to a copy; yields the folder of compiled code to use.

    Numba compiles a file again if it has changed. Every mutant starts from a copy of the compiled code of the unaltered
    sources, so that only the altered file is compiled.
    """
    path, cache = _source(copy, mutant), copy / "cache-of-mutant"
    text, status = path.read_text(encoding="utf-8"), path.stat()
    shutil.copytree(copy / "cache", cache)
    try:
        path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        yield cache
    finally:
        path.write_text(text, encoding="utf-8")
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # compiled code of unaltered files stays valid
        shutil.rmtree(cache)


def _run(copy: Path, cache: Path, *tests: str) -> tuple[int, str]:
    """Run tests against a copy until one fails: exit code, and the name of the test or the end of the output."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", *tests]
    setting = {"PYTHONPATH": str(copy / "src"), "NUMBA_CACHE_DIR": str(cache), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=copy, env=os.environ | setting, capture_output=True, text=True, check=False)
    named = re.search(r"^(?:FAILED|ERROR) tests/(\S+)", done.stdout, re.MULTILINE)
    return done.returncode, named.group(1) if named else done.stdout[-2000:] + done.stderr[-2000:]


def _judge(mutant: Mutant, copies: Queue[Path]) -> Outcome:
    """Run the tests of a mutant, those that should catch it first."""
    copy, caught = copies.get(), None
    try:
        with _applied(mutant, copy) as cache:
            first = [f"tests/{name}" for name in mutant.tests]
            rest = [*TESTS, *(f"--ignore={name}" for name in first)]
            for tests in (first, rest):
                code, output = _run(copy, cache, *tests)
                if code not in {PASSED, FAILED, INTERRUPTED}:
                    raise RuntimeError(f"The tests of {mutant.what!r} could not be run: {output}")
                if code != PASSED:
                    caught = output
                    break
    finally:
        copies.put(copy)
    print(f"{'caught  ' if caught else 'SURVIVED'} {mutant.what}" + (f" ({caught})" if caught else ""), flush=True)
    return Outcome(mutant, caught)


def _write_page(outcomes: list[Outcome]) -> None:
    caught = sum(outcome.caught_by is not None for outcome in outcomes)
    lines = [
        "# Mutants of the estimator",
        "",
        "Written by `python -m benchmarks.mutants`: formulas of the estimator are altered one at a time, and the tests",
        f"of `demand` and `estimation` catch {caught} of {len(outcomes)}.",
        "",
        "| altered | in | caught by |",
        "| --- | --- | --- |",
    ]
    for outcome in outcomes:
        by = f"`{outcome.caught_by}`" if outcome.caught_by else "**nothing**"
        lines.append(f"| {outcome.mutant.what} | `{outcome.mutant.file}` | {by} |")
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Test all mutants, or those that the arguments select."""
    every = read_mutants()
    words = sys.argv[1:]
    chosen = [each for each in every if not words or any(word in f"{each.file} {each.what}" for word in words)]
    copies: Queue[Path] = Queue()
    with tempfile.TemporaryDirectory() as temporary:
        for number in range(PROCESSES):
            copies.put(_copy(Path(temporary) / str(number)))
        with ThreadPoolExecutor(PROCESSES) as pool:
            # The first copy proves that all tests pass without a mutant; the others only need compiled code.
            warm_ups = [(copy, TESTS if number == 0 else WARM_UP) for number, copy in enumerate(copies.queue)]
            for code, output in pool.map(lambda each: _run(each[0], each[0] / "cache", *each[1]), warm_ups):
                if code != PASSED:
                    sys.exit(f"The tests fail even without a mutant: {output}")
            outcomes = list(pool.map(lambda mutant: _judge(mutant, copies), chosen))
    caught = sum(outcome.caught_by is not None for outcome in outcomes)
    print(f"{caught} of {len(outcomes)} mutants caught")
    if len(chosen) == len(every):
        _write_page(outcomes)
        print(f"Written to {PAGE}")
    sys.exit(caught < MIN_CAUGHT * len(outcomes))


if __name__ == "__main__":
    main()
