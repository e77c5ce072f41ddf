"""Compilation of hot loops with Numba: cached on disk, without the interpreter lock, and visible to type checkers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import numba

from unmet.runs import cache_folder

__all__ = ["compiled", "named_tuple_type"]

Function = TypeVar("Function", bound=Callable[..., Any])


class _Decorator(Protocol):
    def __call__(self, function: Function, /) -> Function: ...


def _sources_hash() -> str:
    """A hash of all compiled sources. Numba itself checks only the file that defines a function."""
    texts = (file.read_bytes() for file in sorted(Path(__file__).parent.rglob("*.py")))
    return hashlib.sha256(b"".join(text for text in texts if b"compiled" in text)).hexdigest()[:16]


if not vars(numba.config)["CACHE_DIR"]:
    vars(numba.config)["CACHE_DIR"] = str(cache_folder() / "compiled" / _sources_hash())


def compiled(signature: Any = None, *, cached: bool = True) -> _Decorator:
    """Compile a function with Numba: immediately for a given signature, else at its first call.

    Floating-point arithmetic stays strictly IEEE (no `fastmath`), so a plain Python twin of a compiled function gives
    the same bits. Machine code is cached separately for each version of the sources. Do not cache generators: Numba
    cannot compile a caller of a generator that it loaded from the cache.
    """

    def decorate(function: Function) -> Function:
        try:
            return cast("Function", numba.njit(signature, cache=cached, nogil=True)(function))
        except RuntimeError:  # no cache: a function defined in a shell, or no writable folder
            return cast("Function", numba.njit(signature, nogil=True)(function))

    return decorate


def named_tuple_type(of: type, *fields: Any) -> Any:
    """The Numba type of a named tuple whose fields have these Numba types."""
    return numba.types.NamedTuple(fields, of)  # type: ignore[no-untyped-call]
