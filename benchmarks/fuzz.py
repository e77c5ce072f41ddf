"""Mutated inputs through every reader: no traceback, no hang, bounded memory.

    python -m benchmarks.fuzz                      # 1,000 inputs each
    python -m benchmarks.fuzz --count 100000       # as before a release
    python -m benchmarks.fuzz model --count 5000   # one reader
    python -m benchmarks.fuzz model --first 5000 --count 5000   # and its next inputs
    python -m benchmarks.fuzz --count 100000 --log fuzz.jsonl   # counts are logged, and the next run continues

An input may be read, or refused with a sentence of ordinary length. Anything else is a failure: the input is stored in
`tests/fuzz_corpus`, where the tests find it. An input depends only on the seed and its number. Each reader runs in a
process of its own, so that inputs that end the process, or make native code hang, are found too.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from tests.fuzzing import CORPUS, TARGETS, Target

from unmet.errors import LONGEST_MESSAGE, InputError

HANG_SECONDS = 5  # of CPU time per input
MAX_GIB = 3.0  # of memory per process
POLL_SECONDS = 5
STUCK_SECONDS = 300  # of wall time, for native code that ignores Python's signals
NUMBER, INPUT, FOUND = "number.txt", "last.bin", "found.jsonl"  # files by which a process says how far it got
STRETCH = 500  # inputs after which counts are written
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the one in C is ten times faster
# Pieces of text, and values of documents, that readers may have trouble with.
TOKENS = (
    b"", b",", b";", b"\t", b"\r", b"\n", b"\r\n", b'"', b"'", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\xe6",
    b"nan", b"NaN", b"inf", b"-inf", b"null", b"true", b"1e999", b"-1", b"0", b"9999999999999999999999", b"2001-02-30",
    b"9999-12-31T23:59:59Z", b"0001-01-01", b"1970-01-01T00:00:00+25:00", b"24:00", b"*", b"&a", b"*a", b"!!python/x",
    b"[" * 2000, b"{" * 2000, b"<a href=x>", b"\x1b[31m", b"=1+1", b"../../x", b"x" * 5000, b"\xf0\x9f\x94\x8c", b"{}",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, -(10**30), 0.5, 1e308, float("nan"), float("inf"), "", "x", "*",
    "2001-02-30", "NaN", [], {}, [[]], [None], {"a": 1}, "x" * 5000, [0] * 1000, "\x1b[2J", "\ud800", [[1, 2], [3]],
)  # fmt: skip


class HangError(BaseException):
    """A reader took too long."""


def mutated(data: bytes, rng: random.Random) -> bytes:
    """An input with one to eight changes: bytes, pieces, tokens, values of a document, or its packing."""
    for _ in range(rng.choice((1, 1, 1, 2, 4, 8))):
        data = rng.choice((_bytes, _bytes, _pieces, _token, _token, _value, _value, _cut))(data, rng)
    if rng.random() < 0.03:
        data = gzip.compress(data, 1)
    elif rng.random() < 0.03:
        data = data.decode("utf-8", errors="replace").encode("utf-16")
    return data[: 1 << 20]


def _bytes(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 2, 8))):
        if changed:
            changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def _pieces(data: bytes, rng: random.Random) -> bytes:
    a, b, c = sorted(rng.randrange(len(data) + 1) for _ in range(3))
    return rng.choice((data[:a] + data[b:], data[:b] + data[a:], data[:a] + data[b:c] + data[a:b] + data[c:]))


def _token(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(TOKENS) + data[at + rng.choice((0, 1, 4)) :]


def _cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _value(data: bytes, rng: random.Random) -> bytes:
    """Another value somewhere in a JSON or YAML document."""
    try:
        document, write = json.loads(data), json.dumps
    except (ValueError, RecursionError):
        try:
            document, write = yaml.load(data, LOADER), yaml.safe_dump  # type: ignore[assignment] # noqa: S506
        except Exception:
            return _token(data, rng)
    if not isinstance(document, dict | list):
        return _token(data, rng)
    try:
        return write(_changed(document, rng, rng.randrange(6))).encode("utf-8", errors="surrogatepass")
    except Exception:
        return data


def _changed(part: Any, rng: random.Random, depth: int) -> Any:
    if not isinstance(part, dict | list) or not part or depth == 0:
        return rng.choice(VALUES)
    keys = list(part) if isinstance(part, dict) else list(range(len(part)))
    key = rng.choice(keys)
    if rng.random() < 0.15:
        del part[key]
    else:
        part[key] = _changed(part[key], rng, depth - 1)
    return part


def failure_of(target: Target, data: bytes, folder: Path) -> str | None:
    """Why a reader failed on an input, or None if it read or refused it."""
    path = folder / target.file
    path.write_bytes(data)
    signal.setitimer(signal.ITIMER_PROF, HANG_SECONDS)  # of CPU time, which a busy machine does not change
    try:
        target.read(path)
    except InputError as error:
        return "a sentence that is too long" if len(str(error)) > LONGEST_MESSAGE + 50 else None
    except HangError:
        return f"more than {HANG_SECONDS} s"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return f"{type(error).__name__}: {str(error)[:150]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return None


def feed(name: str, first: int, count: int, seed: int, folder: Path) -> None:
    """Feed `count` inputs to a reader in this process, and write counts of failures into a folder."""
    target, seeds, kinds = TARGETS[name], TARGETS[name].seeds(), set[str]()
    for valid in seeds:  # compiles what Numba compiles once per machine, before anything is timed
        (folder / target.file).write_bytes(valid)
        target.read(folder / target.file)
    begun, started, failed = first, time.process_time(), 0
    for number in range(first, first + count):
        rng = random.Random(f"{name} {seed} {number}")  # noqa: S311
        data = mutated(rng.choice(seeds), rng)
        (folder / NUMBER).write_text(str(number))
        (folder / INPUT).write_bytes(data)
        reason = failure_of(target, data, folder)
        failed += reason is not None
        if reason and (kind := reason.split(":")[0]) not in kinds:  # store one input of each kind of failure
            kinds.add(kind)
            keep(name, data, reason)
        if number + 1 - begun == STRETCH or number + 1 == first + count:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
            _note(folder / FOUND, Stretch(name, seed, begun, number + 1, failed, time.process_time() - started, peak))
            begun, started, failed = number + 1, time.process_time(), 0


class Stretch(NamedTuple):
    """Consecutive inputs of a reader, and what they showed."""

    reader: str
    seed: int
    first: int
    end: int
    failures: int
    cpu_seconds: float
    peak_gib: float


def _note(file: Path, stretch: Stretch) -> None:
    with file.open("a") as log:
        log.write(json.dumps(stretch._asdict()) + "\n")


def stretches(file: Path) -> list[Stretch]:
    """The counts in a file; none if it is not there."""
    return [Stretch(**json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []


def keep(name: str, data: bytes, reason: str) -> None:
    """Store an input that failed in the corpus."""
    kept = CORPUS / f"{name}--{hashlib.sha256(data).hexdigest()[:12]}"
    CORPUS.mkdir(exist_ok=True)
    kept.write_bytes(data)
    print(f"  {name}: {reason}; kept as {kept.name}", flush=True)


def fuzz(name: str, first: int, count: int, seed: int, log: Path) -> int:
    """Feed inputs to a reader, except those already in the log, with a new process after each crash.

    Returns the number of failures among all of these inputs, plus 1 if they took too much memory.
    """
    end = first + count
    while (at := _next(name, first, seed, log)) < end:
        with tempfile.TemporaryDirectory(prefix="unmet-fuzz-") as temporary:
            folder = Path(temporary)
            ended = _watched([name, "--first", str(at), "--count", str(end - at), "--seed", str(seed)], folder, log)
            at = _next(name, first, seed, log)
            if at < end:  # the process ended early: its last input is to blame
                if not (folder / NUMBER).exists():
                    sys.exit(f"{name} {ended} before its first input")
                keep(name, (folder / INPUT).read_bytes(), ended)
                crashed = int((folder / NUMBER).read_text()) + 1
                _note(log, Stretch(name, seed, at, crashed, 1, 0.0, 0.0))
    found = [part for part in stretches(log) if part.reader == name and part.seed == seed and first <= part.first < end]
    failed, peak = sum(part.failures for part in found), max(part.peak_gib for part in found)
    seconds = sum(part.cpu_seconds for part in found)
    print(
        f"{name}: inputs {first:,} to {end - 1:,}, {failed} failures, {seconds:.0f} s of CPU time, peak {peak:.2f} GiB",
        flush=True,
    )
    return failed + (peak > MAX_GIB)


def _next(name: str, first: int, seed: int, log: Path) -> int:
    """The first input that the log does not have."""
    for part in sorted(part for part in stretches(log) if part.reader == name and part.seed == seed):
        if part.first <= first < part.end:
            first = part.end
    return first


def _watched(arguments: list[str], folder: Path, log: Path) -> str:
    """Run `feed` in a new process until it ends or is stuck at one input for minutes; returns how it ended."""
    command = [sys.executable, "-m", "benchmarks.fuzz", *arguments, "--into", str(folder)]
    noted, before, since = 0, "", time.monotonic()
    with subprocess.Popen(command) as process:
        while True:
            try:
                ended = f"ended with code {process.wait(POLL_SECONDS)}"
            except subprocess.TimeoutExpired:
                ended = ""
            found = stretches(folder / FOUND)
            for part in found[noted:]:
                _note(log, part)
            noted = len(found)
            if ended:
                return ended
            if (last := _last(folder)) != before:
                before, since = last, time.monotonic()
            elif before and time.monotonic() - since > STUCK_SECONDS:
                process.kill()
                return f"no end after {STUCK_SECONDS} s"


def _last(folder: Path) -> str:
    return (folder / NUMBER).read_text() if (folder / NUMBER).exists() else ""


def _hang(number: int, frame: object) -> None:
    raise HangError


def main() -> None:
    """Fuzz the given readers, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("targets", nargs="*", metavar="READER", help=", ".join(TARGETS))
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log", type=Path, help="file of counts; inputs that it lists are not run again")
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    signal.signal(signal.SIGPROF, _hang)
    warnings.simplefilter("error")  # a warning would reach the user's terminal
    if given.into:
        feed(given.targets[0], given.first, given.count, given.seed, given.into)
        return
    with tempfile.TemporaryDirectory(prefix="unmet-fuzz-") as temporary:
        log = given.log or Path(temporary) / FOUND
        found = [fuzz(name, given.first, given.count, given.seed, log) for name in given.targets or TARGETS]
    sys.exit(bool(sum(found)))


if __name__ == "__main__":
    main()
