"""Labels on maps never cover each other, on a desk and on a phone."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import plotly.graph_objects as go
from hypothesis import given, settings, strategies
from hypothesis.extra.numpy import arrays

from unmet.views.figures.map_labels import HEIGHT_PX, LETTER_PX, PLOTS_PX, add_labels, label_offsets

TEXTS = ["1", "2", "+10", "4", "5"]
BOX = (np.array([-5.0, 5.0]), np.array([-4.0, 6.0]))
places = arrays(float, 5, elements=strategies.floats(-3, 3))


@settings(max_examples=200, deadline=None)
@given(places, places, strategies.booleans())
def test_five_labels_are_clear_of_each_other_wherever_their_circles_are(east, north, are_close):
    east, north = (east / 50, north / 50) if are_close else (east, north)
    offsets = np.array(label_offsets(east, north, TEXTS, np.array([46.0, 30, 12, 8, 7]), BOX))
    half = np.array([[LETTER_PX * len(text) + 6, HEIGHT_PX] for text in TEXTS]) / 2
    for width, height in PLOTS_PX:
        scale = min(width / 10, height / 10)
        centres = np.column_stack([east, north]) * scale + offsets
        for i, j in combinations(range(5), 2):
            assert (np.abs(centres[i] - centres[j]) >= half[i] + half[j] - 1e-6).any()


def test_a_label_stays_in_its_circle_unless_it_must_move_and_then_has_a_line():
    figure = go.Figure()
    add_labels(figure, np.array([0.0, 0.0, 3.0]), np.zeros(3), ["1", "2", "3"], np.array([46.0, 30.0, 8.0]), BOX)
    first, second, small = figure.layout.annotations
    assert (first.showarrow, first.xshift, first.yshift) == (False, 0, 0)
    assert second.showarrow
    assert abs(second.ay) > 0
    assert not small.showarrow
    assert small.xshift > 4  # beside a circle that it would hide
