"""How hot loops are compiled: cached on disk, without the interpreter lock, and typed as what they were."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numba

__all__ = ["compiled", "named_tuple_type"]

Function = TypeVar("Function", bound=Callable[..., Any])


class _Decorator(Protocol):
    def __call__(self, function: Function, /) -> Function: ...


def compiled(signature: Any = None) -> _Decorator:
    """Compile a function with Numba: at once for a signature, else at its first call.

    Floating-point arithmetic stays strictly IEEE (no `fastmath`), so that a plain Python twin of a compiled
    function gives the same bits.
    """
    decorator: _Decorator = numba.njit(signature, cache=True, nogil=True)
    return decorator


def named_tuple_type(of: type, *fields: Any) -> Any:
    """The Numba type of a named tuple whose fields have these Numba types."""
    return numba.types.NamedTuple(fields, of)  # type: ignore[no-untyped-call]
