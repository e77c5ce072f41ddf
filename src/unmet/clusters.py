"""Connection to Dask clusters."""

from __future__ import annotations

import logging
from typing import Any

from unmet.errors import InputError
from unmet.extras import needs_extra

__all__ = ["connected"]

CONNECT_TIMEOUT = "10s"


def connected(scheduler: str) -> Any:
    """Connect to the Dask scheduler at an address, and return the client.

    Raises:
        InputError: Dask is not installed, or no scheduler answers.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise needs_extra("A cluster", error) from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # else a lost scheduler logs tracebacks
    try:
        connect: Any = Client  # its constructor has no types
        return connect(scheduler, timeout=CONNECT_TIMEOUT)
    except (OSError, TimeoutError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else "it does not answer"
        raise InputError(f"There is no Dask scheduler at {scheduler} ({reason}): check the address.") from None
