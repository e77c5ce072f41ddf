"""Battery: consumption of a trip and the piecewise linear charging curve.

State of charge (SoC) is a share of the capacity, in [0, 1]. The functions take and return scalars, are compiled for
the engine and work as plain Python too.
"""

from __future__ import annotations

from unmet.compiled import compiled

__all__ = [
    "TAPER_SHARE",
    "TAPER_SOC",
    "energy_to_taper_kwh",
    "hours_to_full",
    "hours_to_taper",
    "literal_energy_kwh",
    "soc_after_charging",
    "soc_after_trip",
]

TAPER_SOC = 0.8  # state of charge up to which a battery charges at full power
TAPER_SHARE = 0.25  # share of full power at which it charges above that


@compiled()
def soc_after_trip(soc: float, distance_km: float, range_km: float) -> float:
    """SoC after a trip: SoC - distance / range, never below empty (the paper's battery model)."""
    return max(soc - distance_km / range_km, 0.0)


@compiled()
def hours_to_taper(soc: float, capacity_kwh: float, power_kw: float, literal: bool) -> float:
    """Hours at full power until the taper begins.

    T80 = max(0.8 - SoC, 0) C / P, so that the curve is continuous. `literal` follows the paper as printed,
    T80 = 0.8 (1 - SoC) C / P, after which the SoC exceeds 0.8 and then drops back to it.
    """
    share = 0.8 * (1.0 - soc) if literal else max(TAPER_SOC - soc, 0.0)
    return share * capacity_kwh / power_kw


@compiled()
def soc_after_charging(soc: float, hours: float, capacity_kwh: float, power_kw: float, literal: bool) -> float:
    """SoC after some hours on a plug.

    Charging is at full power up to 80 %, at a quarter of it above, and ends at 100 %. `literal` restarts at 0.8
    whenever the hours exceed its T80, as printed, except that a battery never loses charge by charging.
    """
    full_power = hours_to_taper(soc, capacity_kwh, power_kw, literal)
    if hours < full_power:
        reached = soc + hours * power_kw / capacity_kwh
    else:
        begins = TAPER_SOC if literal else max(soc, TAPER_SOC)
        reached = begins + TAPER_SHARE * (hours - full_power) * power_kw / capacity_kwh
    return min(max(reached, soc), 1.0)


@compiled()
def hours_to_full(soc: float, capacity_kwh: float, power_kw: float, literal: bool) -> float:
    """Hours on a plug after which the battery is full."""
    begins = TAPER_SOC if literal else max(soc, TAPER_SOC)
    taper = (1.0 - begins) * capacity_kwh / (TAPER_SHARE * power_kw)
    return hours_to_taper(soc, capacity_kwh, power_kw, literal) + taper


@compiled()
def energy_to_taper_kwh(soc: float, capacity_kwh: float) -> float:
    """Energy from a SoC to 80 % [kWh], which is booked as the demand of a lost driver."""
    return max(TAPER_SOC - soc, 0.0) * capacity_kwh


@compiled()
def literal_energy_kwh(soc: float, capacity_kwh: float) -> float:
    """Energy that lost drivers want according to the printed T80, 0.8 (1 - SoC) C [kWh]."""
    return 0.8 * (1.0 - soc) * capacity_kwh
