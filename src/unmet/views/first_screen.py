"""The first screen of a page on lost demand: how much, where, how far to trust it, and what it depends on."""

from __future__ import annotations

import datetime as dt
from typing import Any

import polars as pl

from unmet.views.lost_tables import TOP_SITES, LostTables
from unmet.views.page import PageBar, PageSection, PageTable
from unmet.views.theme import about, about_energy, count, energy, percent, short

__all__ = ["first_screen", "method", "site_rows"]

HOUR = dt.timedelta(hours=1)
CLOSE, FAIR = 0.1, 0.25  # distance of the self-check from 1 that is called close, or fair
NEGLIGIBLE = 0.005  # shares below this round to 0 %
MARGIN, SCALE = 1.02, 1.6  # bars end at MARGIN times the largest mark, but at most at SCALE times the end of the range
UNRELIABLE = 2.0  # self-checks beyond this factor, chance excluded, keep the number out of the headline
MIN_SESSIONS = 50  # sessions below which the headline has no number
MIN_DRIVERS = 0.5  # with fewer lost drivers than this, nothing counts as lost
MIN_ELSEWHERE_KWH = 0.5  # less energy than this at competitors is not mentioned


def first_screen(report: LostTables) -> dict[str, Any]:
    """The arguments of `render_page` for the first screen."""
    summary = report.summary
    lost_kwh, lost = summary["lost_kwh"], summary["lost_arrivals"]
    value, span = about_energy(**lost_kwh)
    drivers, drivers_span = about(**lost)
    first, last = report.period
    share, share_low, share_high = report.lost_share()
    headline = (
        f"About {_unbroken(value)} of charging demand was lost ({_unbroken(span)}): {_unbroken(f'{drivers} drivers')} "
        f"who found no free plug ({_unbroken(drivers_span)})"
        if lost["mean"] >= MIN_DRIVERS
        else "Hardly any charging demand was lost"
        if lost["high"] >= MIN_DRIVERS
        else f"No charging demand was lost: no site was ever full{_busiest(report)}"
    )
    return {
        "warning": report.warning(),
        "headline": _unreliable(report) or headline,
        "lead": (
            f"{count(summary['stations'], 'station')} at {count(summary['sites'], 'site')}, {_date(first)} to "
            f"{_date(last - HOUR)}. While every plug of a site is taken, its records show no arrivals. This page "
            "estimates how many drivers came then from how many came to the same site at similar times while a plug "
            "was free. "
            f"{_ranges(report)}{_elsewhere(report)}"
        ),
        "facts": (
            (energy(summary["seen_kwh"]), f"recorded, in {summary['seen_arrivals']:,} sessions"),
            (value, f"lost, {span}"),
            (drivers, f"lost {'driver' if drivers == '1' else 'drivers'}, {drivers_span}"),
            (percent(share, 1), f"of all demand lost, {100 * share_low:.1f} to {100 * share_high:.1f} %"),
        ),
        "before": [_sites(report), _trust(report), *_sensitivity(report), *_notes(report)],
    }


def _unreliable(report: LostTables) -> str:
    """A headline for records that do not support a number; empty if they do."""
    summary, check = report.summary, report.summary["self_check"]
    if summary["seen_arrivals"] < MIN_SESSIONS and summary["lost_arrivals"]["high"] >= MIN_DRIVERS:
        return f"{count(summary['seen_arrivals'], 'session')}: too few to say what was lost"
    if check and (check["low"] > UNRELIABLE or check["high"] < 1 / UNRELIABLE):
        times = f"{check['ratio']:.1f} times" if check["ratio"] > 1 else f"only {percent(check['ratio'])} of"
        return (
            f"These records do not support an estimate of lost demand: checked against them, the method finds "
            f"{times} the drivers who came"
        )
    return ""


def _ranges(report: LostTables) -> str:
    if _unreliable(report):
        return "The numbers below are shown for completeness; do not rely on them."
    return f"Ranges contain the truth with a probability of {percent(report.interval)}."


def _busiest(report: LostTables) -> str:
    """How close the busiest site came to being full, as the end of a sentence."""
    busiest = report.summary.get("busiest")
    return f" (the busiest had {busiest['taken']} of {busiest['capacity']} plugs taken at most)" if busiest else ""


def _elsewhere(report: LostTables) -> str:
    """A sentence on the demand that competitors served, if there are any."""
    if report.elsewhere_kwh < MIN_ELSEWHERE_KWH:
        return ""
    return (
        f" Another {energy(report.elsewhere_kwh)} is expected to have gone to other operators, given the market share; "
        "it is not part of the loss below."
    )


def site_rows(report: LostTables, max_rows: int = TOP_SITES) -> list[dict[str, Any]]:
    """Rows of the table of sites that lost the most."""
    table = report.ranked_sites().filter(pl.col("lost_arrivals") >= MIN_DRIVERS).head(max_rows)
    return [
        {
            "name": short(str(row["label"]), 44),
            "stations": row["stations"],
            "kwh": about(row["lost_kwh"], row["lost_kwh_low"], row["lost_kwh_high"]),
            "drivers": about(row["lost_arrivals"], row["lost_arrivals_low"], row["lost_arrivals_high"]),
            "full": percent(row["full_share"], 1 if row["full_share"] < 0.1 else 0),
            "capacity": str(row["capacity"]),
        }
        for row in table.iter_rows(named=True)
    ]


def _sites(report: LostTables) -> PageSection:
    rows = site_rows(report)
    if not rows:
        return PageSection("sites", "Where the most was lost", ["As far as the records show, no site lost a driver."])
    number = ("one", "two", "three", "four", "five")[len(rows) - 1]  # `TOP_SITES` at most
    heading = f"The {number} sites that lost the most" if len(rows) > 1 else "The site that lost the most"
    return PageSection(
        "sites",
        heading,
        table=PageTable(
            ("Site", "Lost energy [kWh]", "Lost drivers", "Time full", "Cars at once"),
            [
                (
                    (f"{i}. {row['name']}", f"{row['stations']} stations" if row["stations"] > 1 else ""),
                    row["kwh"],
                    row["drivers"],
                    row["full"],
                    row["capacity"],
                )
                for i, row in enumerate(rows, start=1)
            ],
            "Stations side by side are one site. Time full: share of the time in which no plug was free. Cars at once: "
            "how many the site can charge, which may be fewer than its connectors. All sites are in sites.csv and "
            "stations.csv.",
        ),
    )


def _trust(report: LostTables) -> PageSection:
    if report.summary["lost_arrivals"]["high"] < MIN_DRIVERS:
        text = (
            "If sites charge fewer cars at once than assumed, some may have been full after all: see capacity in "
            "sites.csv."
        )
        return PageSection("trust", "How far to trust it", [text], half=True)
    return PageSection("trust", "How far to trust it", [_checked(report), _prior(report)], half=True)


def _checked(report: LostTables) -> str:
    """Sentences on the self-check: the estimate divided by the truth, where the records show it."""
    check = report.summary["self_check"]
    if check is None:
        return (
            "The estimate could not be checked against these records: too few drivers came while exactly one plug was "
            "free. Rely on the range rather than on the number."
        )
    ratio, low, high = check["ratio"], check["low"], check["high"]
    off = abs(ratio - 1)
    verdict = (
        "That is close." if off < CLOSE else
        "That is off, and the range is wider because of it." if report.far_off else
        "That is within chance." if low <= 1 <= high else
        "That is fair." if off < FAIR else
        "That is off, and the range is wider because of it."
    )  # fmt: skip
    return (
        f"Checked against your own records: {ratio:.2f} ({low:.2f} to {high:.2f}), where 1.00 is perfect. For this, "
        "the last free plug of every site is hidden, the drivers who used it are estimated, and the estimate is "
        f"divided by the number recorded. {verdict}"
    )


def _prior(report: LostTables) -> str:
    """Sentences on what the prior from other towns adds to the estimate.

    `from_prior` is the share of lost drivers whose rate is borrowed, `prior_shift` the relative change of the estimate,
    and `prior_interval` the share of its uncertainty that is due to the prior.
    """
    summary = report.summary
    share, shift, interval = (summary[name] for name in ("from_prior", "prior_shift", "prior_interval"))
    if max(share, abs(shift), interval) < NEGLIGIBLE:
        return "Hardly anything in this estimate comes from other towns: your own records are enough."
    moved = "hardly changes this estimate" if abs(shift) < NEGLIGIBLE else (
        f"makes this estimate {percent(abs(shift))} {'lower' if shift < 0 else 'higher'}"
    )  # fmt: skip
    borrowed = "" if share < NEGLIGIBLE else (
        f" For {percent(share)} of the lost drivers, the arrival rate at a nearly full site is borrowed from other "
        "sites and towns, because the records of their own site do not show it."
    )  # fmt: skip
    return (
        "The method was tested in towns where the truth is known. What was learned there "
        f"{moved} and accounts for {percent(interval)} of its uncertainty.{borrowed}"
    )


def _sensitivity(report: LostTables) -> list[PageSection]:
    """The estimate under other assumptions, if anything was lost."""
    table, total = report.sensitivity, report.summary["lost_kwh"]
    highest = max([total["high"], *table["lost_kwh"]], default=0.0)
    if highest <= 0 or report.summary["lost_arrivals"]["high"] < MIN_DRIVERS:
        return []
    scale = min(highest * MARGIN, total["high"] * SCALE) if total["high"] > 0 else highest * MARGIN
    band = 100 * total["low"] / scale, 100 * total["high"] / scale
    base = float(table["lost_kwh"][0])
    rows = [
        (
            _capital(str(name)),
            (energy(kwh), "" if i == 0 or base <= 0 else _change(kwh / base)),
            PageBar(100 * kwh / scale, *band),
        )
        for i, (name, kwh) in enumerate(table.select("assumption", "lost_kwh").iter_rows())
    ]
    note = (
        f"Marks show the energy lost under each assumption, from 0 to {energy(scale)}; the band is the "
        f"{percent(report.interval)} range of the estimate."
    )
    return [
        PageSection(
            "sensitivity",
            "Under other assumptions",
            table=PageTable(("Assumption", "Lost energy", "Compared"), rows, note),
            half=True,
            tall=True,
        )
    ]


def _notes(report: LostTables) -> list[PageSection]:
    notes = report.notes()
    return [PageSection("notes", "Good to know", items=notes, half=True)] if notes else []


def method(report: LostTables) -> PageSection:
    """The section on the method."""
    summary = report.summary
    kept = ", ".join(_largest_rank(summary["components"])) or "one weekly profile for all sites"
    energies = (
        "as much energy as those recorded there at that time of day"
        if report.summary.get("energies", "seen") == "seen"
        else "the energy that brings the battery to 80 %"
    )
    return PageSection(
        "method",
        "How it is estimated",
        items=[
            "The starts and ends of sessions show when each site was full; stations side by side count as one site.",
            "While a plug is free, every driver who comes is recorded, so these times show how many drivers come to a "
            "site by hour of the week, by day, and by the number of cars already there.",
            "The same rate is assumed to hold while the site is full. Of the patterns that were tried, those that best "
            f"predict held-out parts of the records were kept: {kept}.",
            f"Drivers who wait until they are served ({percent(summary['waiting'])} of those who find a site full) or "
            f"charge at another site nearby ({percent(summary['spill'])}) are in the records, and do not "
            "count as lost.",
            f"A lost driver would have taken {energies}; ranges come from {summary['draws']} random draws of "
            "everything that is uncertain.",
        ],
    )


def _largest_rank(components: list[str]) -> list[str]:
    """The components without smaller numbers of weekly profiles, which the largest includes."""
    profiles = [name for name in components if name.endswith("weekly profiles")]
    return [*profiles[-1:], *(name for name in components if name not in profiles)]


def _unbroken(text: str) -> str:
    """Text that stays on one line."""
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def _date(day: dt.datetime) -> str:
    return f"{day.day} {day:%B %Y}"


def _change(ratio: float) -> str:
    """A ratio to the estimate as text."""
    if abs(ratio - 1) < 0.005:
        return "no change"
    return f"{ratio:.1f} times" if ratio >= 2 else f"{100 * (ratio - 1):+.0f} %".replace("-", "\N{MINUS SIGN}")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
