"""Figures. A new one is a file beside these that defines a `Figure`, and its name in a list here."""

from __future__ import annotations

from unmet.views.figures.application import APPLICATION
from unmet.views.figures.base import Figure
from unmet.views.figures.censored_hours import CENSORED_HOURS
from unmet.views.figures.charging_curves import CHARGING_CURVES
from unmet.views.figures.coverage import COVERAGE
from unmet.views.figures.daily_energy import DAILY_ENERGY
from unmet.views.figures.daily_trips import DAILY_TRIPS
from unmet.views.figures.demand_profile import DEMAND_PROFILE
from unmet.views.figures.exposure_week import EXPOSURE_WEEK
from unmet.views.figures.forecast_fan import FORECAST_FAN
from unmet.views.figures.forecast_week import FORECAST_WEEK
from unmet.views.figures.learning import LEARNING
from unmet.views.figures.occupancy import OCCUPANCY
from unmet.views.figures.recovered_regions import RECOVERED_REGIONS
from unmet.views.figures.recovered_weeks import RECOVERED_WEEKS
from unmet.views.figures.region_bars import REGION_BARS
from unmet.views.figures.region_demand import REGION_DEMAND
from unmet.views.figures.station_map import STATION_MAP
from unmet.views.figures.study_gap import STUDY_GAP
from unmet.views.figures.study_lines import STUDY_INTERVALS, STUDY_LOSS

__all__ = [
    "APPLICATION_FIGURES",
    "CENSORING_FIGURES",
    "FORECAST_FIGURES",
    "MODEL_FIGURES",
    "PANEL_FIGURES",
    "RECOVERY_FIGURES",
    "STUDY_FIGURES",
    "Figure",
]

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

MODEL_FIGURES: tuple[Figure, ...] = (FORECAST_WEEK, COVERAGE, LEARNING)
"""The figures of a fitted model; those of unseen hours are left out where there are none."""

FORECAST_FIGURES: tuple[Figure, ...] = (FORECAST_FAN,)
"""The figures of a forecast."""

RECOVERY_FIGURES: tuple[Figure, ...] = (RECOVERED_WEEKS, RECOVERED_REGIONS)
"""The figures of recovered demand; that of regions is left out where there is one alone."""

STUDY_FIGURES: tuple[Figure, ...] = (STUDY_LOSS, STUDY_GAP, STUDY_INTERVALS)
"""The figures of a study of models."""

APPLICATION_FIGURES: tuple[Figure, ...] = (APPLICATION,)
"""The figures of what models say of one region."""
