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

__all__ = ["complete_elements", "number_of", "root_tag", "seconds_of"]

MAX_TIME_PART = 1e7  # hours, minutes or seconds; larger numbers, also infinite ones, stand for an undefined time


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
                raise InputError(f"{reason}: give an .xml or .xml.gz file of the scenario.") from None
            if step is None:
                return
            yield step


def root_tag(path: Path) -> str:
    """The tag of a file's outermost element, which tells plans from events."""
    for _, element in _steps(path, ("start",)):
        return element.tag
    raise InputError(f"{path} holds no XML element: give an .xml or .xml.gz file of the scenario.")


def complete_elements(path: Path, *tags: str) -> Iterator[ET.Element]:
    """Yield the elements with these tags as soon as each is complete; earlier elements are freed."""
    root: ET.Element | None = None
    depth = 0  # number of elements that are open
    for event, element in _steps(path, ("start", "end")):
        if root is None:
            root = element
        depth += 1 if event == "start" else -1
        if event == "end" and element.tag in tags:
            yield element
            element.clear()
        if depth == 1:  # only the root is open: drop its attributes and finished children, or memory would grow
            root.clear()


def seconds_of(text: str | None) -> float | None:
    """Seconds after midnight of a time that MATSim wrote as HH:MM:SS or in seconds; None if undefined.

    The hours may exceed 24.

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
    if len(numbers) > 3 or not all(0 <= number < MAX_TIME_PART for number in numbers):
        return None
    if len(numbers) == 1:
        return numbers[0]
    hours, minutes, *rest = numbers
    return 3600 * hours + 60 * minutes + sum(rest)


def number_of(text: str | None) -> float:
    """The number that a text states; NaN if it is missing, malformed or infinite.

    Example:
        >>> number_of("1.5"), number_of("1,5"), number_of("inf"), number_of(None)
        (1.5, nan, nan, nan)
    """
    try:
        number = float(text or "nan")
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan
