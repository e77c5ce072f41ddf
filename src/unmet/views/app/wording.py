"""Replace command-line options in notes and messages by their counterparts on the page."""

from __future__ import annotations

import re

__all__ = ["on_page"]

COMMAND_LINE_ONLY = "(only on the command line)"
ON_PAGE = {
    "time-zone": "the time zone under Assumptions",
    "stations": "the file of stations",
    "outages": f"a table of outages {COMMAND_LINE_ONLY}",
    "plug-cost": "the cost of a plug",
    "site-cost": "the cost of a site",
    "plugs": "a number of plugs",
    "budget": "a budget",
    "max-per-site": "the limit per site",
}
"""What an option is called on the page, or where to find it."""
# --time-zone Europe/London, --map time_zone=Europe/London
TIME_ZONE = re.compile(r"--(?:map\s+[\"']?time_zone=|time-zone\s+(?=[A-Z]\w+/))(\w+(?:/\w+)*)[\"']?")
# --map start=COLUMN, --map "start=Start Time", --map-stations plugs=COLUMN
MAP_ENTRY = re.compile(r"--map(?:-stations)?\s+(?:([\"'])(\w+)=(.+?)\1|(\w+)=([\w.+/-]*\w))")
OPTION = re.compile(r"--([a-z][a-z-]*)")
SETTINGS = frozenset({"day_first", "duration_unit", "energy_factor", "zone", "end_zone"})
"""Entries of a mapping that are settings, not columns."""


def on_page(text: str) -> str:
    """The text with every option of the command line replaced by its counterpart on the page."""
    text = TIME_ZONE.sub(r"the time zone \1 under Assumptions", text)
    text = MAP_ENTRY.sub(_mapped, text)
    return OPTION.sub(lambda found: ON_PAGE.get(found[1], f"the option “{found[1]}” {COMMAND_LINE_ONLY}"), text)


def _mapped(found: re.Match[str]) -> str:
    """An entry of a mapping: a column can be renamed in the file, a setting cannot."""
    _, quoted, text, plain, word = found.groups()
    entry, value = quoted or plain, text or word
    if entry in SETTINGS:
        return f"the setting {entry}={value} {COMMAND_LINE_ONLY}"
    return f"a column named {entry} in the file" + ("" if value == "COLUMN" else f" (now {value})")
