"""The sections of a report that other pages do not have: when, what to build, what to expect, data quality, sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import polars.selectors as cs

from unmet import __version__
from unmet.views.figures.lost_week import LOST_WEEK, lost_when
from unmet.views.figures.plan_gain import PLAN_GAIN
from unmet.views.figures.plan_map import PLAN_MAP, plan_has_positions
from unmet.views.harmless import spreadsheet_safe
from unmet.views.lost_tables import TOP_SITES
from unmet.views.page import PageSection, PageTable
from unmet.views.stored import StoredForecast, StoredLost, StoredPlan, StoredRuns
from unmet.views.theme import about, energy, percent, short

__all__ = ["build", "csv_of", "forecast_section", "quality", "sources", "when", "with_download"]

MAX_ROWS = 20  # sites or regions in a table
MAX_FILES = 20  # files that are named
DIGITS = 6  # significant digits of numbers in downloads

QUALITY = {
    "open_sessions": "sessions without an end: set aside",
    "station_missing": "rows without a station: set aside",
    "station_too_long": "rows with a station id of more than 1,000 bytes: set aside",
    "start_missing": "rows without a start: set aside",
    "start_without_time": "rows whose start has no time of day: set aside",
    "start_without_date": "rows whose start has no date: set aside",
    "start_unreadable": "rows whose start cannot be read: set aside",
    "start_in_future": "sessions that start in the future: set aside",
    "start_too_early": "sessions that start before the year 2000: set aside",
    "start_far_away": "sessions that start years away from all others: set aside",
    "day_order_open": "rows whose day and month cannot be told apart: set aside",
    "end_without_time": "rows whose end has no time of day: set aside",
    "end_unreadable": "rows whose end cannot be read: set aside",
    "outside_period": "sessions outside the requested period: set aside",
    "stations_unknown": "sessions at stations that are not in the station table: set aside",
    "end_before_start": "sessions that end before they start: set aside",
    "too_long": "sessions of more than a month: set aside",
    "energy_negative": "sessions with negative energy: set aside",
    "energy_missing": "sessions without an energy: set aside",
    "energy_unreadable": "rows whose energy is not a number: set aside",
    "energy_absurd": "sessions with more energy than a car can take: set aside",
    "power_absurd": "sessions with more energy than fits the time plugged in: set aside",
    "restarts_joined": "sessions joined with the one that the same user had just ended",
    "duplicates": "rows that repeat another: set aside",
    "duplicates_that_differ": "rows that repeat another with other values",
    "ends_cut_short": "sessions cut short, because the next car was already at the plug",
    "zero_energy": "sessions without energy: kept, since a plug was taken",
    "ids_used_twice": "session ids that are used twice",
    "ids_made_up": "missing session ids, replaced by file and line",
    "stations_set_aside": "rows of the station table that cannot be used",
    "station_values_unused": "stations kept without a value that cannot be used, such as their position",
    "shapeless": "rows with more or fewer fields than the header: set aside",
}
"""What the counts of records mean, by their names in `quality` of a summary."""
_FOLDERS = re.compile(r"(?<![\w:/])(?:[\w.~-]*/)+(?=[^/\s]+\.\w)")  # before the name of a file


def csv_of(table: pl.DataFrame) -> str:
    """A table as CSV to embed in a page, safe in a spreadsheet; lists are left out."""
    degrees = [name for name in ("lat", "lon") if name in table.columns]
    plain = table.select(pl.exclude(pl.List, pl.Struct, pl.Array)).with_columns(
        pl.col(degrees).cast(pl.Float64).round(6), (cs.float() - cs.by_name(degrees)).round_sig_figs(DIGITS)
    )
    return spreadsheet_safe(plain).write_csv()


def when(lost: StoredLost) -> list[PageSection]:
    """The section on when demand was lost."""
    when = lost_when(lost)
    return [PageSection("when", "When it was lost", [when], figures=[(LOST_WEEK, lost)])] if when else []


def build(plan: StoredPlan, lost: StoredLost | None = None) -> PageSection:
    """The section on what to build; with lost demand, also which of the worst sites the plan leaves out, and why."""
    summary, chosen = plan.summary, plan.chosen
    gain = summary["gain_kwh_per_week"]
    value, span = about(**gain)
    before, after = (percent(summary[name], 1) for name in ("served_share", "served_share_after"))
    paragraphs = [
        f"{summary['answer']}. That is {value} kWh per week ({span}): {before} of demand is served now, {after} with "
        "the plan." + ("" if summary.get("cost") is None else f" It costs {summary['cost']:,.0f}."),
        *_not_planned(plan, lost),
    ]
    rows = [
        (
            (f"{i}. {short(str(row['label']), 44)}", _reason(row)),
            "new" if row["is_new"] else str(row["plugs_now"]),
            f"+{row['plugs_added']}" + ("" if row["power_kw"] is None else f" x {row['power_kw']:g} kW"),
            about(row["gain_kwh"], row["gain_kwh_low"], row["gain_kwh_high"]),
        )
        for i, row in enumerate(chosen.head(MAX_ROWS).iter_rows(named=True), start=1)
    ]
    more = chosen.height - len(rows)
    note = (
        "Per week: mean of the weeks in which a site was open. Chosen in: share of plans, each made for one draw of "
        "the estimate alone, that add plugs at this site; a low share means that another site may be as good."
        + (f" {more} further sites are in the download." if more else "")
    )
    table = PageTable(
        ("Site", "Plugs now", "Add", "Recovers [kWh per week]"), rows, note, csv=csv_of(chosen), file="plan.csv"
    )
    shown: Any = plan  # has the attributes that figures of a plan read
    figures = [(PLAN_MAP, plan)] if plan_has_positions(shown) else []
    return PageSection("plan", "What to build", paragraphs, table=table, figures=[*figures, (PLAN_GAIN, plan)])


def _not_planned(plan: StoredPlan, lost: StoredLost | None) -> list[str]:
    """A sentence on the worst sites that may be closed, because a reader would look for them in the plan."""
    if lost is None:
        return []
    worst = lost.ranked_sites().filter(pl.col("lost_kwh") > 0).head(TOP_SITES)
    closed = worst.join(plan.tables.sites, on="site_id", how="anti", maintain_order="left")["label"].to_list()
    if not closed:
        return []
    subject = "It" if len(closed) == 1 else "They"
    reason = f"{subject} had no sessions at the end of the records, and may be closed."
    return [f"Not part of the plan: {_listed(closed)}. {reason}"]


def _listed(names: Sequence[str]) -> str:
    """Names as text, such as "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _reason(row: dict[str, Any]) -> str:
    now, after = row["lost_drivers"], row["lost_drivers_after"]
    sure = f"chosen in {percent(row['chosen_share'])} of plans"
    if row["is_new"]:
        return f"No site is near: it recovers {row['gain_drivers']:.1f} drivers per week; {sure}"
    use = "" if row["utilisation"] is None else f"plugs are taken {percent(row['utilisation'])} of the time; "
    return f"Turns away {now:.1f} drivers per week now, {max(after, 0.0):.1f} with the plan; {use}{sure}"


def forecast_section(forecast: StoredForecast, places: Mapping[str, str] | None = None) -> PageSection:
    """The section on the forecast; `places` say where regions are."""
    from unmet.views.figures.forecast_fan import FORECAST_FAN
    from unmet.views.model_report import worse_first, worse_sentence

    worse = [str(name) for name in forecast.summary.get("worse_than_table") or ()]
    totals, zone = worse_first(forecast.totals(), worse), forecast.model.time_zone_
    hours = forecast.forecast["ds"].n_unique()
    first = forecast.forecast["ds"].dt.convert_time_zone(zone).sort()[0]
    peak = totals["peak"].dt.convert_time_zone(zone)
    rows = [
        (
            _region(row["unique_id"], places or {}, worse),
            f"{row['kwh']:,.0f}",
            f"{row['peak_kwh']:,.0f}",
            f"{at:%a %d %b, %H:%M}",
        )
        for row, at in zip(totals.head(MAX_ROWS).iter_rows(named=True), peak, strict=False)
    ]
    summary = forecast.summary
    span = ""
    if "low_kwh" in summary and "high_kwh" in summary:
        span = f" ({energy(summary['low_kwh'])} to {energy(summary['high_kwh'])})"
    text = (
        f"{energy(float(totals['kwh'].sum()))}{span} are expected in the {hours} hours from {first.day} "
        f"{first:%B %Y, %H:%M} local time"
        + (", including demand that full stations would turn away." if forecast.model.forecasts_true else ".")
    )
    table = PageTable(
        ("Region", "Expected [kWh]", "Peak hour [kWh]", "Peak at, local time"), rows, "", csv=csv_of(totals),
        file="forecast.csv",
    )  # fmt: skip
    paragraphs = [text, *([worse_sentence(worse)] if worse else [])]
    return PageSection("forecast", "What to expect", paragraphs, table=table, figures=[(FORECAST_FAN, forecast)])


def _region(name: str, places: Mapping[str, str], worse: Sequence[str]) -> tuple[str, str]:
    """A region with a place in it, and whether the model failed there."""
    from unmet.views.model_report import TABLE_BETTER

    place = [places[name]] if name in places else []
    return str(name), "; ".join([*place, *([TABLE_BETTER] if name in worse else [])])


def quality(lost: StoredLost) -> PageSection:
    """The section on data quality: how many rows were used or set aside, and why."""
    records = lost.records
    if not records:
        return PageSection("quality", "Data quality", ["The records were read by an earlier run, from a panel."])
    read, kept, aside = (records[name] for name in ("rows_in", "rows_kept", "rows_set_aside"))
    share = f" ({percent(aside / read, 1)})" if read and aside else ""
    paragraphs = [f"Of {read:,} rows, {kept:,} were used and {aside:,} set aside{share}. No row is dropped silently."]
    rows = [
        (QUALITY.get(name, name.replace("_", " ")), f"{number:,}")
        for name, number in sorted(records.get("quality", {}).items(), key=lambda item: -item[1])
        if name != "stations"
    ]
    rejected = lost.rejected
    csv = "" if rejected is None else csv_of(_without_folders(rejected))
    note = "" if rejected is None else "The download lists rows that were set aside, with file, line, value and reason."
    table = PageTable(("What", "Number"), rows, note, csv=csv, file="rejected.csv") if rows else None
    notes = [_without_paths(str(note), records.get("formats", ())) for note in records["record_notes"]]
    return PageSection("quality", "Data quality", paragraphs, table=table, items=notes)


def _without_paths(note: str, files: Iterable[str]) -> str:
    """A note in which files are named without their folders: a report is for others to read."""
    for folder in {str(Path(file).parent) for file in files} - {"."}:
        note = note.replace(f"{folder}/", "")
    return _FOLDERS.sub("", note)


def _without_folders(rejected: pl.DataFrame) -> pl.DataFrame:
    """The table without the folders of the files: a report is for others to read."""
    if "file" not in rejected.columns:
        return rejected
    return rejected.with_columns(pl.col("file").str.split("/").list.last())


def sources(runs: StoredRuns) -> PageSection:
    """The section on the runs that the report was made from."""
    titles = {"lost": "lost demand", "plan": "plan", "forecast": "forecast"}
    rows = [
        (
            titles[run.kind],
            run.folder.resolve().name,
            str(run.summary.get("seed", "")),
            str(run.summary.get("version", "")),
            run.digest,
        )
        for run in runs.runs
    ]
    heads = ("Run", "Folder", "Seed", "Version", "SHA-256")
    items = [*_lost_source(runs.lost)] if runs.lost else []
    note = "SHA-256: first digits of the checksum of the run's summary.json."
    return PageSection(
        "provenance", "What it was made from", table=PageTable(heads, rows, note, file="runs.csv"), items=items
    )


def _lost_source(lost: StoredLost) -> list[str]:
    records, summary = lost.records, lost.summary
    items = []
    if records.get("formats"):
        names = [f"{Path(name).name} ({form})" for name, form in records["formats"].items()]
        more = f" and {len(names) - MAX_FILES:,} more" if len(names) > MAX_FILES else ""
        items.append(f"Files: {', '.join(names[:MAX_FILES])}{more}.")
    given = summary.get("given") or {}
    assumed = "".join(f", {name} set to {value:g}" for name, value in given.items() if value is not None)
    charge = "charge to 80 %" if summary.get("energies") == "to-80" else "charge as recorded ones do"
    items.append(
        f"Estimate: {summary['draws']} draws, seed {summary['seed']}, {percent(lost.interval)} ranges, lost drivers "
        f"{charge}{assumed}; local time is {lost.time_zone}. This page: unmet {__version__}."
    )
    return items


def with_download(section: PageSection, table: pl.DataFrame, file: str) -> PageSection:
    """The section with a download of its whole table."""
    if section.table is None:
        return section
    return replace(section, table=replace(section.table, csv=csv_of(table), file=file))
