"""Read-only queries of a PostgreSQL or SQLite database."""

from __future__ import annotations

import datetime as dt
import json
import re
import sqlite3
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import polars as pl

from unmet.errors import InputError
from unmet.extras import needs_extra
from unmet.tables import UTC

if TYPE_CHECKING:
    from sqlalchemy import URL, Engine

__all__ = ["masked_url", "read_sql"]

_BATCH = 50_000  # rows that are Python objects at one time
_TIMEOUT_SECONDS = 10  # time to wait for a server that does not answer
# A query that reads, perhaps after comments and brackets.
_READS = re.compile(r"(\s|\(|--[^\n]*(\n|$)|/\*.*?\*/)*(select|with|values|table)\b", re.IGNORECASE | re.DOTALL)
# Parts of a URL that may hold a password: user:password@host; a host or user followed by a colon and no port; and the
# options password and sslpassword. A user without a password (`_NAMED_USER`) is shown.
_PASSWORD = re.compile(r"(?P<before>^[^/]*://[^:/@?]*:)(?P<password>.*)(?P<after>@)", re.DOTALL)
_NAMED_USER = re.compile(r"[\w+]+://[^:/@?]*@[^@]*$")
_NO_PORT = re.compile(r"(?P<before>:(//)?[^:/@?]*:)(?!\d{1,5}(/|\?|$))[^/@?]*")  # after a host, or a user without one
_OPTION = re.compile(r"(?P<before>[?&](?:ssl)?password=)(?P<password>[^&]*)", re.IGNORECASE)


def read_sql(url: str, query: str) -> pl.DataFrame:
    """The rows that a query returns, from `postgresql://user@host/database` or `sqlite:///file`.

    Times with a zone are converted to UTC, decimals to floats, and other types to text. Nothing can be changed:
    the transaction, or the file, is opened for reading only.
    """
    if not _READS.match(query):
        raise InputError("The query does not read rows: give one that begins with `select` or `with`.")
    try:
        from sqlalchemy.exc import SQLAlchemyError
    except ImportError as error:
        raise needs_extra("Reading a database", error) from None
    engine = _engine(url)
    remedy = "check the address, the user and the password"
    try:
        with engine.connect() as connection:
            remedy = "check the query"
            options = {"postgresql_readonly": True} if engine.dialect.name == "postgresql" else {}
            # Percent signs and colons of the query are literal, not parameters.
            connection = connection.execution_options(no_parameters=True, yield_per=_BATCH, **options)
            with connection.exec_driver_sql(query) as result:
                names = list(result.keys())
                _check_names(names)
                frames = [_frame(names, rows) for rows in result.partitions(_BATCH)]
    except (SQLAlchemyError, sqlite3.Warning, UnicodeError) as error:
        raise InputError(f"Cannot read {masked_url(url)}: {_reason(error, url)}; {remedy}.") from None
    finally:
        engine.dispose()
    if not frames:
        raise InputError("The query gives no rows: check its conditions.")
    return _joined(frames)


def masked_url(url: str) -> str:
    """A database's URL without anything that could be a password, for messages."""
    shown = _OPTION.sub(r"\g<before>***", url)
    if _PASSWORD.match(shown):
        return _PASSWORD.sub(r"\g<before>***\g<after>", shown)
    if "@" in shown and not _NAMED_USER.match(shown):
        return f"***@{shown.rpartition('@')[2]}"
    return _NO_PORT.sub(r"\g<before>***", shown)


def _engine(text: str) -> Engine:
    """The SQLAlchemy engine of a database; raises `InputError` if the URL is wrong or not supported."""
    from sqlalchemy import create_engine, make_url
    from sqlalchemy.exc import ArgumentError

    shown = masked_url(text)
    found = _PASSWORD.match(text)
    if found and re.search("[@/]", found["password"]):
        raise InputError(f"The password in {shown} contains @ or /: write %40 for @ and %2F for /.")
    try:
        url = make_url(re.sub("^postgres://", "postgresql://", text.strip()))
    except (ArgumentError, ValueError):
        example = "postgresql://user@host/database or sqlite:///file"
        named = shown if "://" in text else "--sql"  # without the shape of a URL, any part may be the password
        raise InputError(f"{named} is not the URL of a database: give it as {example}.") from None
    backend = url.get_backend_name()
    if backend not in ("postgresql", "sqlite"):
        raise InputError(f"{shown} is not a supported database: give a postgresql:// or sqlite:/// URL.")
    if backend == "sqlite":
        return _sqlite(url)
    timeout = {} if "connect_timeout" in url.query else {"connect_timeout": _TIMEOUT_SECONDS}
    try:
        return create_engine(url.set(drivername="postgresql+psycopg"), connect_args=timeout)
    except ImportError as error:
        raise needs_extra("Reading PostgreSQL", error) from None


def _sqlite(url: URL) -> Engine:
    from sqlalchemy import create_engine

    path = Path(url.database or "")
    if not path.is_file():
        raise InputError(f"There is no SQLite file {path}: check the path, after three slashes as sqlite:///file.")
    readonly = f"{path.resolve().as_uri()}?mode=ro"
    return create_engine("sqlite://", creator=lambda: sqlite3.connect(readonly, uri=True))


def _check_names(names: list[str]) -> None:
    if not names:
        raise InputError("The query gives no columns: name some after `select`.")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"The query gives two columns {twice!r}: rename one of them with `as`.")


def _reason(error: Exception, url: str) -> str:
    """The database's error message, on one line and without the password."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    reason = lines[0].strip().rstrip(".") if lines else type(error).__name__
    for found in (*_PASSWORD.finditer(url), *_OPTION.finditer(url)):
        for secret in {found["password"], unquote(found["password"])} - {""}:
            reason = reason.replace(secret, "***")
    return reason


def _frame(names: Sequence[str], rows: Sequence[Any]) -> pl.DataFrame:
    return pl.DataFrame([_series(name, values) for name, values in zip(names, zip(*rows, strict=True), strict=True)])


def _series(name: str, values: Sequence[Any]) -> pl.Series:
    """A column in the type of its values; text if they are of several types, or of one that no table can hold."""
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds:
        return pl.Series(name, values, pl.Null)
    if kinds == {bool}:
        return pl.Series(name, values, pl.Boolean)
    if kinds == {int} and all(value is None or -(2**63) <= value < 2**63 for value in values):
        return pl.Series(name, values, pl.Int64)
    if kinds <= {int, float, Decimal}:
        return pl.Series(name, [None if value is None else float(value) for value in values], pl.Float64)
    if kinds == {dt.datetime}:
        if any(value is not None and value.tzinfo is not None for value in values):
            values = [None if value is None else value.astimezone(dt.UTC) for value in values]
            return pl.Series(name, values, pl.Datetime("us", "UTC")).cast(UTC)
        return pl.Series(name, values, pl.Datetime("us")).cast(pl.Datetime("ms"))
    if kinds == {dt.date}:
        return pl.Series(name, values, pl.Date)
    return pl.Series(name, [_text(value) for value in values], pl.String)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.hex()
    return json.dumps(value, default=str) if isinstance(value, dict | list) else str(value)


def _joined(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """The batches concatenated, each column in a type that fits all of them."""
    types = pl.Schema()
    for name in frames[0].columns:
        found = {frame.schema[name] for frame in frames} - {pl.Null()}
        if len(found) == 1:
            types[name] = found.pop()
        else:
            types[name] = pl.Float64() if found and found <= {pl.Int64(), pl.Float64()} else pl.String()
    return pl.concat([frame.cast(types) for frame in frames])
