"""Conversion of a scenario's coordinates to degrees."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from unmet.arrays import Floats
from unmet.errors import InputError

__all__ = ["to_degrees"]


def to_degrees(x: ArrayLike, y: ArrayLike, crs: str | None) -> tuple[Floats, Floats]:
    """Latitude and longitude of points in a coordinate system such as EPSG:25832; without one they must be degrees."""
    east, north = np.asarray(x, float), np.asarray(y, float)
    if crs is None:
        not_degrees = (np.abs(east) > 180) | (np.abs(north) > 90)
        if not_degrees.any():
            at = int(not_degrees.argmax())
            raise InputError(
                f"Positions such as {east[at]:g}, {north[at]:g} are not degrees: give their coordinate system with "
                "--crs, such as EPSG:25832. MATSim's config names it under global, coordinateSystem."
            )
        return north, east
    from pyproj import Transformer
    from pyproj.exceptions import ProjError

    try:
        transformer = Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
        lon, lat = (np.asarray(part, float) for part in transformer.transform(east, north))
    except ProjError:
        raise InputError(f"--crs {crs!r} is not a coordinate reference system: give one such as EPSG:25832.") from None
    converted = np.isfinite(lat) & np.isfinite(lon)
    if np.isfinite(east).any() and not converted.any():
        raise InputError(f"All positions are outside the area of {crs}: check --crs.")
    return np.where(converted, lat, np.nan), np.where(converted, lon, np.nan)
