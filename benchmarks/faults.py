"""Faults of the machine, for every command that writes: `python -m benchmarks.faults [COMMAND...]`.

- A full disk (a file system of some kilobytes) and a read-only one: one sentence, exit code 2, and nothing left there,
  except checkpoints, if the sentence says how to resume from them. Once there is space, the next run succeeds, with
  --resume if it was offered.
- Two writers to one new folder: one succeeds, the other is refused; the result is whole.
- A clock that is set back by a month in the middle of a run that replaces one from the future: the same bytes, nothing
  left beside them.

File systems are mounted, so this needs root on Linux. The clock needs libfaketime; without it, the test is
left out, with a note.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.kills import COMMANDS, arguments_of, finish, unmet, whole_files, write_inputs

FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
SMALL, LARGE = "48k", "64m"  # sizes of the file system: too small for any run, and large enough for each


@contextmanager
def file_system(folder: Path, *options: str) -> Iterator[Path]:
    """Mount a small file system at a folder, for as long as the context lasts."""
    folder.mkdir()
    subprocess.run(["/usr/bin/mount", "-t", "tmpfs", "-o", f"size={SMALL}", "unmet", folder], check=True)
    try:
        if options:
            subprocess.run(["/usr/bin/mount", "-o", ",".join(("remount", *options)), folder], check=True)
        yield folder
    finally:
        subprocess.run(["/usr/bin/umount", folder], check=True)
        folder.rmdir()


def refuses(name: str, folder: Path, place: Path) -> bool:
    """Whether a command refuses to write to a place with one sentence, and leaves nothing there that it does not name.

    The place is then made large and writable, and the command must succeed.
    """
    command = [name, *arguments_of(name, folder), "--out", place / "run"]
    running = unmet(*command, errors=subprocess.PIPE)
    said = running.communicate()[1]
    left = [path.name for path in place.iterdir()]
    is_sentence = "Traceback" not in said and any(words in said for words in ("Cannot write to", "The disk is full"))
    resumes = "with --resume" in said
    fine = running.returncode == 2 and is_sentence and left == (["run.training"] if resumes else [])
    if not fine:
        print(f"  exit code {running.returncode}, left {left}: {said[-500:]}")
    if left:
        print(f"  {name}: {' '.join(said.split())[-300:]}")
    subprocess.run(["/usr/bin/mount", "-o", f"remount,rw,size={LARGE}", place], check=True)
    finish(*command, *(["--resume"] if resumes else []))
    left = [path.name for path in place.iterdir()]
    if left != ["run"]:
        print(f"  left beside the next run: {left}")
    return fine and left == ["run"]


def two_writers(name: str, folder: Path) -> bool:
    """Whether one of two writers to a new folder succeeds, and the other is refused."""
    out = folder / f"two-{name}"
    command = [name, *arguments_of(name, folder), "--out", out]
    both = [unmet(*command, errors=subprocess.PIPE) for _ in range(2)]
    said = [each.communicate()[1] for each in both]
    codes = sorted(each.returncode for each in both)
    whole = unmet("check", out).wait() == 0
    refused = any("Another process is writing" in text or "is not empty" in text for text in said)
    fine = codes == [0, 2] and whole and refused and not any("Traceback" in text for text in said)
    if not fine:
        print(f"  exit codes {codes}, whole {whole}: {[text[-300:] for text in said]}")
    return fine


def clock_set_back(name: str, folder: Path) -> bool:
    """Whether a run replaces one from the future while the clock is set back by a month, with the same bytes."""
    out, clock = folder / f"clock-{name}" / "run", folder / f"clock-{name}.txt"
    command = [name, *arguments_of(name, folder), "--overwrite", "--out", out]
    faked = {"LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1",
             "FAKETIME_DONT_FAKE_MONOTONIC": "1"}  # fmt: skip
    clock.write_text("+10d\n")
    begun = time.perf_counter()
    if unmet(*command, **faked).wait() != 0:
        return False
    seconds, expected = time.perf_counter() - begun, whole_files(out)
    running = unmet(*command, errors=subprocess.PIPE, **faked)
    time.sleep(seconds / 2)
    clock.write_text("-20d\n")
    said = running.communicate()[1]
    left = [path.name for path in out.parent.iterdir()]
    fine = running.returncode == 0 and whole_files(out) == expected and left == ["run"]
    finish(*command)  # the next run, by the true clock
    if not (fine and whole_files(out) == expected):
        print(f"  exit code {running.returncode}, left {left}: {said[-500:]}")
        return False
    return True


def main() -> None:
    """Try the commands that were named, or all of them."""
    fine = True
    with tempfile.TemporaryDirectory(prefix="unmet-faults-") as temporary:
        folder = Path(temporary)
        write_inputs(folder)
        for name in sys.argv[1:] or COMMANDS:
            with file_system(folder / "full") as place:
                found = {"disk full": refuses(name, folder, place)}
            with file_system(folder / "sealed", "ro") as place:
                found["read-only"] = refuses(name, folder, place)
            found["two writers"] = two_writers(name, folder)
            if FAKETIME is not None:
                found["clock set back"] = clock_set_back(name, folder)
            results = [f"{fault} {'fine' if good else 'FAILED'}" for fault, good in found.items()]
            print(f"{name}: {', '.join(results)}{'' if FAKETIME else ', no libfaketime'}", flush=True)
            fine &= all(found.values())
    sys.exit(not fine)


if __name__ == "__main__":
    main()
