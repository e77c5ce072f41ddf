"""Figures. To add one, define a `Figure` in a module next to these, and add `module.NAME` to a list in `_FIGURES`.

A list imports its figures when it is first used, so that a page without models does not wait for torch.
A new list is also declared for type checkers and named in `__all__`, because it exists only through `__getattr__`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from unmet.views.figures.base import Figure

if TYPE_CHECKING:
    APPLICATION_FIGURES: tuple[Figure, ...]
    CENSORING_FIGURES: tuple[Figure, ...]
    FORECAST_FIGURES: tuple[Figure, ...]
    MODEL_FIGURES: tuple[Figure, ...]
    PANEL_FIGURES: tuple[Figure, ...]
    PLAN_FIGURES: tuple[Figure, ...]
    RECOVERY_FIGURES: tuple[Figure, ...]
    STUDY_FIGURES: tuple[Figure, ...]

__all__ = [
    "APPLICATION_FIGURES",
    "CENSORING_FIGURES",
    "FORECAST_FIGURES",
    "MODEL_FIGURES",
    "PANEL_FIGURES",
    "PLAN_FIGURES",
    "RECOVERY_FIGURES",
    "STUDY_FIGURES",
    "Figure",
]

_FIGURES: dict[str, tuple[str, ...]] = {
    # The censoring study
    "CENSORING_FIGURES": (
        "censored_hours.CENSORED_HOURS",
        "region_bars.REGION_BARS",
        "demand_profile.DEMAND_PROFILE",
        "region_demand.REGION_DEMAND",
        "station_map.STATION_MAP",
        "daily_trips.DAILY_TRIPS",
        "charging_curves.CHARGING_CURVES",
    ),
    # A demand panel
    "PANEL_FIGURES": ("occupancy.OCCUPANCY", "exposure_week.EXPOSURE_WEEK", "daily_energy.DAILY_ENERGY"),
    # A plan of plugs to add; the map is omitted if there are no positions
    "PLAN_FIGURES": ("plan_gain.PLAN_GAIN", "plan_map.PLAN_MAP"),
    # A fitted model; figures of held-out hours are omitted if there are none
    "MODEL_FIGURES": ("forecast_week.FORECAST_WEEK", "coverage.COVERAGE", "learning.LEARNING"),
    # A forecast
    "FORECAST_FIGURES": ("forecast_fan.FORECAST_FAN",),
    # Recovered demand; a figure that would be empty is omitted
    "RECOVERY_FIGURES": (
        "recovered_weeks.RECOVERED_WEEKS",
        "recovered_regions.RECOVERED_REGIONS",
        "site_map.SITE_MAP",
    ),
    # A study of models
    "STUDY_FIGURES": ("study_lines.STUDY_LOSS", "study_gap.STUDY_GAP", "study_lines.STUDY_INTERVALS"),
    # Forecasts for one region
    "APPLICATION_FIGURES": ("application.APPLICATION",),
}


def __getattr__(name: str) -> tuple[Figure, ...]:
    """The list of figures of that name."""
    if name not in _FIGURES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    paths = (path.split(".") for path in _FIGURES[name])
    return tuple(getattr(import_module(f"{__name__}.{module}"), figure) for module, figure in paths)
