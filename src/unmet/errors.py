"""The one error that a user can mend."""

from __future__ import annotations

__all__ = ["InputError"]


class InputError(Exception):
    """Input that cannot be used: one clear sentence that names the remedy.

    The command line prints it without a traceback and exits with code 2.
    """
