"""Uploads: files from visitors, stored under generated names and limited in size."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from unmet.errors import InputError

__all__ = ["TooLargeError", "Upload", "Uploads"]

SUFFIXES = (".csv", ".csv.gz", ".txt", ".tsv", ".json", ".json.gz", ".xlsx", ".parquet")
MAX_UPLOADS = 20  # uploads that are remembered
MAX_NAME_LENGTH = 80


class TooLargeError(InputError):
    """The file is larger than allowed."""


@dataclass
class Upload:
    """Records of one visitor, and perhaps the table of stations."""

    id: str
    folder: Path
    sessions: list[Path] = field(default_factory=list)
    stations: Path | None = None
    names: dict[str, str] = field(default_factory=dict)
    """Original name of each file, by its stored name."""


class Uploads:
    """All uploads, each in its own subfolder."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self.folder, self.max_bytes = folder, max_bytes
        self._uploads: dict[str, Upload] = {}

    def named(self, upload_id: str) -> Upload:
        """The upload with an id. Raises KeyError if there is none."""
        return self._uploads[upload_id]

    async def add(
        self, name: str, chunks: AsyncIterator[bytes], upload_id: str = "", *, stations: bool = False
    ) -> Upload:
        """Store a file as it arrives.

        Args:
            name: original name, whose ending decides how the file is read.
            chunks: content of the file.
            upload_id: the upload to add the file to; a new one if empty.
            stations: whether the file is the table of stations, not a file of sessions.

        Raises:
            KeyError: there is no such upload.
            InputError: the file is empty, of an unknown kind or too large.
        """
        suffix = _suffix(name)
        upload = self._uploads[upload_id] if upload_id else self._new()
        path = upload.folder / f"{'stations' if stations else 'sessions'}-{secrets.token_hex(4)}{suffix}"
        try:
            size = await _save(path, chunks, self.max_bytes)
            if not size:
                raise InputError("The file is empty: choose one with rows.")
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        upload.names[path.name] = PurePosixPath(name.replace("\\", "/")).name[:MAX_NAME_LENGTH]
        if stations:
            upload.stations = path
        else:
            upload.sessions.append(path)
        return upload

    def _new(self) -> Upload:
        upload = Upload(secrets.token_hex(8), Path())
        upload.folder = self.folder / upload.id
        upload.folder.mkdir(parents=True)
        self._uploads[upload.id] = upload
        for old in list(self._uploads)[:-MAX_UPLOADS]:
            shutil.rmtree(self._uploads.pop(old).folder, ignore_errors=True)
        return upload


async def _save(path: Path, chunks: AsyncIterator[bytes], max_bytes: int) -> int:
    """Write chunks to a new file, and return its size [bytes]."""
    size = 0
    with path.open("xb") as file:
        async for chunk in chunks:
            size += len(chunk)
            if size > max_bytes:
                raise TooLargeError(f"The file is larger than {max_bytes / 1e6:,.0f} MB, the limit for uploads.")
            file.write(chunk)
    return size


def _suffix(name: str) -> str:
    lowered = name.lower()
    found = [suffix for suffix in SUFFIXES if lowered.endswith(suffix)]
    if not found:
        raise InputError(f"Files of this kind cannot be read: give one of {', '.join(SUFFIXES)}.")
    return max(found, key=len)
