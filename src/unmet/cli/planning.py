"""The command that plans where to add plugs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unmet.cli.option_groups import with_options
from unmet.cli.options import Energy, Json, Overwrite, SpillOption, WaitingOption, share_option
from unmet.cli.records import panel_folder, record_options
from unmet.errors import InputError

if TYPE_CHECKING:
    from unmet.demand.from_records import PanelChoices

__all__ = ["plan"]

PlanTables = Annotated[
    str | None,
    typer.Option("--tables", metavar="FORMATS", help="Formats of all tables: csv, xlsx. Parquet is always written. "
                 "[csv,xlsx]"),
]  # fmt: skip


def cost_options(
    plug_cost: Annotated[float | None, typer.Option(help="Cost of one more plug.")] = None,
    site_cost: Annotated[float, typer.Option(help="One-off cost of each site that gets plugs.")] = 0.0,
    costs: Annotated[
        Path | None,
        typer.Option(help="Table of costs and limits: site_id, power_kw, plug_cost, site_cost, max_plugs, grid_kw."),
    ] = None,
    price: Annotated[float | None, typer.Option(help="Earnings per kWh, for payback and net present value.")] = None,
    upkeep: Annotated[float, typer.Option(help="Cost per plug and year.")] = 0.0,
    years: Annotated[int, typer.Option(help="Number of years with earnings.")] = 10,
    discount: Annotated[float, typer.Option(help="Discount rate per year.")] = 0.05,
) -> dict[str, Any]:
    """Costs and earnings, as keyword arguments of `unmet.planning.plan.plan`."""
    return {
        "plug_cost": plug_cost, "site_cost": site_cost, "costs": costs, "price": price, "upkeep": upkeep,
        "years": years, "discount": discount,
    }  # fmt: skip


def what_if_options(
    growth: Annotated[float, typer.Option(help="Growth of demand per year, such as 0.2.")] = 0.0,
    horizon: Annotated[int, typer.Option(help="Years to plan for; plugs are added year by year.")] = 1,
    more_cars: Annotated[float, typer.Option(help="What if demand were this many times as large?")] = 1.0,
    stay_limit: Annotated[float | None, typer.Option(help="What if stays were limited to this many hours?")] = None,
    idle_fee: Annotated[float, typer.Option(help="What if a fee ended this share of idle time, such as 0.5?")] = 0.0,
    closed: Annotated[list[str] | None, typer.Option(help="What if this station closed? May be repeated.")] = None,
    competitor: Annotated[
        list[str] | None, typer.Option(metavar="LAT,LON", help="What if a competitor opened here? May be repeated.")
    ] = None,
) -> dict[str, Any]:
    """Changes to demand and stations, as keyword arguments of `unmet.planning.plan.plan`."""
    return {
        "growth": growth, "horizon": horizon, "more_cars": more_cars, "stay_hours": stay_limit, "idle_cut": idle_fee,
        "closed": tuple(closed or ()), "competitors": tuple(_position(text) for text in competitor or ()),
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class EstimateOptions:
    """How lost demand is estimated, unless a folder with an estimate is given."""

    draws: int
    interval: float | None
    seed: int | None
    waiting: str
    spill: str
    energy: str

    @property
    def has_assumptions(self) -> bool:
        """Whether any assumption differs from its default in `estimate_options`."""
        return (self.waiting, self.spill, self.energy) != ("auto", "auto", "seen")


def estimate_options(
    draws: Annotated[int, typer.Option(help="Number of posterior draws, if lost demand is estimated here.")] = 200,
    interval: Annotated[
        float | None, typer.Option(help="Probability that an interval contains the truth. [0.9]")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of every random choice. [that of the run, else 1]")
    ] = None,
    waiting: WaitingOption = "auto",
    spill: SpillOption = "auto",
    energy: Energy = "seen",
) -> EstimateOptions:
    """How lost demand is estimated."""
    if interval is not None and not 0 < interval < 1:
        raise InputError(f"An interval of {interval:g} makes no sense: give one between 0 and 1, such as 0.9.")
    return EstimateOptions(draws, interval, seed, waiting, spill, energy)


@with_options(record_options, cost_options, what_if_options, estimate_options)
def plan(
    choices: PanelChoices,
    costs: dict[str, Any],
    what_if: dict[str, Any],
    estimate: EstimateOptions,
    out: Annotated[Path, typer.Option(help="Output folder.")],
    plugs: Annotated[int | None, typer.Option(help="Plugs to add.")] = None,
    budget: Annotated[float | None, typer.Option(help="Money to spend; needs --plug-cost or --costs.")] = None,
    serve: Annotated[float | None, typer.Option(help="Share of the demanded energy to serve, such as 0.95.")] = None,
    each_site: Annotated[bool, typer.Option("--each-site", help="Every site must reach --serve.")] = False,
    power: Annotated[
        list[float] | None,
        typer.Option(help="Power of new plugs [kW]; repeat it to choose among several. [as at the site]"),
    ] = None,
    max_per_site: Annotated[int | None, typer.Option(help="Maximum number of new plugs per site.")] = None,
    candidates: Annotated[Path | None, typer.Option(help="Positions of new sites: name, lat, lon, max_plugs.")] = None,
    propose: Annotated[int, typer.Option(help="New sites to propose where demand is lost and no site is near.")] = 0,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Number of threads; the plan does not depend on it.")
    ] = None,
    tables: PlanTables = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Plan where to add plugs: how many, at which sites, what they gain and cost, with intervals.

    FILES is a folder that `unmet recover` or `unmet panel` wrote, or session records.
    """
    from unmet.planning.plan import plan as make_plan
    from unmet.planning.target import Target
    from unmet.runs import run_folder
    from unmet.views.plan import print_plan, write_plan
    from unmet.views.table_files import parse_formats
    from unmet.views.terminal import next_step, progress

    Target(plugs, budget, serve, each_site).check(costs["plug_cost"] is not None or costs["costs"] is not None)
    formats = parse_formats(tables)
    with run_folder(out, overwrite=overwrite) as folder:
        source = _source(choices, estimate)
        with progress("Planning"):
            result = make_plan(
                source, plugs=plugs, budget=budget, serve=serve, each_site=each_site, powers=tuple(power or ()),
                max_per_site=max_per_site, candidates=candidates, propose=propose, workers=workers,
                interval=estimate.interval, seed=estimate.seed, **costs, **what_if,
            )  # fmt: skip
        with progress("Writing tables and figures"):
            summary = write_plan(result, folder, formats)
    print_plan(result, summary, out, as_json=as_json)
    # A report on the plan also shows the panel or the lost demand that it was made from, if that is a run.
    run = next((f"{path} " for path in choices.files if (path / "summary.json").is_file()), "")
    next_step(f"`unmet report {run}{out}` writes a report to share; `unmet serve {run}{out}` opens it in a browser.")


def _source(choices: PanelChoices, estimate: EstimateOptions) -> Any:
    """The folder of a recovered run, or an estimator fitted to a panel or to records."""
    from unmet.demand.from_records import PanelChoices, panel_from_records
    from unmet.demand.stored import load_panel
    from unmet.estimation.lost_demand import LostDemand
    from unmet.planning.hidden import DRAWS_FILE
    from unmet.views.terminal import progress, report_set_aside

    recovered = [path for path in choices.files if (path / DRAWS_FILE).is_file()]
    if recovered:
        if len(choices.files) > 1 or replace(choices, files=()) != PanelChoices() or estimate.has_assumptions:
            raise InputError(
                f"{recovered[0]} is already estimated: give it alone, without options for reading or estimating, or "
                "plan from the records."
            )
        return recovered[0]
    folder = panel_folder(choices)
    estimator = LostDemand(
        waiting=share_option("--waiting", estimate.waiting),
        spill=share_option("--spill", estimate.spill),
        energies=estimate.energy,
        draws=estimate.draws,
        interval=estimate.interval or 0.9,
        seed=1 if estimate.seed is None else estimate.seed,
    )
    with progress("Reading records", parts="files") as show:
        if folder is None:
            panel, rejected, _ = panel_from_records(choices, lambda done, _: show(done))
        else:
            panel, rejected = load_panel(folder), None
    if rejected is not None:
        report_set_aside(rejected, listed="by `unmet panel`")
    with progress("Estimating lost demand"):
        return estimator.fit(panel)


def _position(text: str) -> tuple[float, float]:
    """Latitude and longitude in a text such as 56.46,-2.97."""
    try:
        lat, lon = (float(part) for part in text.split(","))
    except ValueError:
        raise InputError(f"--competitor {text!r} makes no sense: give LAT,LON, such as 56.46,-2.97.") from None
    return lat, lon
