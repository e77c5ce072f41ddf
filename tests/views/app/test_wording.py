"""Notes and messages in the app name what is on its pages, not options of the command line."""

from __future__ import annotations

import pytest

from unmet.views.app.wording import on_page


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("Give --time-zone if they are elsewhere.", "Give the time zone under Assumptions if they are elsewhere."),
        ("Give --map time_zone=Europe/Rome if they are local.",
         "Give the time zone Europe/Rome under Assumptions if they are local."),
        ("Give --map energy_factor=0.001 if not.",
         "Give the setting energy_factor=0.001 (only on the command line) if not."),
        ("Say which with --map station_id=COLUMN.", "Say which with a column named station_id in the file."),
        ("Try --map-stations 'plugs=Number of plugs'.",
         "Try a column named plugs in the file (now Number of plugs)."),
        ("A budget needs costs: give --plug-cost (and --site-cost).",
         "A budget needs costs: give the cost of a plug (and the cost of a site)."),
        ("Run it with --by-area.", "Run it with the option “by-area” (only on the command line)."),
        ("A ratio of 0.9 -- close to 1; 5-10 % lost.", "A ratio of 0.9 -- close to 1; 5-10 % lost."),
    ],
)  # fmt: skip
def test_options_become_words_of_the_page(said, shown):
    assert on_page(said) == shown
