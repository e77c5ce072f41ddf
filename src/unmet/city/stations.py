"""Charging stations of the built-in city, like those of 2021: many slow ones, some fast, uneven over the city."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from unmet.city.places import ORIGIN, PLACES, land_polygons_km
from unmet.city.trips import is_land

__all__ = ["DRAW", "KINDS", "StationKind", "synthetic_stations"]


class StationKind(NamedTuple):
    """A sort of charging station and how common it is."""

    power_kw: float
    share: float
    plugs: tuple[int, ...]  # equally likely


KINDS: tuple[StationKind, ...] = (
    StationKind(3.7, 0.06, (4,)),
    StationKind(11.0, 0.30, (4, 6)),
    StationKind(22.0, 0.50, (4, 6)),
    StationKind(50.0, 0.10, (2, 4)),
    StationKind(150.0, 0.04, (4,)),
)

DRAW = 2  # the seed of the one draw of stations that is the built-in city's


def synthetic_stations(seed: int = DRAW) -> pl.DataFrame:
    """Stations of the built-in city. They are always the same ones, unless another draw is asked for."""
    rng = np.random.default_rng([seed, 0x57A7])
    zealand, amager = land_polygons_km()
    rows = []
    for place in PLACES:
        centre_x, centre_y = (float(c) for c in ORIGIN.to_km(place.lat, place.lon))
        spread = min(0.55 * np.sqrt(place.area_km2 / np.pi), 2.2)
        for _ in range(place.stations):
            while True:
                x, y = centre_x + spread * rng.standard_normal(), centre_y + spread * rng.standard_normal()
                if is_land(x, y, zealand, amager):
                    break
            kind = KINDS[rng.choice(len(KINDS), p=[k.share for k in KINDS])]
            lat, lon = ORIGIN.to_degrees(x, y)
            rows.append((place.name, float(lat), float(lon), kind.power_kw, int(rng.choice(kind.plugs))))
    frame = pl.DataFrame(rows, schema=["name", "lat", "lon", "power_kw", "plugs"], orient="row")
    return frame.select(
        pl.format("s{}", pl.int_range(1, pl.len() + 1).cast(pl.String).str.zfill(3)).alias("station_id"),
        pl.col("lat", "lon").round(5),
        "power_kw",
        pl.col("plugs").cast(pl.Int32),
        "name",
    )
