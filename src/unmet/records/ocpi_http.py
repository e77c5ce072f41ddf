"""Download CDRs or Locations from an OCPI server into one file. Interrupted downloads are resumed.

Pages are kept in the folder until all are downloaded. The address of the next page comes from the `Link` header of the
last one, as OCPI specifies; the token is sent to the original server and to no other.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit
from urllib.request import Request, urlopen

from unmet.errors import InputError

__all__ = ["fetch_ocpi", "read_token"]

TRIES = 5  # requests of one page before giving up
TOKEN_VARIABLE = "UNMET_OCPI_TOKEN"  # noqa: S105
_RETRIED = (408, 425, 429, 500, 502, 503, 504)  # status codes of errors that may be temporary
_NEXT = re.compile(r'<([^>]+)>\s*;\s*rel="?next"?')


@dataclass(frozen=True, slots=True)
class _Page:
    data: list[Any]  # OCPI objects
    following: str | None  # address of the next page; None for the last
    total: int | None  # number of objects on all pages, if the server reports it


def fetch_ocpi(
    url: str,
    folder: Path,
    token: str,
    *,
    since: dt.datetime | None = None,
    until: dt.datetime | None = None,
    progress: Callable[[int, int | None], None] | None = None,
    wait_seconds: float = 1.0,
) -> tuple[Path, int]:
    """Download all objects of an OCPI endpoint such as https://example.com/ocpi/cpo/2.2.1/cdrs.

    Args:
        url: the endpoint.
        folder: where the file goes; an unfinished download of the same URL in it is resumed.
        token: credentials token; sent in base64, as OCPI 2.2 requires, or unencoded if a server refuses that.
        since: only objects updated at this time or later (`date_from`).
        until: only objects updated before this time (`date_to`).
        progress: called with the objects so far, and their total if the server reports it.
        wait_seconds: pause before the first retry; it doubles each time.

    Returns:
        The file, which `read_sessions` reads, and the number of objects in it.
    """
    first = _first_url(url, since, until)
    folder.mkdir(parents=True, exist_ok=True)
    state = _State(folder, first)
    server = _Server(first, token, wait_seconds)
    while state.following is not None:
        page = server.get(state.following)
        state.add(page)
        if progress is not None:
            progress(state.objects, page.total)
    return state.finish(Path(urlsplit(url).path).name or "ocpi"), state.objects


def read_token(path: Path | None) -> str:
    """The credentials token in a file, or in the environment."""
    try:
        token = path.read_text(encoding="utf-8").strip() if path else os.environ.get(TOKEN_VARIABLE, "").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"Cannot read the token in {path}: {error}.") from None
    if not token:
        raise InputError(
            f"There is no token: put it into the environment variable {TOKEN_VARIABLE}, or give --token-file."
        )
    return token


def _first_url(url: str, since: dt.datetime | None, until: dt.datetime | None) -> str:
    """The address of the first page; raises `InputError` if `url` is not a web address."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise InputError(f"{url!r} is not an OCPI endpoint: give one such as https://example.com/ocpi/cpo/2.2.1/cdrs.")
    query = parse_qsl(parts.query)
    for name, value in (("date_from", since), ("date_to", until)):
        if value is not None:
            query.append((name, value.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")))
    return urlunsplit(parts._replace(query=urlencode(query)))


class _State:
    """The pages downloaded so far, and the address of the next."""

    def __init__(self, folder: Path, first: str) -> None:
        self.folder, self.first = folder, first
        self.following: str | None = first
        self.pages = self.objects = 0
        self.path = folder / ".fetch.json"
        if self.path.is_file():
            saved = json.loads(self.path.read_text(encoding="utf-8"))
            if saved.get("first") == first:
                self.following, self.pages, self.objects = saved["following"], saved["pages"], saved["objects"]

    def page_path(self, number: int) -> Path:
        """The file of a page, counted from 1."""
        return self.folder / f".page-{number:06}.json"

    def add(self, page: _Page) -> None:
        """Save a page, then the state, so that an interrupted download repeats at most one page."""
        self.pages += 1
        _write(self.page_path(self.pages), "".join(json.dumps(member) + "\n" for member in page.data))
        self.objects += len(page.data)
        self.following = page.following
        state = {name: getattr(self, name) for name in ("first", "following", "pages", "objects")}
        _write(self.path, json.dumps(state))

    def finish(self, name: str) -> Path:
        """Write all pages to one file, one object per line, and delete them. Returns the file."""
        path = self.folder / f"{name}.json"
        new = path.with_name(f".{path.name}.new")
        with new.open("w", encoding="utf-8") as file:
            for number in range(1, self.pages + 1):
                file.write(self.page_path(number).read_text(encoding="utf-8"))
            if not self.objects:
                file.write("[]\n")
        new.replace(path)
        self.path.unlink(missing_ok=True)
        for number in range(1, self.pages + 1):
            self.page_path(number).unlink(missing_ok=True)
        return path


def _write(path: Path, text: str) -> None:
    """Write a file completely or not at all."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)


class _Server:
    """Requests to one OCPI server, with retries."""

    def __init__(self, url: str, token: str, wait_seconds: float) -> None:
        self.origin, self.wait_seconds = urlsplit(url)[:2], wait_seconds
        # The first is sent; if the server refuses it, it is removed.
        self.tokens = [base64.b64encode(token.encode()).decode(), token]

    def get(self, url: str) -> _Page:
        """One page, retried if the server is busy or the connection breaks."""
        if urlsplit(url)[:2] != self.origin:
            raise InputError(f"The server's next page is elsewhere ({url}): fetch from there, with its own token.")
        reason = ""
        for attempt in range(TRIES):
            if attempt:
                time.sleep(self.wait_seconds * 2 ** (attempt - 1))
            try:
                return self._get_once(url)
            except HTTPError as error:
                reason = f"{error.code} {error.reason}"
                if error.code in (401, 403) and len(self.tokens) > 1:
                    self.tokens.pop(0)  # servers before OCPI 2.2 expect the token unencoded
                    continue
                if error.code in (401, 403):
                    raise InputError(
                        f"{url} refuses the token ({reason}): check that it is valid for this server."
                    ) from None
                if error.code not in _RETRIED:
                    raise InputError(f"{url} answers {reason}: check the address of the endpoint.") from None
            except InputError:
                raise
            except (URLError, HTTPException, OSError, ValueError) as error:
                reason = str(getattr(error, "reason", error))[:200]
        raise InputError(f"Cannot fetch {url} ({reason}): run the same command again later to resume.")

    def _get_once(self, url: str) -> _Page:
        request = Request(url, headers={"Authorization": f"Token {self.tokens[0]}", "Accept": "application/json"})  # noqa: S310
        with urlopen(request, timeout=60) as answer:  # noqa: S310
            body = json.loads(answer.read())
            following = _NEXT.search(answer.headers.get("Link") or "")
            total = answer.headers.get("X-Total-Count")
        code = body.get("status_code") if isinstance(body, dict) else None
        if isinstance(code, int) and code >= 2000:  # OCPI: 1xxx is success, 2xxx to 4xxx are errors
            status = f"{code} {body.get('status_message') or ''}".strip()[:200]
            raise InputError(f"{url} answers with an OCPI error ({status}): check the endpoint and the token.")
        data = body.get("data") if isinstance(body, dict) else body
        if not isinstance(data, list):
            raise InputError(f"{url} does not answer with a list of objects: give the endpoint of cdrs or locations.")
        return _Page(data, following[1] if following else None, int(total) if total and total.isdigit() else None)
