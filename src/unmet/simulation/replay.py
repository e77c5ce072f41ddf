"""Replay: repeat the same arrivals at stations with different plugs, powers or queues.

In a simulation, served drivers behave differently later, because their batteries are full. A replay keeps every arrival
fixed, as a comparison of plugs requires.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numba import types

from unmet.arrays import Floats
from unmet.compiled import compiled
from unmet.errors import InputError
from unmet.simulation.battery import energy_to_taper_kwh, literal_energy_kwh, soc_after_charging
from unmet.simulation.queues import LOST, Plugs, queue_named
from unmet.simulation.queues.base import ADMIT, PLUGS_TYPE, Admit, Driver
from unmet.simulation.scenario import Curve
from unmet.simulation.simulate import plugs_of
from unmet.tables import UTC

__all__ = ["replay"]


def replay(
    arrivals: pl.DataFrame, stations: pl.DataFrame, queue: str = "first-come", curve: Curve = Curve.CONTINUOUS
) -> pl.DataFrame:
    """Send the arrivals of a simulation, in order of time, to these stations.

    Returns the arrivals with `outcome, plug_id, start, end, energy_kwh, wanted_kwh` under these conditions. Drivers try
    only the station of their arrival.
    """
    missing = {"arrival", "leaves", "soc", "battery_kwh", "station_id"} - set(arrivals.columns)
    if missing:
        raise InputError(f"A replay needs arrivals of a simulation: {', '.join(sorted(missing))} is missing.")
    if "attempt" in arrivals.columns and (arrivals["attempt"] > 1).any():
        raise InputError("Some of these drivers retry or divert: a replay would send them to two places at once.")
    unknown = arrivals.join(stations, on="station_id", how="anti")["station_id"].n_unique()
    if unknown:
        raise InputError(f"{unknown} stations of the arrivals are not among the stations: give all of them.")
    station_row = pl.col("station_id").replace_strict(stations["station_id"], np.arange(stations.height))
    ordered = arrivals.sort("arrival", maintain_order=True)
    drivers = ordered.select(
        station=station_row.cast(pl.Float64),
        now=pl.col("arrival").dt.epoch("ms") / 1000,
        leaves=(pl.col("leaves").dt.epoch("ms") / 1000).fill_null(np.inf),
        soc="soc",
        capacity="battery_kwh",
    ).to_numpy(order="c", writable=True)
    plugs = plugs_of(stations)
    literal = curve is not Curve.CONTINUOUS
    served = _serve(queue_named(queue).admit, drivers, plugs, literal, curve is Curve.LITERAL_LOST)
    plug, start, end, energy, wanted = served.T
    lost = pl.Series(plug == LOST)

    def moment(seconds: Floats) -> pl.Series:
        return pl.Series(np.round(seconds * 1000).astype(np.int64)).cast(UTC)

    return ordered.with_columns(
        outcome=pl.when(lost).then(pl.lit("lost")).otherwise(pl.lit("served")),
        plug_id=pl.when(~lost).then(pl.Series((plug - plugs.first[drivers[:, 0].astype(int)] + 1).astype(np.int32))),
        start=pl.when(~lost).then(moment(start)),
        end=pl.when(~lost).then(moment(end)),
        energy_kwh=pl.Series(energy),
        wanted_kwh=pl.Series(wanted),
    ).drop("taper", "charged", "waited_minutes", strict=False)


_FLOATS_2D = types.Array(types.float64, 2, "C")


@compiled(_FLOATS_2D(types.FunctionType(ADMIT), _FLOATS_2D, PLUGS_TYPE, types.boolean, types.boolean))
def _serve(admit: Admit, drivers: Floats, plugs: Plugs, literal: bool, literal_lost: bool) -> Floats:
    """Rows of plug, start [s], end [s], energy delivered [kWh] and energy wanted [kWh], one per driver.

    Columns of `drivers`: station, arrival [s], departure [s], SoC, capacity [kWh].
    """
    log = np.empty((len(drivers), 5))
    only = np.empty(1, np.int64)  # nearest stations, for queues that divert: only the station of the arrival
    for i in range(len(drivers)):
        only[0] = int(drivers[i, 0])
        soc, capacity = drivers[i, 3], drivers[i, 4]
        slot = admit(Driver(drivers[i, 1], drivers[i, 2], soc, capacity, literal), only[0], only, plugs)
        log[i, 0], log[i, 1], log[i, 2] = slot.plug, slot.start, slot.end
        if slot.plug == LOST:
            log[i, 3] = 0.0
            log[i, 4] = literal_energy_kwh(soc, capacity) if literal_lost else energy_to_taper_kwh(soc, capacity)
        else:
            plugs.free_at[slot.plug] = slot.end
            hours = (slot.end - slot.start) / 3600.0
            charged = soc_after_charging(soc, hours, capacity, plugs.power_kw[only[0]], literal)
            log[i, 3] = log[i, 4] = (charged - soc) * capacity
    return log
