"""Figures. A new one is a file beside these that defines a `Figure`, and its name in a list here."""

from __future__ import annotations

from unmet.views.figures.base import Figure
from unmet.views.figures.censored_hours import CENSORED_HOURS
from unmet.views.figures.charging_curves import CHARGING_CURVES
from unmet.views.figures.daily_energy import DAILY_ENERGY
from unmet.views.figures.daily_trips import DAILY_TRIPS
from unmet.views.figures.demand_profile import DEMAND_PROFILE
from unmet.views.figures.exposure_week import EXPOSURE_WEEK
from unmet.views.figures.occupancy import OCCUPANCY
from unmet.views.figures.region_bars import REGION_BARS
from unmet.views.figures.region_demand import REGION_DEMAND
from unmet.views.figures.station_map import STATION_MAP

__all__ = ["CENSORING_FIGURES", "PANEL_FIGURES", "Figure"]

CENSORING_FIGURES: tuple[Figure, ...] = (
    CENSORED_HOURS,
    REGION_BARS,
    DEMAND_PROFILE,
    REGION_DEMAND,
    STATION_MAP,
    DAILY_TRIPS,
    CHARGING_CURVES,
)
"""The figures of the censoring study, in the order in which they answer questions."""

PANEL_FIGURES: tuple[Figure, ...] = (OCCUPANCY, EXPOSURE_WEEK, DAILY_ENERGY)
"""The figures of a demand panel."""
