"""How hot loops are compiled: ahead of the first call, cached on disk, without the interpreter lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

__all__ = ["compiled"]

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(*signature: Any) -> Callable[[Function], Function]:
    """Compile a function with Numba, keeping its Python type.

    Floating-point arithmetic stays strictly IEEE (no `fastmath`), so that a plain Python twin of a compiled
    function gives the same bits.
    """
    decorate = numba.njit(*signature, cache=True, nogil=True)
    return lambda function: cast(Function, decorate(function))
