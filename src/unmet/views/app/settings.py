"""Settings of the app."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path

from unmet.errors import InputError

__all__ = ["MIN_TOKEN_LENGTH", "Limits", "Settings"]

MIN_TOKEN_LENGTH = 16
"""Minimum length of a token, so that it cannot be guessed."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on requests and jobs."""

    upload_bytes: int = 50_000_000
    """Limit on each uploaded file."""
    upload_rows: int = 500_000
    body_bytes: int = 1_000_000
    """Limit on the body of requests other than uploads."""
    job_seconds: int = 1800
    job_memory_bytes: int = 6_000_000_000
    waiting_jobs: int = 8
    """Limit on jobs that wait or run."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Runs to show, where to listen, and who may visit."""

    runs: tuple[Path, ...] = ()
    host: str = "127.0.0.1"
    port: int = 8050
    token: str | None = None
    folder: Path | None = None
    """Folder for uploads and jobs; by default a temporary one."""
    seed: int = 1
    """Seed of the built-in city, and of estimates and forecasts."""
    limits: Limits = Limits()
    basemap: Path | None = None
    """GeoJSON file of lines to draw under maps."""

    @classmethod
    def checked(
        cls,
        *,
        runs: tuple[Path, ...],
        host: str,
        port: int,
        token_file: Path | None,
        folder: Path | None,
        seed: int,
        limits: Limits,
        basemap: Path | None = None,
    ) -> Settings:
        """Valid settings; an address that other machines can reach needs a token."""
        token = _token(token_file)
        settings = cls(
            runs=runs, host=host, port=port, token=token, folder=folder, seed=seed, limits=limits, basemap=basemap
        )
        if token is None and not settings.is_local:
            raise InputError(
                f"{host} can be reached from other machines: set a token of {MIN_TOKEN_LENGTH} characters or more, in "
                "the environment variable UNMET_TOKEN or with --token-file, or listen on 127.0.0.1."
            )
        if token is not None and len(token) < MIN_TOKEN_LENGTH:
            raise InputError(
                f"The token has {len(token)} characters, which is easily guessed: use {MIN_TOKEN_LENGTH} or more."
            )
        return settings

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the app."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def _token(file: Path | None) -> str | None:
    """The token from a file or, without one, from the environment variable UNMET_TOKEN; None if it is not set."""
    if file is None:
        return os.environ.get("UNMET_TOKEN", "").strip() or None
    try:
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise InputError(f"Cannot read the token file {file}.") from None
    if not text:
        raise InputError(f"{file} is empty: put the token into it.")
    return text
