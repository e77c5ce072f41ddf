"""Parallel loops cover every site once, in order."""

from __future__ import annotations

import pytest

from unmet.demand.parallel import over_sites


@pytest.mark.parametrize("sites", [0, 1, 2, 3, 63, 64, 1000, 4097])
def test_every_site_is_processed_once_and_in_order(sites):
    parts = over_sites(lambda name, begin, end: [(name, s) for s in range(begin, end)], sites, "a")
    assert [each for part in parts for each in part] == [("a", s) for s in range(sites)]
