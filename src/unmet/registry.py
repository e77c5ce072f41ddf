"""Registries: the named parts that others may add to, such as queues, backbones and likelihoods."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from unmet.errors import InputError

__all__ = ["Registry"]


class _Named(Protocol):
    @property
    def name(self) -> str: ...


Part = TypeVar("Part", bound=_Named)


class Registry(Generic[Part]):
    """Parts of one kind by their names, in the order in which they were registered."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._parts: dict[str, Part] = {}

    def register(self, part: Part) -> Part:
        """Make a part known by its name."""
        self._parts[part.name] = part
        return part

    def named(self, name: str) -> Part:
        """The part of that name."""
        try:
            return self._parts[name]
        except KeyError:
            raise InputError(
                f"There is no {self.kind} named {name!r}: choose one of {', '.join(self._parts)}."
            ) from None

    def names(self) -> tuple[str, ...]:
        """The names of all known parts."""
        return tuple(self._parts)
