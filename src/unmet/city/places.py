"""Public facts about greater Copenhagen: its districts and municipalities, and the shape of the coast.

Populations are as of 1 January 2020. Workplaces (people employed in the area) are rounded to a thousand, and the
coast to about 300 m. The city of Copenhagen itself is split into its ten districts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unmet.geo import Projection

__all__ = ["CARS_IN_CITY", "LAND", "ORIGIN", "PLACES", "ROAD_DETOUR", "TIME_ZONE", "Place", "land_polygons_km"]

CARS_IN_CITY = 571_627  # passenger cars of the capital region in autumn 2019, as the paper counts them
ROAD_DETOUR = 1.3  # driven distance over straight-line distance, a common value for European cities
TIME_ZONE = "Europe/Copenhagen"
ORIGIN = Projection(55.6761, 12.5683)  # the town hall


class Place(NamedTuple):
    """A district of Copenhagen or a municipality around it."""

    name: str
    lat: float  # of its centre [degree]
    lon: float  # of its centre [degree]
    area_km2: float
    population: int
    workplaces: int
    cars_per_person: float
    stations: int  # number of random stations, besides `stations.WESTERN`; docs/city.md says how it was set


PLACES: tuple[Place, ...] = (
    Place("Indre By", 55.6839, 12.5911, 10.5, 56_000, 118_000, 0.22, 22),
    Place("Østerbro", 55.7122, 12.5866, 9.9, 79_000, 52_000, 0.25, 13),
    Place("Nørrebro", 55.6962, 12.5510, 4.1, 80_000, 28_000, 0.18, 13),
    Place("Vesterbro-Kongens Enghave", 55.6559, 12.5432, 8.3, 73_000, 68_000, 0.22, 13),
    Place("Valby", 55.6567, 12.5030, 9.2, 62_000, 32_000, 0.27, 7),
    Place("Vanløse", 55.6900, 12.4900, 6.7, 41_000, 9_000, 0.30, 3),
    Place("Brønshøj-Husum", 55.7101, 12.4863, 8.7, 45_000, 9_000, 0.28, 3),
    Place("Bispebjerg", 55.7141, 12.5338, 6.8, 55_000, 24_000, 0.22, 4),
    Place("Amager Øst", 55.6634, 12.6255, 9.8, 60_000, 16_000, 0.26, 7),
    Place("Amager Vest", 55.6387, 12.5722, 19.4, 81_000, 46_000, 0.25, 7),
    Place("Frederiksberg", 55.6800, 12.5235, 8.7, 104_305, 42_000, 0.26, 11),
    Place("Albertslund", 55.6796, 12.3510, 23.1, 27_731, 22_000, 0.36, 3),
    Place("Allerød", 55.8554, 12.3204, 67.6, 25_633, 15_000, 0.47, 2),
    Place("Ballerup", 55.7330, 12.3597, 34.0, 48_602, 47_000, 0.42, 8),
    Place("Brøndby", 55.6450, 12.4147, 20.1, 35_090, 24_000, 0.36, 5),
    Place("Dragør", 55.5821, 12.6210, 18.7, 14_494, 3_000, 0.45, 2),
    Place("Egedal", 55.7702, 12.2333, 125.6, 43_354, 12_000, 0.47, 3),
    Place("Furesø", 55.7960, 12.3673, 56.8, 40_965, 12_000, 0.45, 3),
    Place("Gentofte", 55.7507, 12.5526, 25.6, 74_830, 37_000, 0.42, 9),
    Place("Gladsaxe", 55.7474, 12.4696, 24.9, 69_262, 39_000, 0.38, 6),
    Place("Glostrup", 55.6832, 12.4054, 13.4, 23_128, 23_000, 0.38, 3),
    Place("Greve", 55.5904, 12.2453, 60.6, 50_558, 16_000, 0.47, 4),
    Place("Herlev", 55.7349, 12.4272, 12.0, 28_953, 21_000, 0.40, 3),
    Place("Hillerød", 55.9291, 12.2389, 213.5, 51_183, 31_000, 0.45, 5),
    Place("Hvidovre", 55.6304, 12.4687, 22.6, 53_527, 28_000, 0.40, 5),
    Place("Høje-Taastrup", 55.6591, 12.2387, 77.3, 50_759, 34_000, 0.42, 6),
    Place("Hørsholm", 55.8834, 12.4851, 31.3, 24_864, 11_000, 0.46, 3),
    Place("Ishøj", 55.6215, 12.3086, 26.0, 22_989, 8_000, 0.38, 5),
    Place("Lyngby-Taarbæk", 55.7861, 12.5089, 38.6, 56_214, 39_000, 0.40, 7),
    Place("Roskilde", 55.6373, 12.1032, 210.9, 87_914, 45_000, 0.43, 0),
    Place("Rudersdal", 55.8344, 12.4889, 73.3, 56_728, 25_000, 0.47, 5),
    Place("Rødovre", 55.6873, 12.4488, 12.0, 40_652, 18_000, 0.37, 4),
    Place("Solrød", 55.5371, 12.1738, 40.1, 23_255, 6_000, 0.50, 2),
    Place("Tårnby", 55.6077, 12.5941, 47.1, 42_989, 31_000, 0.40, 6),
    Place("Vallensbæk", 55.6335, 12.3719, 8.7, 16_633, 6_000, 0.44, 2),
)

# Outlines of the land, (latitude, longitude) in degrees: eastern Zealand, then the island of Amager. Trips and stations
# are drawn on exactly these two, and name them by their order.
LAND: tuple[tuple[tuple[float, float], ...], ...] = (
    (
        (56.020, 12.560), (55.960, 12.550), (55.930, 12.520), (55.885, 12.545), (55.853, 12.572), (55.825, 12.577),
        (55.776, 12.594), (55.761, 12.600), (55.750, 12.588), (55.731, 12.583), (55.719, 12.583), (55.722, 12.612),
        (55.705, 12.603), (55.692, 12.601), (55.681, 12.590), (55.671, 12.578), (55.660, 12.562), (55.648, 12.548),
        (55.638, 12.535), (55.637, 12.518), (55.625, 12.500), (55.600, 12.475), (55.602, 12.440), (55.607, 12.420),
        (55.608, 12.385), (55.603, 12.360), (55.592, 12.335), (55.578, 12.300), (55.556, 12.260), (55.534, 12.223),
        (55.480, 12.190), (55.450, 12.150), (55.450, 11.950), (55.640, 11.980), (55.655, 12.075), (55.700, 12.095),
        (55.760, 12.080), (55.850, 12.030), (56.020, 12.030),
    ),
    (
        (55.696, 12.618), (55.676, 12.636), (55.655, 12.645), (55.635, 12.658), (55.617, 12.664), (55.593, 12.676),
        (55.568, 12.662), (55.560, 12.620), (55.566, 12.560), (55.600, 12.532), (55.630, 12.538), (55.653, 12.565),
        (55.669, 12.581), (55.679, 12.594), (55.690, 12.606),
    ),
)  # fmt: skip


def land_polygons_km() -> tuple[NDArray[np.float64], ...]:
    """The outlines of the land as (points, 2) arrays of eastward and northward km from the origin."""
    return tuple(np.column_stack(ORIGIN.to_km(*np.array(outline).T)) for outline in LAND)
