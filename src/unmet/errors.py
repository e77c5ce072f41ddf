"""The error for input that the user can fix, and helpers for the text of messages."""

from __future__ import annotations

import datetime as dt
import errno
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError

__all__ = ["InputError", "is_disk_full", "notes_of", "printable", "refusal", "shortened"]

LONGEST_MESSAGE = 1200  # characters
LONGEST_VALUE = 120  # characters
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_DISK_FULL_WORDS = re.compile(r"No space left|Disk quota exceeded|File too large|os error (27|28|122)\b")
# Control characters, including those that start terminal escape codes; marks that change the writing direction; and
# lone surrogates, which cannot be printed. Line breaks and tabs are kept.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    r"""Text with control characters made visible, such as `\x1b`, so that a terminal does not obey them.

    Example:
        >>> print(printable("a\x1b[31mb"))
        a\x1b[31mb
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def shortened(text: str, max_length: int = LONGEST_VALUE) -> str:
    """Text shortened to about `max_length` characters: two thirds from its beginning, one third from its end.

    Example:
        >>> shortened("0123456789", 6)
        '0123 ... 89'
    """
    if len(text) <= max_length:
        return text
    end = max_length // 3
    return f"{text[: max_length - end]} ... {text[-end:]}"


class InputError(ValueError):
    """Raised for input that cannot be used, with one clear sentence that names the remedy.

    The command line prints it without a traceback and exits with code 2. The sentence can quote values from a file, so
    control characters are made visible and long sentences are shortened.

    Example:
        >>> import unmet
        >>> try:
        ...     unmet.Panel("sessions.csv")
        ... except unmet.InputError as error:
        ...     print(error)
        A panel is made from records: read sessions.csv with unmet.read_sessions first.
    """

    def __init__(self, sentence: str = "") -> None:
        super().__init__(shortened(printable(sentence), LONGEST_MESSAGE))


def is_disk_full(error: BaseException) -> bool:
    """Whether an error means that the disk is full, as reported by the operating system or in a library's own words.

    Example:
        >>> is_disk_full(RuntimeError("IO error: No space left on device (os error 28)"))
        True
    """
    return getattr(error, "errno", None) in _DISK_FULL or bool(_DISK_FULL_WORDS.search(str(error)))


def notes_of(error: BaseException) -> str:
    """The notes that `add_note` added to an error: what a failed command has left on disk, and how to continue."""
    return " ".join(getattr(error, "__notes__", ()))


def refusal(error: ValidationError, source: str, unknown: str, hints: Mapping[str, str] | None = None) -> InputError:
    """One sentence about the first invalid value that pydantic found.

    Args:
        error: the error that pydantic raised.
        source: where the values came from, as the subject of the sentence.
        unknown: predicate of the sentence for a `{name}` that the model does not have.
        hints: text to add to the problem with a value, by its name.
    """
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return InputError(f"{source} {unknown.format(name=repr(name))}.")
    problem = first["msg"].removeprefix("Value error, ").replace("Input should be", "it should be").rstrip(".")
    value, hint = shortened(_shown(first["input"])), (hints or {}).get(name, "")
    return InputError(f"{source}: {name} = {value} makes no sense: {problem}{hint}.")


def _shown(value: object) -> str:
    """A value as text. Large or nested values are shown by their type only, because their text could be huge."""
    if isinstance(value, int) and abs(value) >= 10**20:  # Python does not print thousands of digits
        return f"a number of {value.bit_length()} bits"
    return repr(value) if isinstance(value, str | int | float | dt.date | None) else f"a {type(value).__name__}"
