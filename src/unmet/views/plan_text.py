"""A plan in words: the answer, the main numbers, and the rows of its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from unmet.planning.allocate import NEGLIGIBLE_GAP
from unmet.views.page import PageSection, PageTable
from unmet.views.theme import about, about_energy, count, energy, percent, short

if TYPE_CHECKING:
    from unmet.planning.plan import Plan

__all__ = ["headline", "lead", "money", "plan_facts", "plan_sections", "planned_site_rows", "site_heads"]

MAX_ROWS = 60  # sites in the table of a page


def headline(plan: Plan) -> str:
    """The answer in one sentence."""
    share, low, high = plan.recovered_share()
    wanted = plan.target.serve
    if plan.plugs == 0:
        before, _ = plan.served_share()
        return f"No plug is needed: {percent(before, 1)} of demand is served already"
    does = f"{count(plan.plugs, 'plug')} at {count(plan.sites, 'site')} recover{'s' if plan.plugs == 1 else ''}"
    answer = f"{does} {percent(share)} of lost energy, {100 * low:.0f} to {percent(high)}"
    if wanted is not None and not plan.decision.reached:
        _, after = plan.served_share()
        return f"{percent(wanted, 1)} cannot be served: {percent(after, 1)} is the most that fits. {answer}"
    return answer


def lead(plan: Plan) -> str:
    """What the answer is based on."""
    value, span = about_energy(*plan.gain())
    lost = about_energy(
        float(plan.energy.lost_draws.mean()), float(plan.energy.lost_draws.min()), float(plan.energy.lost_draws.max())
    )[0]
    before, after = plan.served_share()
    changes = plan.change.words()
    assumed = f" All of this assumes {changes}." if changes else ""
    return (
        f"That is {value} per week ({span}) out of about {lost} lost with today's plugs. {percent(before, 1)} of "
        f"the energy demanded is served with them, {percent(after, 1)} with the plan. Drivers who found every plug "
        f"taken are replayed at sites with more plugs, {plan.draws} times, each time with another draw of the drivers "
        f"who were turned away; ranges contain the truth with a probability of {percent(plan.interval)}.{assumed}"
    )


def plan_facts(plan: Plan) -> list[tuple[str, str]]:
    """The main numbers, each with its meaning."""
    value, span = about_energy(*plan.gain())
    drivers = _sum(plan, "lost_drivers") - _sum(plan, "lost_drivers_after")
    found: list[tuple[str, str]] = [
        (f"{plan.plugs:,}", f"plugs at {count(plan.sites, 'site')}"),
        (f"{value}", f"recovered per week, {span}"),
        (f"{drivers:,.0f}", "drivers per week no longer turned away"),
    ]
    if plan.cost is not None:
        found.append((money(plan.cost), f"cost, {energy(1000 * plan.gain()[0] / plan.cost)} per week for each 1,000"))
    elif plan.knee is not None:
        found.append((f"{plan.knee:,}", "plugs are the knee: each further plug gains less than the average of these"))
    return found


def _sum(plan: Plan, column: str) -> float:
    return float(plan.tables.sites.filter(~pl.col("is_new"))[column].sum())


def money(value: float) -> str:
    """An amount as text, with at most four significant digits."""
    digits = max(len(f"{abs(value):.0f}") - 4, 0)
    return f"{round(value, -digits):,.0f}".replace("-", "\N{MINUS SIGN}")


def site_heads(plan: Plan) -> list[str]:
    """Column headings of the table of sites."""
    heads = ["Site", "plugs now", "add", "recovers, kWh per week", "in use", "turned away per week"]
    if plan.cost is not None:
        heads += ["cost", "kWh per week for 1,000"]
    if plan.money is not None:
        heads.append("median payback, years")
    return [*heads, "chosen in"]


def planned_site_rows(plan: Plan) -> list[list[Any]]:
    """Rows of the table of sites that get plugs."""
    rows = []
    names = plan.tables.sites["name"].fill_null(plan.tables.sites["site_id"])
    ambiguous = set(names.filter(names.is_duplicated()))
    for row in plan.tables.sites.filter(pl.col("plugs_added") > 0).head(MAX_ROWS).iter_rows(named=True):
        name = str(row["name"] or row["site_id"])
        label = short(f"{name} ({row['site_id']})" if name in ambiguous else name, 46)
        power = "" if row["power_kw"] is None else f" x {row['power_kw']:g} kW"
        use = "" if row["utilisation"] is None else f"{percent(row['utilisation'])} \N{RIGHTWARDS ARROW} "
        cells: list[Any] = [
            label,
            str(row["plugs_now"]) if not row["is_new"] else "new",
            f"+{row['plugs_added']}{power}",
            about(row["gain_kwh"], row["gain_kwh_low"], row["gain_kwh_high"]),
            use + percent(row["utilisation_after"]) if row["utilisation_after"] is not None else "",
            f"{row['lost_drivers']:.1f} \N{RIGHTWARDS ARROW} {row['lost_drivers_after']:.1f}",
        ]
        if plan.cost is not None:
            per = row["gain_kwh_per_cost"]
            cells += [money(row["cost"] or 0.0), "" if per is None else f"{1000 * per:.1f}"]
        if plan.money is not None:
            cells.append(_payback(row))
        rows.append([*cells, percent(row["chosen_share"])])
    return rows


def _payback(row: dict[str, Any]) -> Any:
    if row["payback_years"] is None:
        return "never"
    high = "never" if row["payback_years_high"] is None else f"{row['payback_years_high']:.1f}"
    return f"{row['payback_years']:.1f}", f"{row['payback_years_low']:.1f} to {high}"


def plan_sections(plan: Plan) -> list[PageSection]:
    """Sections below the figures: sites, new sites, years, value, other assumptions, notes and method."""
    rows = planned_site_rows(plan)
    more = plan.sites - len(rows)
    note = (
        "In use: share of the time that plugs are taken, before and after. Turned away: drivers per week who find no "
        "plug and leave. Chosen in: share of the plans made for single draws of the estimate that add plugs at this "
        "site; a low share means that another site may be as good."
        + (f" {more:,} further sites are in plan.csv." if more else "")
    )
    sections = [PageSection("sites", "Site by site", table=PageTable(site_heads(plan), rows, note))]
    if plan.tables.sites["is_new"].any():
        sections.append(_new_sites(plan))
    if len(plan.stages) > 1:
        sections.append(_stages(plan))
    if plan.money is not None and plan.cost is not None:
        sections.append(_worth(plan))
    return [*sections, _sensitivity(plan), _notes(plan), _method(plan)]


def _new_sites(plan: Plan) -> PageSection:
    rows = [
        [row["name"], f"{row['lat']:.4f}, {row['lon']:.4f}", str(row["plugs_added"]), f"{row['attracted_kwh']:,.0f}",
         f"{row['taken_kwh']:,.0f}", f"{row['gain_kwh']:,.0f}"]
        for row in plan.tables.sites.filter(pl.col("is_new")).iter_rows(named=True)
    ]  # fmt: skip
    heads = ["New site", "position", "plugs", "attracts, kWh per week", "taken from neighbours", "recovers"]
    note = "Only the demand that a new site recovers is a gain. Its neighbours already serve what it takes from them."
    return PageSection("new-sites", "New sites", table=PageTable(heads, rows, note))


def _stages(plan: Plan) -> PageSection:
    rows = [
        [str(stage.year), f"{stage.growth:.2f}", str(stage.plugs), f"{stage.lost_kwh:,.0f}", f"{stage.gain_kwh:,.0f}",
         *([] if stage.cost is None else [money(stage.cost)])]
        for stage in plan.stages
    ]  # fmt: skip
    heads = ["Year", "demand, times now", "plugs built so far", "lost per week without them, kWh", "recovered, kWh"]
    heads += [] if plan.stages[0].cost is None else ["cost so far"]
    note = "In every year, plugs go where they recover the most demand of that year, in addition to those built before."
    return PageSection("stages", "Year by year", table=PageTable(heads, rows, note))


def _worth(plan: Plan) -> PageSection:
    earns, cost = plan.money, plan.cost
    if earns is None or cost is None:
        return PageSection("worth", "What it is worth", ["Costs or prices are not known."])
    worth = earns.net_present_value(plan.energy.gain_draws, plan.plugs, cost)
    back = earns.payback_years(plan.energy.gain_draws, plan.plugs, cost)
    low, high = (1 - plan.interval) / 2, (1 + plan.interval) / 2
    ends = pl.Series(worth).quantile(low), pl.Series(worth).quantile(high)
    years = [pl.Series(back).quantile(q, "nearest") for q in (0.5, low, high)]
    texts = ["never" if y is None or y == float("inf") else f"{y:.1f}" for y in years]
    text = (
        f"At {earns.price:g} per kWh, {earns.upkeep:g} upkeep per plug and year, and a discount rate of "
        f"{percent(earns.discount)}, the plan pays back in {texts[0]} years ({texts[1]} to {texts[2]}). Its net "
        f"present value over {earns.years} years is {money(float(worth.mean()))} ({money(ends[0] or 0)} to "
        f"{money(ends[1] or 0)})."
    )
    return PageSection("worth", "What it is worth", [text])


def _sensitivity(plan: Plan) -> PageSection:
    rows = [
        [row["assumption"][:1].upper() + row["assumption"][1:], f"{row['gain_kwh']:,.0f}",
         percent(row["gain_kwh"] / row["best_kwh"], 1) if row["best_kwh"] > 0 else "", str(row["moved"])]
        for row in plan.tables.sensitivity.iter_rows(named=True)
    ]  # fmt: skip
    heads = ["If", "the plan recovers, kWh per week", "share of the best plan", "plugs placed elsewhere"]
    note = "A plan that stays close to the best one under other assumptions is safe, even if its gain is unsure."
    return PageSection("sensitivity", "How sure the choice is", table=PageTable(heads, rows, note))


def _notes(plan: Plan) -> PageSection:
    return PageSection("notes", "Before you decide", items=list(plan.notes))


def _method(plan: Plan) -> PageSection:
    choice = plan.decision.choice
    how = (
        "Returns diminish at every site, so adding plugs one by one where they gain the most is optimal."
        if choice.method == "greedy"
        else "The plan is the best of all combinations of options."
        if choice.gap < NEGLIGIBLE_GAP
        else f"Options were chosen by integer programming, within {100 * choice.gap:.2g} % of the optimum."
    )
    return PageSection(
        "method",
        "How it was made",
        items=[
            "Recorded drivers arrive and stay as recorded. Lost drivers arrive at random times while their site is "
            "full, as many as estimated, and stay and charge like recorded drivers of the same site at that time of "
            "the day. Every number of plugs is tested with the same drivers.",
            "Drivers who find all plugs taken leave. Adding plugs never increases losses.",
            how,
            f"The total comes from a replay of all sites together; it is {plan.energy.interplay:.3f} times the sum "
            "over sites.",
            "Drivers who would come only because there are more plugs are not counted. Experience shows that new plugs "
            "also attract drivers who were never turned away.",
        ],
    )
