"""Groups of options: a command takes a whole group as one argument instead of repeating its options."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Annotated, Any, get_type_hints

import typer

__all__ = ["with_memory_limit", "with_options"]

MaxMemory = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", envvar="UNMET_MAX_MEMORY", help="Memory that data may use, such as 8GB. [what is free]",
        show_default=False, show_envvar=False,
    ),
]  # fmt: skip


def with_options(*groups: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command all options of these groups; the values that the groups return become its first arguments.

    A group is a function whose parameters are Typer options, such as `unmet.cli.city_options.city_options`.
    """
    options = [_parameters(group) for group in groups]

    def add(command: Callable[..., None]) -> Callable[..., None]:
        own_options = list(_parameters(command).values())[len(groups) :]

        @functools.wraps(command)
        def run(**given: Any) -> None:
            values = [
                group(**{name: given.pop(name) for name in names}) for group, names in zip(groups, options, strict=True)
            ]
            command(*values, **given)

        return _with_signature(run, [*(option for names in options for option in names.values()), *own_options])

    return add


def with_memory_limit(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option --max-memory to a command. It is applied before the command runs."""

    @functools.wraps(command)
    def run(*, max_memory: str | None = None, **given: Any) -> None:
        from unmet.memory import allow_bytes, parse_size

        if max_memory is not None:
            allow_bytes(parse_size(max_memory))
        command(**given)

    option = inspect.Parameter("max_memory", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=MaxMemory)
    return _with_signature(run, [*_parameters(command).values(), option])


def _with_signature(run: Callable[..., None], parameters: Iterable[inspect.Parameter]) -> Callable[..., None]:
    """Show Typer these parameters instead of those of the wrapped command."""
    keywords = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in parameters]
    del run.__wrapped__  # type: ignore[attr-defined]
    run.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in keywords}
    return run


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    # PanelChoices is slow to import, so modules import it for type checkers only, and its name is unknown here.
    hints = get_type_hints(function, localns={"PanelChoices": Any}, include_extras=True)
    found = inspect.signature(function).parameters
    return {name: parameter.replace(annotation=hints[name]) for name, parameter in found.items()}
