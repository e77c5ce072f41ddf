"""Read JSON files member by member: only one member is in memory, and an invalid one does not stop the others.

A member is an element of the file's list of sessions, messages or the like.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, TextIO

import polars as pl
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError

from unmet.csv_files import LINE, REJECTED
from unmet.errors import InputError
from unmet.files import check_regular

__all__ = [
    "JsonMember",
    "Reject",
    "Scalar",
    "flat_cells",
    "json_problem",
    "read_members",
    "rejected_frame",
    "text_frame",
]

Reject = tuple[int, str, str | None, str]  # number of the member, column, value, reason

_CHUNK = 1 << 20  # characters
_MAX_CHARACTERS = 1 << 28  # of one value
_BATCH = 20_000  # rows that are Python objects at one time
_DEPTH = 3  # depth of nested objects that become columns: cdr_location.coordinates.latitude
_SHOWN = 200  # characters to show of a value that could not be used
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def _single(value: Any) -> Any:
    if isinstance(value, dict | list):
        raise PydanticCustomError("single", "is not a single value")
    return value


Scalar = Annotated[Any, AfterValidator(_single)]
"""Text, a number, true, false or null; checked later."""


class JsonMember(BaseModel):
    """Base class: the fields of a member that are used, with their types."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


_REASONS = {
    "missing": "is missing",
    "string_type": "is not text",
    "string_too_short": "is empty",
    "string_unicode": "is not Unicode text",
    "model_type": "is not an object",
    "list_type": "is not a list",
    "bool_type": "is not true or false",
    "float_type": "is not a number",
    "finite_number": "is not a number",
}


def json_problem(number: int, error: ValidationError) -> Reject:
    """The first reason why a member is rejected."""
    first = error.errors(include_url=False)[0]
    column = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).lstrip(".")
    value = None if first["type"] == "missing" else _cell(first["input"])
    return number, column, value and value[:_SHOWN], _REASONS.get(first["type"], first["msg"])


def rejected_frame(rejects: Sequence[Reject]) -> pl.DataFrame:
    """Rejected members as a table."""
    return pl.DataFrame(rejects, schema=REJECTED, orient="row")


def _cell(value: Any) -> str | None:
    """A value as text; lists and objects only as brackets."""
    if value is None or isinstance(value, str):
        text = value
    elif isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, dict | list):
        text = "{...}" if isinstance(value, dict) else "[...]"
    else:
        text = repr(value)
    # JSON can contain half of a surrogate pair, which is not a character.
    return text if text is None or text.isascii() else text.encode("utf-8", "replace").decode()


def flat_cells(member: dict[str, Any], prefix: str = "", depth: int = _DEPTH) -> dict[str, str | None]:
    """The single values of an object as text; values of nested objects are named `outer.inner`.

    A list of one is read as its member; longer ones are left out. A value with a unit of energy is one cell, `7.5 kWh`.
    """
    cells: dict[str, str | None] = {}
    for key, value in member.items():
        name = _cell(prefix + key) or ""
        while isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, dict) and "value" in value and _is_energy_unit(value.get("unit")):
            cells[name] = None if value["value"] is None else f"{_cell(value['value'])} {value['unit']}"
        elif isinstance(value, dict):
            if depth > 1:
                cells |= flat_cells(value, f"{name}.", depth - 1)
        elif not isinstance(value, list) and name != LINE:
            cells[name] = _cell(value)
    return cells


def _is_energy_unit(unit: Any) -> bool:
    return isinstance(unit, str) and unit.strip().lower() in {"wh", "kwh", "mwh"}


def text_frame(rows: Iterable[tuple[int, dict[str, str | None]]], columns: Sequence[str]) -> pl.DataFrame:
    """Rows (number of the member, cells) as text with LINE; has all `columns`, even if no member has them."""
    rows = iter(rows)
    frames = [pl.DataFrame(schema={LINE: pl.UInt32} | dict.fromkeys(columns, pl.String))]
    while batch := list(islice(rows, _BATCH)):
        names = dict.fromkeys(name for _, cells in batch for name in cells)
        data = {name: pl.Series([cells.get(name) for _, cells in batch], dtype=pl.String) for name in names}
        frames.append(pl.DataFrame({LINE: pl.Series([number for number, _ in batch], dtype=pl.UInt32)} | data))
    return pl.concat(frames, how="diagonal")


def read_members(path: Path, key: str, envelopes: list[dict[str, Any]] | None = None) -> Iterator[tuple[int, Any]]:
    """The members of a JSON file with their number from 1: of an array, or of the array `key` of an envelope.

    A single object, and several documents one after the other (JSON lines, pages of a download), are read as well.
    The other fields of an envelope are appended to `envelopes`.
    """
    number = 0
    try:
        with _open(path) as file:
            stream = _Stream(file, path)
            if not stream.peek():
                raise InputError(f"{path} is empty: give a JSON file.")
            while stream.peek():
                for member in _document(stream, key, envelopes):
                    number += 1
                    yield number, member
    except FileNotFoundError:
        raise InputError(f"There is no file {path}: check the path.") from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"Cannot read {path}: {error}; check that the file is whole.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not JSON in UTF-8: save it in that encoding.") from None


def _open(path: Path) -> TextIO:
    """Open a JSON file, gzipped or not, in UTF-8 or, with a byte order mark, UTF-16."""
    check_regular(path)
    with path.open("rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    with gzip.open(path) if zipped else path.open("rb") as file:
        order_mark = file.read(2)
    encoding = "utf-16" if order_mark in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    return gzip.open(path, "rt", encoding=encoding) if zipped else path.open(encoding=encoding)


def _document(stream: _Stream, key: str, envelopes: list[dict[str, Any]] | None) -> Iterator[Any]:
    """The members of one document, see `read_members`."""
    if stream.peek() == "[":
        yield from stream.array()
    elif stream.peek() != "{":
        yield stream.value()
    else:
        fields: dict[str, Any] = {}
        enveloped = False
        for name in stream.names():
            if name != key:
                fields[name] = stream.value()
                continue
            enveloped = True
            if stream.peek() == "[":
                yield from stream.array()
            elif (member := stream.value()) is not None:
                yield member
        if not enveloped:
            yield fields
        elif envelopes is not None:
            envelopes.append(fields)


_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # a surrogate, which is half of a character


def _whole_characters(value: Any) -> Any:
    """A value in which lone surrogates, which no table can hold, are replaced."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_whole_characters(part) for part in value]
    if isinstance(value, dict):
        return {_whole_characters(name): _whole_characters(part) for name, part in value.items()}
    return value


class _Stream:
    """The text of a JSON file, decoded value by value."""

    def __init__(self, file: TextIO, path: Path) -> None:
        self.file, self.path = file, path
        self.text, self.at, self.before = "", 0, 0  # buffered text, position in it, characters before it

    def peek(self) -> str:
        """The next character that is not a space, or nothing at the end of the file."""
        while True:
            space = _SPACE.match(self.text, self.at)
            self.at = space.end() if space else self.at
            if self.at < len(self.text):
                return self.text[self.at]
            if not self._more(_CHUNK):
                return ""

    def value(self) -> Any:
        """The next complete value."""
        self.peek()
        size = _CHUNK
        while True:
            try:
                value, end = _DECODER.raw_decode(self.text, self.at)
            except RecursionError:
                raise InputError(f"{self.path} is nested too deeply to be records: check what it holds.") from None
            except ValueError as error:  # perhaps only because the buffered text ends here
                if not self._more(size):
                    raise self._broken(getattr(error, "pos", self.at)) from None
            else:
                is_number = isinstance(value, int | float)
                if end < len(self.text) or not is_number or not self._more(size):  # 12 may continue as 123
                    has_halves = _HALF.search(self.text, self.at, end) is not None
                    self.at = end
                    return _whole_characters(value) if has_halves else value
            size *= 2

    def array(self) -> Iterator[Any]:
        """The members of the array that comes next."""
        for _ in self._parts("[", "]"):
            yield self.value()

    def names(self) -> Iterator[str]:
        """The names of the fields of the object that comes next; the caller takes the value of each."""
        for _ in self._parts("{", "}"):
            name = self.value()
            if not isinstance(name, str) or self.peek() != ":":
                raise self._broken(self.at)
            self.at += 1
            yield name

    def _parts(self, opening: str, closing: str) -> Iterator[None]:
        """Stop before each member of an array or field of an object, which the caller reads."""
        self.at += len(opening)
        if self.peek() != closing:
            yield
            while self.peek() == ",":
                self.at += 1
                yield
        if self.peek() != closing:
            raise self._broken(self.at)
        self.at += 1

    def _more(self, size: int) -> bool:
        """Read more characters and forget those before the position; False at the end of the file."""
        if len(self.text) - self.at > _MAX_CHARACTERS:
            raise InputError(f"{self.path} holds a value of over {_MAX_CHARACTERS:,} characters: check what it holds.")
        chunk = self.file.read(size)
        if chunk:
            self.text, self.before, self.at = self.text[self.at :] + chunk, self.before + self.at, 0
        return bool(chunk)

    def _broken(self, at: int) -> InputError:
        """The error about text that is not JSON, at a position in the buffered text."""
        if at >= len(self.text.rstrip()) and not self._more(1):
            return InputError(f"{self.path} breaks off in the middle: fetch the file again.")
        return InputError(f"{self.path} is not JSON at character {self.before + at + 1}: check that the file is whole.")
