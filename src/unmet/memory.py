"""Memory: how much is free, how much the user allows, and a clear error before memory runs out."""

from __future__ import annotations

import os
import re
from pathlib import Path

from unmet.errors import InputError

__all__ = ["allow_bytes", "allowed_bytes", "free_bytes", "parse_size", "require_bytes"]

GB = 10**9
VARIABLE = "UNMET_MAX_MEMORY"  # an environment variable, so that child processes inherit it
_UNITS = {"": GB, "B": 1, "KB": 10**3, "MB": 10**6, "GB": GB, "TB": 10**12}


def parse_size(text: str) -> int:
    """Bytes of a size such as 8GB, 500MB or 8 (GB).

    Example:
        >>> parse_size("1.5GB")
        1500000000
    """
    found = re.fullmatch(r"\s*(\d{1,15}(?:\.\d{1,6})?)\s*([KMGT]?B?)\s*", text.upper())
    unit = found and (found[2] if found[2] in _UNITS else f"{found[2]}B")
    if not found or unit not in _UNITS or not (size := int(float(found[1]) * _UNITS[unit])):
        raise InputError(f"{text!r} is not a size of memory: give one such as 8GB or 500MB.")
    return size


def allow_bytes(size: int) -> None:
    """Set how much memory this process and its child processes may use for data."""
    os.environ[VARIABLE] = f"{size}B"


def allowed_bytes() -> int:
    """Memory that data may use [byte]: the user's limit, else what is free now."""
    given = os.environ.get(VARIABLE)
    return parse_size(given) if given else free_bytes()


def free_bytes() -> int:
    """Memory that this process can still allocate [byte], within the limits of its container."""
    found = [size for size in (_available(), _left_in_container()) if size is not None]
    return min(found, default=1 << 40)  # if nothing is known, no limit that matters


def require_bytes(need: float, what: str, remedy: str, allowed: int | None = None) -> None:
    """Refuse work that would not fit into memory.

    Args:
        need: estimate of the memory that the work takes [byte].
        what: the work, as the subject of a sentence.
        remedy: what the user can do.
        allowed: limit [byte]; by default `allowed_bytes()`.
    """
    allowed = allowed_bytes() if allowed is None else allowed
    if need > allowed:
        limit = "are allowed by --max-memory" if os.environ.get(VARIABLE) else "are free"
        raise InputError(
            f"{what} would need about {need / GB:,.1f} GB of memory, and {allowed / GB:,.1f} GB {limit}: {remedy}."
        )


def _available() -> int | None:
    """Memory that the machine has available, or if that is unknown, all of its memory [byte]."""
    try:
        found = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"))
    except OSError:
        found = None
    if found:
        return int(found[1]) * 1024
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def _left_in_container() -> int | None:
    """Memory that the control cgroup has left [byte]. Its file cache counts as free."""
    cgroup = Path("/sys/fs/cgroup")
    try:
        limit = (cgroup / "memory.max").read_text(encoding="ascii").strip()
        if limit == "max":
            return None
        used = int((cgroup / "memory.current").read_text(encoding="ascii"))
        cached = re.search(r"^inactive_file (\d+)$", (cgroup / "memory.stat").read_text(encoding="ascii"), re.MULTILINE)
        return max(0, int(limit) - used + (int(cached[1]) if cached else 0))
    except (OSError, ValueError):
        return None
