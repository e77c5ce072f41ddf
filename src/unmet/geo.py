"""Distances on the Earth, a flat projection for a city, and nearest stations."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unmet.arrays import Floats

__all__ = ["EARTH_RADIUS_KM", "Nearest", "Projection", "haversine_km", "nearest_stations", "unit_vectors"]

EARTH_RADIUS_KM = 6371.0088


def haversine_km(lat_a: ArrayLike, lon_a: ArrayLike, lat_b: ArrayLike, lon_b: ArrayLike) -> Floats:
    """Great-circle distance between points a and b [km], given in degrees; arguments broadcast."""
    phi_a, phi_b = np.radians(lat_a), np.radians(lat_b)
    half_phi = (phi_b - phi_a) / 2
    half_lambda = (np.radians(lon_b) - np.radians(lon_a)) / 2
    chord = np.sin(half_phi) ** 2 + np.cos(phi_a) * np.cos(phi_b) * np.sin(half_lambda) ** 2
    return np.asarray(2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.clip(chord, 0, 1))))


class Projection(NamedTuple):
    """Equirectangular projection around an origin; within a city its error is a few metres per kilometre."""

    lat: float
    lon: float

    @classmethod
    def around(cls, lat: ArrayLike, lon: ArrayLike) -> Projection:
        """The projection centred on the mean of the given points [degree]."""
        return cls(float(np.mean(np.asarray(lat, float))), float(np.mean(np.asarray(lon, float))))

    @property
    def km_per_degree(self) -> tuple[float, float]:
        """Kilometres in one degree of latitude and of longitude at the origin."""
        north = EARTH_RADIUS_KM * np.pi / 180
        return north, north * float(np.cos(np.radians(self.lat)))

    def to_km(self, lat: ArrayLike, lon: ArrayLike) -> tuple[Floats, Floats]:
        """Eastward and northward offset from the origin [km]."""
        north, east = self.km_per_degree
        return (np.asarray(lon, float) - self.lon) * east, (np.asarray(lat, float) - self.lat) * north

    def to_degrees(self, x_km: ArrayLike, y_km: ArrayLike) -> tuple[Floats, Floats]:
        """Latitude and longitude [degree] of offsets from the origin."""
        north, east = self.km_per_degree
        return self.lat + np.asarray(y_km, float) / north, self.lon + np.asarray(x_km, float) / east


class Nearest(NamedTuple):
    """The stations nearest to each point, nearest first: their rows, and great-circle distances [km]."""

    station: NDArray[np.int64]  # (points, k)
    km: Floats  # (points, k)


def nearest_stations(
    lat: ArrayLike, lon: ArrayLike, station_lat: ArrayLike, station_lon: ArrayLike, k: int = 5
) -> Nearest:
    """The `k` nearest stations of each point, or all of them if there are fewer.

    Chord length and great-circle distance order points on the unit sphere alike, so a 3-D k-d tree is exact.
    """
    from scipy.spatial import KDTree

    stations = unit_vectors(station_lat, station_lon)
    k = min(k, len(stations))
    found = KDTree(stations).query(unit_vectors(lat, lon), k=np.arange(1, k + 1), workers=2)
    chord, station = np.asarray(found[0], float), np.asarray(found[1], np.int64)
    return Nearest(station, 2 * EARTH_RADIUS_KM * np.arcsin(np.clip(chord / 2, 0, 1)))


def unit_vectors(lat: ArrayLike, lon: ArrayLike) -> Floats:
    """Points [degree] on the unit sphere, (points, 3)."""
    phi, lam = np.radians(np.asarray(lat, float)), np.radians(np.asarray(lon, float))
    return np.column_stack([np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)])
