"""Read the chargers of MATSim's EV extension as stations."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from unmet.city.matsim.grid import to_degrees
from unmet.city.matsim.network import RoadNetwork
from unmet.city.matsim.xml import complete_elements
from unmet.errors import InputError

__all__ = ["read_chargers"]


def read_chargers(path: Path, network: RoadNetwork, crs: str | None) -> pl.DataFrame:
    """Read chargers.xml(.gz): `station_id, lat, lon, power_kw, plugs, name`.

    A charger is placed in the middle of its link. `plug_power` is in kW and `plug_count` defaults to 1, as in
    MATSim's own reader. MATSim's chargers have no names, so `name` is the charger's type.
    """
    rows, x, y = [], [], []
    for element in complete_elements(path, "charger"):
        charger_id, link = element.get("id", ""), element.get("link", "")
        if link not in network.middle:
            raise InputError(
                f"{path}: the charger {charger_id!r} is on the link {link!r}, which the network does not have."
            )
        try:
            power, plugs = float(element.get("plug_power", "")), int(element.get("plug_count", "1"))
        except ValueError:
            raise InputError(f"{path}: the charger {charger_id!r} has no usable plug_power or plug_count.") from None
        rows.append((charger_id, power, plugs, element.get("type", "")))
        x.append(network.middle[link][0])
        y.append(network.middle[link][1])
    if not rows:
        raise InputError(f"{path} holds no chargers: give the chargers.xml of the scenario.")
    lat, lon = to_degrees(x, y, crs)
    table = pl.DataFrame(rows, schema=["station_id", "power_kw", "plugs", "name"], orient="row")
    return table.with_columns(lat=pl.Series(lat), lon=pl.Series(lon)).select(
        "station_id", "lat", "lon", "power_kw", "plugs", "name"
    )
