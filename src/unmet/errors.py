"""The one error that a user can mend, and how the first of pydantic's is put into its words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError

__all__ = ["InputError", "refusal"]


class InputError(Exception):
    """Input that cannot be used: one clear sentence that names the remedy.

    The command line prints it without a traceback and exits with code 2.
    """


def refusal(error: ValidationError, source: str, unknown: str, hints: Mapping[str, str] | None = None) -> InputError:
    """One sentence on the first value of a source that makes no sense.

    `unknown` is what the source does with a `{name}` that the model does not have; `hints` are added to the problem of
    a name.
    """
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return InputError(f"{source} {unknown.format(name=repr(name))}.")
    problem = first["msg"].removeprefix("Value error, ").replace("Input should be", "it should be").rstrip(".")
    return InputError(f"{source}: {name} = {first['input']!r} makes no sense: {problem}{(hints or {}).get(name, '')}.")
