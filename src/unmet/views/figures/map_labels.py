"""Labels of circles on a map, placed so that none covers another, on large screens and on phones."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import plotly.graph_objects as go

from unmet.arrays import Floats
from unmet.views.theme import TEXT

__all__ = ["add_labels", "label_offsets"]

FITS_PX = 24  # diameter of a circle that a label fits into [px]
LETTER_PX, HEIGHT_PX = 9.0, 22.0  # width of a letter, and height of a label with its border [px]
PLOTS_PX = (
    (900.0, 620.0),
    (264.0, 620.0),
)  # largest plot of a map on a large screen and on a phone: width, height [px]
DISTANCES_PX, DIRECTIONS = (
    (26.0, 38.0, 52.0, 68.0),
    12,
)  # distances and number of directions that are tried if the place is taken
POINT_PX = 8.0  # side of the square at a labelled point that other labels leave free [px]
MIN_EXTENT_KM = 1e-9  # smallest extent of a map, in case all points coincide [km]
PADDING_PX = 6.0  # width of a label beside its letters
Box = tuple[Floats, Floats]  # lowest and highest east, and lowest and highest north [km]


def add_labels(
    figure: go.Figure, east: Floats, north: Floats, texts: Sequence[str], circle_px: Floats, box: Box
) -> None:
    """Label circles: inside large ones, beside small ones, or at the end of a line if another label is in the way.

    Args:
        figure: the map.
        east: centres of the circles, most important first [km].
        north: the same, northwards [km].
        texts: their labels.
        circle_px: their diameters [px].
        box: limits of the map, east and north [km].
    """
    for x, y, text, (right, up) in zip(
        east, north, texts, label_offsets(east, north, texts, circle_px, box), strict=True
    ):
        is_away = up != 0  # a label in or beside its circle is level with it
        line = {"ax": right, "ay": -up, "arrowhead": 0, "arrowwidth": 1, "arrowcolor": TEXT, "standoff": 2}
        figure.add_annotation(
            x=x, y=y, text=f"<b>{text}</b>", borderpad=1, bgcolor="rgba(255, 255, 255, 0.75)", showarrow=is_away,
            font={"size": 13, "color": TEXT}, **(line if is_away else {"xshift": right, "yshift": up}),
        )  # fmt: skip


def label_offsets(
    east: Floats, north: Floats, texts: Sequence[str], circle_px: Floats, box: Box
) -> list[tuple[float, float]]:
    """Offset of each label from its circle, right and up [px]. Each label takes the nearest free place."""
    corner, extent = np.min(box, axis=1), np.maximum(np.ptp(box, axis=1), MIN_EXTENT_KM)
    scales = np.array([np.min(np.array(plot) / extent) for plot in PLOTS_PX])[:, None]  # [px per km]
    centres = (np.column_stack([east, north]) - corner) * scales[:, None]  # (plots, labels, 2)
    limits = extent * scales  # (plots, 2)
    # Offsets are the same in all plots, so a label must be clear of the others in each of them.
    taken: list[tuple[Floats, Floats]] = []  # centres (plots, 2) and half_size sizes (2,) of the labels so far
    offsets = []
    for i, text in enumerate(texts):
        half_size = np.array([LETTER_PX * len(text) + PADDING_PX, HEIGHT_PX]) / 2
        others = np.delete(centres, i, axis=1)
        preferred = (0.0, 0.0) if circle_px[i] >= FITS_PX else (circle_px[i] / 2 + half_size[0], 0.0)
        # In or beside its own circle, a label may cover other circles; farther away it may not.
        offset = next(
            (
                where
                for where in chain([preferred], _around(half_size))
                if _is_free(centres[:, i] + where, half_size, taken, others if where != preferred else None, limits)
            ),
            preferred,
        )
        taken.append((centres[:, i] + offset, half_size))
        offsets.append((float(offset[0]), float(offset[1])))
    return offsets


def _around(half_size: Floats) -> list[tuple[float, float]]:
    """Places around a circle, nearest first; wide labels keep more distance sideways."""
    angles = 2 * np.pi * (np.arange(DIRECTIONS) + 0.5) / DIRECTIONS
    return [
        (float(np.cos(angle) * (distance + half_size[0] - HEIGHT_PX / 2)), float(np.sin(angle) * distance))
        for distance in DISTANCES_PX
        for angle in angles
    ]


def _is_free(
    at: Floats, half_size: Floats, taken: list[tuple[Floats, Floats]], points: Floats | None, limits: Floats
) -> bool:
    """Whether a label at these centres (plots, 2) is clear of labels and, if given, of points (plots, points, 2).

    With points, it must also lie within the limits of the plots (plots, 2).
    """
    for other, size in taken:
        if (np.abs(at - other) < half_size + size).all(axis=1).any():
            return False
    if points is None:
        return True
    inside = (at >= half_size).all() and (at + half_size <= limits).all()
    covers = (np.abs(points - at[:, None]) < half_size + POINT_PX / 2).all(axis=2).any()
    return bool(inside and not covers)
