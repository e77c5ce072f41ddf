"""Parts of the site that are generated from the package: the command line and the public Python names.

`reference/cli.md` and `reference/python.md` contain comments that are replaced, so that both always match the code.
"""

from __future__ import annotations

import re
from typing import Any

COMMANDS, NAMES = "<!-- commands -->", "<!-- names -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the comments by generated text; MkDocs calls this for every page."""
    if COMMANDS in markdown:
        markdown = markdown.replace(COMMANDS, command_reference())
    if NAMES in markdown:
        markdown = markdown.replace(NAMES, name_reference())
    return markdown


def name_reference() -> str:
    """An entry for every public name of the package, for mkdocstrings to fill in."""
    import unmet

    return "\n\n".join(f"::: unmet.{name}" for name in unmet.__all__ if not name.startswith("__"))


def command_reference() -> str:
    """Every command with its arguments and options, as in `--help`."""
    from typer.main import get_command

    from unmet.cli import app

    root = get_command(app)
    return "\n\n".join(_section(path, command) for path, command in _leaves("unmet", root))


def _leaves(path: str, command: Any) -> list[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        return [(path, command)]
    return [leaf for name, part in command.commands.items() for leaf in _leaves(f"{path} {name}", part)]


def _section(path: str, command: Any) -> str:
    context = command.make_context(path, [], resilient_parsing=True)
    usage = f"{path} {' '.join(command.collect_usage_pieces(context))}"
    parts = [f"## {path}", _prose(command.help or ""), f"```text\n{usage}\n```"]
    shown = [param for param in command.get_params(context) if not getattr(param, "hidden", False)]
    for heading, params in _by_heading(shown).items():
        rows = [row for param in params if (row := _row(param, context))]
        if rows:
            parts.append("\n".join([f"| {heading} | default | |", "| --- | --- | --- |", *rows]))
    return "\n\n".join(parts)


def _by_heading(params: list[Any]) -> dict[str, list[Any]]:
    headings: dict[str, list[Any]] = {}
    for param in params:
        default = "Arguments" if param.param_type_name == "argument" else "Options"
        headings.setdefault(getattr(param, "rich_help_panel", None) or default, []).append(param)
    return headings


def _row(param: Any, context: Any) -> str | None:
    record = param.get_help_record(context)
    if record is None:
        return None
    name, text = record
    default = re.search(r"\s*\[default: (.*)\]$", text)
    words = text[: default.start()] if default else text
    value = default[1].partition(";")[0] if default else ""  # what follows is the allowed range
    return f"| `{_cell(name)}` | {f'`{_cell(value)}`' if value else ''} | {_escaped(_cell(words))} |"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def _escaped(text: str) -> str:
    return text.replace("<", "&lt;").replace("*", "\\*").replace("[", "\\[")


def _prose(text: str) -> str:
    return text.replace("\b", "").strip()
