"""MATSim scenarios: plans or events become trips, chargers become stations."""

from __future__ import annotations

from unmet.city.matsim.chargers import read_chargers
from unmet.city.matsim.trips import MatsimDay, MatsimTrips, read_matsim_trips

__all__ = ["MatsimDay", "MatsimTrips", "read_chargers", "read_matsim_trips"]
