"""Registries of named parts, such as queues, backbones and likelihoods, which other packages can extend."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Generic, Protocol, TypeVar

from unmet.errors import InputError

__all__ = ["Registry"]


class _Named(Protocol):
    @property
    def name(self) -> str: ...


Part = TypeVar("Part", bound=_Named)


class Registry(Generic[Part]):
    """Parts of one kind by their names, in the order in which they were registered.

    Installed packages add parts as entry points of a group, each with the name of its part. Entry points are looked
    up when an unregistered name is requested, and an entry point is imported when its own name is requested.
    """

    def __init__(self, kind: str, group: str | None = None) -> None:
        self.kind = kind
        self.group = group
        self._parts: dict[str, Part] = {}
        self._entries: dict[str, EntryPoint] | None = None  # None until they are looked up
        self._loaded: dict[str, Part] = {}  # parts that came from entry points

    def register(self, part: Part) -> Part:
        """Register a part under its name."""
        self._parts[part.name] = part
        return part

    def named(self, name: str) -> Part:
        """The part with a name; raises an `InputError` that lists the known names if there is none."""
        if name in self._parts:
            return self._parts[name]
        if name in self._entry_points():
            self._loaded[name] = self._load(self._entry_points()[name])
            return self.register(self._loaded[name])
        raise InputError(f"There is no {self.kind} named {name!r}: choose one of {', '.join(self.names())}.")

    def names(self) -> tuple[str, ...]:
        """The names of all parts, without entry points that cannot be loaded."""
        for name in self._entry_points():
            try:
                self.named(name)
            except InputError:
                continue
        return tuple(self._parts)

    def is_installed(self, name: str) -> bool:
        """Whether an installed package provides the part, so that any process can load it."""
        return self.named(name) is self._loaded.get(name)

    def _entry_points(self) -> dict[str, EntryPoint]:
        if self._entries is None:
            self._entries = {}
            for entry in entry_points(group=self.group) if self.group else ():
                self._entries.setdefault(entry.name, entry)  # the first on the path wins, as for modules
        return self._entries

    def _load(self, entry: EntryPoint) -> Part:
        package = entry.dist.name if entry.dist else entry.module
        try:
            part: Part = entry.load()
        except Exception as error:
            reason = " ".join([f"{type(error).__name__}:", *str(error).splitlines()[:1]])
            raise InputError(
                f"The package {package} cannot load its {self.kind} {entry.name!r} ({reason}): fix the package, or "
                "uninstall it."
            ) from None
        if getattr(part, "name", None) != entry.name:
            raise InputError(
                f"The package {package} provides a {self.kind} as {entry.name!r} whose own name is "
                f"{getattr(part, 'name', None)!r}: give the entry point that name."
            )
        return part
