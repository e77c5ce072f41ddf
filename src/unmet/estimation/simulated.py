"""The panel of a simulation, with the truth and with the estimate from its records alone."""

from __future__ import annotations

import datetime as dt

import polars as pl

from unmet.demand.market import Market
from unmet.demand.panel import Panel
from unmet.demand.regions import Regions
from unmet.demand.simulated import simulated_panel
from unmet.estimation.lost_demand import LostDemand
from unmet.estimation.panel_table import panel_table

__all__ = ["UNSEEN", "estimate_simulated", "records_and_truth"]

UNSEEN = ("exposure", "lost_kwh", "elsewhere_kwh", "lost_kwh_before", "lost_draws")
"""Columns of a panel about unobserved demand."""


def estimate_simulated(
    sessions: pl.DataFrame,
    stations: pl.DataFrame,
    regions: Regions,
    time_zone: str,
    market: Market | None = None,
    until: dt.datetime | None = None,
) -> LostDemand:
    """Estimate lost demand from the records of a simulation, in which a lost driver wants the energy to 80 %."""
    panel = Panel(sessions, stations, regions=regions, time_zone=time_zone, market=market)
    return LostDemand(energies="to-80").fit(panel, until)


def records_and_truth(
    sessions: pl.DataFrame,
    arrivals: pl.DataFrame,
    stations: pl.DataFrame,
    regions: Regions,
    period: tuple[dt.datetime, dt.datetime],
    time_zone: str,
    market: Market | None = None,
    until: dt.datetime | None = None,
) -> pl.DataFrame:
    """The panel of a simulation with the truth, and with estimates from its records alone.

    Columns are those of `simulated_panel` and `UNSEEN`. Before the first and after the last session, exposure is 1.
    """
    truth = simulated_panel(arrivals, regions, period)
    estimated = panel_table(estimate_simulated(sessions, stations, regions, time_zone, market, until))
    keys = ["unique_id", "ds"]
    columns = [name for name in UNSEEN if name in estimated.columns]
    joined = truth.join(estimated.select(*keys, *columns), on=keys, how="left", maintain_order="left")
    filled = [pl.col("exposure").fill_null(1.0), pl.col("lost_kwh", "elsewhere_kwh", "lost_kwh_before").fill_null(0.0)]
    if "lost_draws" in columns:
        width = estimated.schema["lost_draws"].size  # type: ignore[attr-defined]
        filled.append(pl.col("lost_draws").fill_null(pl.lit([0.0] * width, dtype=estimated.schema["lost_draws"])))
    return joined.with_columns(filled)
