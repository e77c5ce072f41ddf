"""Optional packages, and the extra of unmet that installs each of them."""

from __future__ import annotations

from unmet.errors import InputError

__all__ = ["EXTRA_OF", "needs_extra"]

EXTRA_OF = {
    "dash": "app",
    "distributed": "cluster",
    "fastapi": "app",
    "kaleido": "figures",
    "lightgbm": "trees",
    "psycopg": "sql",
    "sqlalchemy": "sql",
    "statsforecast": "peers",
    "swagger_ui_bundle": "app",
    "torch": "forecast",
    "uvicorn": "app",
}
"""The extra that installs each package, as in `pip install 'unmet[forecast]'`."""


def needs_extra(what: str, error: ImportError) -> InputError:
    """The error that says what to install when an optional package is missing.

    Args:
        what: what needs the package, as the subject of a sentence.
        error: the failed import.

    Example:
        >>> print(needs_extra("A network", ModuleNotFoundError(name="torch")))
        A network needs the package torch: install it with `pip install 'unmet[forecast]'`.
    """
    package = (error.name or "").partition(".")[0]
    if package not in EXTRA_OF:
        return InputError(f"{what} needs {package or 'a package'}, which cannot be imported: {error}.")
    return InputError(
        f"{what} needs the package {package}: install it with `pip install 'unmet[{EXTRA_OF[package]}]'`."
    )
