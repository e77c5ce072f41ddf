"""The layout of `--help`: options under headings, and no types that tell the reader nothing."""

from __future__ import annotations

from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

__all__ = ["CommandGroup", "GroupedCommand"]

_GROUPS: dict[str, tuple[str, ...]] = {
    "Reading records": (
        "stations", "format_name", "mapped", "map_file", "sql", "query", "outages", "join_restarts", "map_stations",
        "crs", "since", "until", "token_file",
    ),
    "Regions, time and market": ("regions", "time_zone", "country", "booking", "operator", "share"),
    "Assumptions": ("waiting", "spill", "energy", "interval", "draws", "seed"),
    "What if": ("more_cars", "stay_limit", "idle_fee", "closed", "competitor", "growth", "horizon"),
    "Costs": ("plug_cost", "site_cost", "costs", "price", "currency", "upkeep", "years", "discount"),
    "Output": ("out", "tables", "figures", "title", "basemap", "overwrite", "as_json", "open_it"),
    "Large records": ("by_area", "workers", "scheduler", "max_memory"),
    "Network": ("host", "port", "max_megabytes", "max_rows"),
}  # fmt: skip
"""Headings, with the parameters under each; all others stay under Options."""
_HEADING = {name: heading for heading, names in _GROUPS.items() for name in names}


def _tidy(params: list[Any]) -> list[Any]:
    """Put each option under its heading, and remove types such as BOOLEAN."""
    for param in params:
        if isinstance(param, TyperArgument) and param.nargs != 1:
            vars(param)["display_type_rich"] = _nothing  # its name, such as FILES..., already says what it takes
        if not isinstance(param, TyperOption):
            continue
        if param.is_flag and param.metavar is None:
            param.metavar = ""  # a flag takes no value, so its type is noise
        elif param.multiple and param.metavar is None:
            param.metavar = "VALUE"
        if param.rich_help_panel is None and param.name in _HEADING:
            param.rich_help_panel = _HEADING[param.name]
    return params


def _nothing(ctx: Any) -> str:
    return ""


class GroupedCommand(TyperCommand):
    """A command whose help shows options in groups."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, each under its heading."""
        return _tidy(super().get_params(ctx))


class CommandGroup(TyperGroup):
    """A program with commands, such as `unmet` or `unmet study`; its own options are shown like those of commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters."""
        return _tidy(super().get_params(ctx))
