"""MATSim's XML files, gzipped or not, read element by element to save memory."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Literal, cast
from xml.etree import ElementTree as ET

from unmet.errors import InputError
from unmet.files import check_regular

__all__ = ["ends", "number_of", "root_of", "seconds_of"]


def _opened(path: Path) -> IO[bytes]:
    check_regular(path)
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
        return cast("IO[bytes]", gzip.open(path, "rb")) if zipped else path.open("rb")
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from None


def _steps(path: Path, events: tuple[Literal["start", "end"], ...]) -> Iterator[tuple[str, ET.Element]]:
    with _opened(path) as file:
        # Expat does not fetch the DTD that a file names, and refuses exponential entity expansion.
        steps = ET.iterparse(file, events)  # noqa: S314
        while True:
            try:
                step = next(steps, None)
            except (ET.ParseError, OSError, EOFError, zlib.error, ValueError, LookupError) as error:
                reason = f"{path} is not a complete XML file ({error})"
                raise InputError(f"{reason}: give MATSim's own .xml or .xml.gz.") from None
            if step is None:
                return
            yield step


def root_of(path: Path) -> str:
    """The name of a file's outermost element."""
    for _, element in _steps(path, ("start",)):
        return element.tag
    raise InputError(f"{path} holds no XML element: give MATSim's own .xml or .xml.gz.")


def ends(path: Path, *tags: str) -> Iterator[ET.Element]:
    """Yield the elements with these tags as soon as each is complete; earlier elements are freed."""
    root: ET.Element | None = None
    depth = 0
    for event, element in _steps(path, ("start", "end")):
        if root is None:
            root = element
        depth += 1 if event == "start" else -1
        if event == "end" and element.tag in tags:
            yield element
            element.clear()
        if depth == 1:
            root.clear()


def seconds_of(text: str | None) -> float | None:
    """Seconds after midnight of MATSim's HH:MM:SS, which may exceed 24 h; None if undefined.

    Example:
        >>> seconds_of("25:30:00"), seconds_of("-infinity"), seconds_of("27000.0")
        (91800.0, None, 27000.0)
    """
    if text is None:
        return None
    parts = text.strip().split(":")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        return None
    if len(numbers) > 3 or not all(0 <= number < 1e7 for number in numbers):
        return None
    if len(numbers) == 1:
        return numbers[0]
    hours, minutes, *rest = numbers
    return 3600 * hours + 60 * minutes + sum(rest)


def number_of(text: str | None) -> float:
    """A number, NaN if there is none.

    Example:
        >>> number_of("1.5"), number_of("1,5"), number_of("inf"), number_of(None)
        (1.5, nan, nan, nan)
    """
    try:
        number = float(text or "nan")
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan
