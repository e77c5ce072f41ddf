"""Charging stations of the built-in city, modelled on 2021: many slow, some fast, unevenly distributed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import polars as pl

from unmet.city.places import ORIGIN, PLACES, land_polygons_km
from unmet.city.trips import is_land

__all__ = ["KINDS", "STATION_SEED", "StationKind", "synthetic_stations"]


class StationKind(NamedTuple):
    """A kind of charging station and how common it is."""

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

WESTERN: tuple[tuple[str, float, float, float, int], ...] = (
    ("Roskilde north", 55.657, 12.085, 22.0, 4),
    ("Roskilde south", 55.622, 12.085, 22.0, 3),
)
"""The two stations of the western, residential region: name, lat, lon, power of a plug [kW], plugs.

The paper says of its most censored cluster that "only two regional charging stations" cover "a large spatial area".
"""

STATION_SEED = 11  # seed of the built-in city's stations; docs/city.md says why
STATION_STREAM = 0x57A7  # keeps these random numbers apart from others of the same seed


def synthetic_stations(
    seed: int = STATION_SEED,
    kinds: tuple[StationKind, ...] = KINDS,
    western: tuple[tuple[str, float, float, float, int], ...] = WESTERN,
) -> pl.DataFrame:
    """Stations of the built-in city: `station_id, lat, lon, power_kw, plugs, name`.

    Args:
        seed: seed of positions and kinds. It is not the seed of the trips, so that all studies have the same stations.
        kinds: kinds of the random stations.
        western: fixed stations that follow the random ones.
    """
    zealand, amager = land_polygons_km()
    rows: list[tuple[str, float, float, float, int]] = []
    for number, place in enumerate(PLACES):
        rng = np.random.default_rng([seed, STATION_STREAM, number])  # one stream per place: they are independent
        centre_x, centre_y = (float(c) for c in ORIGIN.to_km(place.lat, place.lon))
        spread = min(0.55 * np.sqrt(place.area_km2 / np.pi), 2.2)  # [km]: about half of the place's radius
        for _ in range(place.stations):
            while True:
                x, y = centre_x + spread * rng.standard_normal(), centre_y + spread * rng.standard_normal()
                if is_land(x, y, zealand, amager):
                    break
            kind = kinds[rng.choice(len(kinds), p=[k.share for k in kinds])]
            lat, lon = ORIGIN.to_degrees(x, y)
            rows.append((place.name, float(lat), float(lon), kind.power_kw, int(rng.choice(kind.plugs))))
    rows += western
    frame = pl.DataFrame(rows, schema=["name", "lat", "lon", "power_kw", "plugs"], orient="row")
    return frame.select(
        pl.format("s{}", pl.int_range(1, pl.len() + 1).cast(pl.String).str.zfill(3)).alias("station_id"),
        pl.col("lat", "lon").round(5),
        "power_kw",
        pl.col("plugs").cast(pl.Int32),
        "name",
    )
