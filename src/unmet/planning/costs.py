"""Costs of plugs and sites, from options or a table, and the earnings of a plan.

With a price p per kWh, upkeep u per plug and year, and a gain of g kWh per year (g_t in year t),

    payback = cost / (p g - u plugs)      years,
    net present value = sum over years t = 1 ... T of (p g_t - u plugs) / (1 + r)^t - cost,

computed in every draw, so that both have intervals.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from unmet.arrays import Floats
from unmet.errors import InputError
from unmet.tables import Column, Table, check_every_row

__all__ = ["COSTS", "WEEKS_A_YEAR", "Costs", "Money", "given_costs", "read_costs"]


WEEKS_A_YEAR = 365.25 / 7

COSTS = Table(
    "costs",
    (
        Column("site_id", "text", "", "the site; empty: every site without a row of its own", required=False),
        Column("power_kw", "number", "kW", "power of the plugs; empty: any", required=False, minimum=0),
        Column("plug_cost", "number", "money", "cost of one more plug, installed", minimum=0),
        Column("site_cost", "number", "money", "one-off cost of each site that gets plugs", default=0, minimum=0),
        Column(
            "max_plugs",
            "integer",
            "",
            "number of additional plugs that fit",
            required=False,
            aliases=("most_plugs",),
            minimum=0,
        ),
        Column("grid_kw", "number", "kW", "spare power of the grid connection", required=False, minimum=0),
    ),
)


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs of plugs, and limits on their number."""

    plug_cost: float | None = None
    site_cost: float = 0.0
    rows: dict[tuple[str | None, float | None], dict[str, Any]] = field(default_factory=dict)  # by site and power

    @property
    def known(self) -> bool:
        """Whether anything is known about costs."""
        return self.plug_cost is not None or bool(self.rows)

    def of(self, site_id: str, power_kw: float | None, plugs: int) -> float | None:
        """Cost of additional plugs at a site; None if it is not known."""
        row = self._row(site_id, power_kw)
        if row is not None:
            return float(row["plug_cost"]) * plugs + (float(row["site_cost"]) if plugs else 0.0)
        if self.plug_cost is None:
            return None
        return self.plug_cost * plugs + (self.site_cost if plugs else 0.0)

    def limits(self, site_id: str, power_kw: float | None) -> tuple[int | None, float | None]:
        """Number of additional plugs that fit, and spare power [kW]; None where the table gives no value."""
        row = self._row(site_id, power_kw)
        return (None, None) if row is None else (row.get("max_plugs"), row.get("grid_kw"))

    def _row(self, site_id: str, power_kw: float | None) -> dict[str, Any] | None:
        """The most specific row of the table for a site and a power."""
        keys = ((site_id, power_kw), (site_id, None), (None, power_kw), (None, None))
        return next((self.rows[key] for key in keys if key in self.rows), None)


def given_costs(plug_cost: float | None, site_cost: float, table: Any, sites: pl.Series) -> Costs:
    """Costs from two numbers, a table, or both; the numbers then apply where the table has no row."""
    for name, value in (("A plug", plug_cost), ("A site", site_cost)):
        if value is not None and not (np.isfinite(value) and value >= 0):
            raise InputError(f"{name} that costs {value:g} makes no sense: give 0 or more.")
    if site_cost and plug_cost is None and table is None:
        raise InputError("A site cost needs a plug cost: give --plug-cost as well, or a table with --costs.")
    if table is None:
        return Costs(plug_cost, site_cost)
    rows: dict[tuple[str | None, float | None], dict[str, Any]] = {}
    for row in read_costs(table, sites).iter_rows(named=True):
        key = (row.get("site_id") or None, row.get("power_kw"))
        if key in rows:
            which = f"site {key[0] or 'any'}, power {key[1] or 'any'}"
            raise InputError(f"The table of costs has two rows for {which}: leave one of them.")
        rows[key] = row
    return Costs(plug_cost, site_cost, rows)


def read_costs(source: Any, sites: pl.Series) -> pl.DataFrame:
    """Read and check a table of costs; every row must be valid, since each can change the plan.

    Args:
        source: file or frame with the columns of `COSTS`.
        sites: ids of the sites.
    """
    table = check_every_row(source, COSTS)
    if "site_id" in table.columns:
        named = table["site_id"].drop_nulls()
        if unknown := [name for name in named if name and name not in set(sites)]:
            raise InputError(
                f"The table of costs has a site {unknown[0]!r} that is not in the records: use the ids of "
                f"sites.parquet, such as {sites[0]!r}."
            )
    return table


@dataclass(frozen=True, slots=True)
class Money:
    """Earnings from energy."""

    price: float  # margin per additional kWh sold: selling price less purchase price
    upkeep: float = 0.0  # per plug and year
    years: int = 10
    discount: float = 0.05

    def check(self) -> None:
        """Raise InputError for invalid values."""
        if not 0 < self.price < np.inf:
            raise InputError(f"A price of {self.price:g} per kWh makes no sense: give one above 0, such as 0.25.")
        if not 0 <= self.upkeep < np.inf:
            raise InputError(f"Upkeep of {self.upkeep:g} makes no sense: give 0 or more per plug and year.")
        if not self.years >= 1:
            raise InputError(f"{self.years} years make no sense: give at least 1.")
        if not -1 < self.discount < np.inf:
            raise InputError(f"A discount rate of {self.discount:g} makes no sense: give one above -1, such as 0.05.")

    def payback_years(self, kwh_per_week: Floats, plugs: int, cost: float) -> Floats:
        """Years until earnings cover the cost, (draws,); infinite if they never do."""
        earned = self.price * kwh_per_week * WEEKS_A_YEAR - self.upkeep * plugs
        return np.asarray(np.divide(cost, earned, out=np.full_like(earned, np.inf), where=earned > 0))

    def net_present_value(self, kwh_per_week: Floats, plugs: int, cost: float) -> Floats:
        """Present value of the earnings of all years, less the cost, (draws,).

        Args:
            kwh_per_week: additional energy, (draws,), or (draws, years) if it changes over the years.
            plugs: plugs that need upkeep.
            cost: cost of the plan, paid at the start.
        """
        gain = np.asarray(kwh_per_week, float)
        by_year = gain if gain.ndim == 2 else np.repeat(gain[:, None], self.years, axis=1)
        discount_factors = (1 + self.discount) ** -np.arange(1.0, self.years + 1)
        return np.asarray((self.price * by_year * WEEKS_A_YEAR - self.upkeep * plugs) @ discount_factors - cost)
