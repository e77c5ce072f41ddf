"""Hidden drivers: posterior draws of the drivers lost in every hour in which a site was full, as planning reads them.

They come from a fitted `LostDemand`, or from a run folder of `unmet recover`, which holds them in
`lost_draws.parquet` and the panel in the folder `panel`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unmet.arrays import Floats, Integers
from unmet.demand.calendar import hours_between
from unmet.demand.panel import Panel
from unmet.demand.stored import PANEL_FOLDER
from unmet.errors import InputError
from unmet.estimation.clock import BINS_AN_HOUR
from unmet.estimation.lost_demand import LostDemand
from unmet.estimation.rates import response_at_full
from unmet.memory import require_bytes
from unmet.parquet_files import parquet_rows, parquet_schema, read_parquet
from unmet.runs import available_cores
from unmet.tables import UTC

__all__ = ["DRAWS_FILE", "Hidden", "hidden_drivers", "read_hidden", "write_hidden"]

Counts = NDArray[np.uint16]

DRAWS_FILE = "lost_draws.parquet"
"""The draws of lost drivers that `unmet recover` stores beside the panel, for plans."""
MAX_STORED = 2_000_000_000
"""Highest number of values (full hours x draws) that a run stores; a larger network stores fewer draws."""
MIN_DRAWS = 20
BYTES_PER_DRAW = 8  # memory per full hour and draw: 2 bytes stored, the rest while draws are read and written


@dataclass(frozen=True, slots=True)
class Hidden:
    """Lost drivers by full site-hour, sorted by site and hour."""

    site: Integers  # (rows,), row of the site in the panel
    hour: Integers  # (rows,), hours since the start of the panel
    drivers: Counts  # (draws, rows)
    kwh: Floats  # (rows,), mean energy of a lost driver in that hour
    response: Floats  # (sites,), arrival rate at a full site relative to an empty one

    @property
    def draws(self) -> int:
        """Number of draws."""
        return len(self.drivers)

    def rows_of(self, site: int) -> slice:
        """The rows of a site."""
        first, last = np.searchsorted(self.site, [site, site + 1])
        return slice(int(first), int(last))

    def scaled(self, factor: Floats | float, rng: np.random.Generator) -> Hidden:
        """Multiply lost drivers by a factor, (sites,) or one for all; numbers are rounded at random to integers."""
        each = np.broadcast_to(np.asarray(factor, float), self.response.shape)[self.site]
        mean = self.drivers * each
        whole = np.floor(mean)
        drivers = whole + (rng.random(mean.shape) < mean - whole)
        return Hidden(self.site, self.hour, drivers.astype(np.uint16), self.kwh, self.response)


def hidden_drivers(lost: LostDemand) -> Hidden:
    """Draws of the lost drivers of a fitted estimator."""
    given, drivers = lost.ingredients_, lost.recovered_.drivers
    _require_memory(len(given.rows.site), given.common.draws)
    rows, of_station, share = given.rows, given.network.site_of_station, given.station_weights()
    weight = np.bincount(of_station, share, minlength=given.network.sites)
    session_kwh = np.stack(
        [np.bincount(of_station, share * block, minlength=len(weight)) for block in lost.session_kwh_.T], axis=1
    )
    hour_of_day = given.network.clock.week[rows.hour * BINS_AN_HOUR] // BINS_AN_HOUR % 24
    kwh = (session_kwh / weight[:, None])[rows.site, hour_of_day * session_kwh.shape[1] // 24]
    response = response_at_full(lost.rates_, given.network.capacity)
    drivers = _redrawn(lost) if drivers is None else drivers
    return Hidden(rows.site, rows.hour, drivers.T, kwh, response)


def _redrawn(lost: LostDemand) -> Counts:
    """The draws of an estimator that did not keep them (a large network), recomputed site by site, (rows, draws)."""
    given = lost.ingredients_
    drivers = np.zeros((len(given.rows.site), given.common.draws), np.uint16)

    def of_site(site: int) -> None:
        part = given.rows_of(site)
        if part.stop > part.start:
            drivers[part] = sum(arrivals for arrivals, _ in given.draw(site)[2])

    with ThreadPoolExecutor(available_cores()) as pool:
        list(pool.map(of_site, range(given.network.sites)))
    return drivers


def _require_memory(full_hours: int, draws: int) -> None:
    """Refuse draws that do not fit into memory."""
    require_bytes(
        full_hours * draws * BYTES_PER_DRAW,
        f"A plan from {draws:,} draws of {full_hours:,} full hours",
        "plan from fewer draws (`unmet recover --draws`), or from the records of a shorter period or a smaller area",
    )


def write_hidden(hidden: Hidden, panel: Panel, folder: Path) -> None:
    """Write the draws of a network beside its panel."""
    rows = max(len(hidden.site), 1)
    stored = min(hidden.draws, max(MAX_STORED // rows, MIN_DRAWS))
    times = hours_between(*panel.period)
    drivers = np.ascontiguousarray(hidden.drivers[:stored].T)
    pl.DataFrame(
        {
            "site_id": panel.sites["site_id"].gather(hidden.site),
            "ds": times.gather(hidden.hour),
            "kwh": hidden.kwh,
            "response": hidden.response[hidden.site],
            "drivers": pl.Series(drivers, dtype=pl.Array(pl.UInt16, stored)),
        }
    ).write_parquet(folder / DRAWS_FILE)


def read_hidden(panel: Panel, folder: Path) -> Hidden:
    """Read the draws that `unmet recover` wrote.

    Raises:
        InputError: the file is damaged, or does not belong to the panel.
    """
    path = folder / DRAWS_FILE
    remedy = f"run `unmet recover` again with --overwrite, or plan from the panel ({folder / PANEL_FOLDER})"
    try:
        schema = parquet_schema(path)
        if isinstance(dtype := schema.get("drivers"), pl.Array):
            _require_memory(parquet_rows(path), dtype.size)
        table = read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"Cannot read {path} ({str(error).splitlines()[0][:200]}): {remedy}.") from None
    if missing := {"site_id", "ds", "kwh", "response", "drivers"} - set(table.columns):
        raise InputError(f"{path} has no column {sorted(missing)[0]}: {remedy}.")
    if not isinstance(table.schema["drivers"], pl.Array) or table.schema["ds"] != UTC:
        raise InputError(f"{path} has columns of the wrong type: {remedy}.")
    if not set(table["site_id"].unique()) <= set(panel.sites["site_id"]):
        raise InputError(f"{path} has sites that are not in the panel beside it: {remedy}.")
    site_rows = pl.Series(np.arange(panel.sites.height))
    site = table["site_id"].replace_strict(panel.sites["site_id"], site_rows, return_dtype=pl.Int64).to_numpy()
    hour = (table["ds"] - panel.period[0]).dt.total_hours().to_numpy()
    response = np.ones(panel.sites.height)
    response[site] = table["response"].to_numpy()
    width = table.schema["drivers"].size
    drivers = table["drivers"].to_numpy().reshape(-1, width).T if table.height else np.zeros((width, 0), np.uint16)
    return Hidden(site, hour, np.ascontiguousarray(drivers), table["kwh"].to_numpy(), response)
