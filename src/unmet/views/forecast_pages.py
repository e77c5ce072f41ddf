"""A forecast as a page, as a folder of tables and as a summary for the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from unmet import __version__
from unmet.runs import write_json
from unmet.views.figures import FORECAST_FIGURES
from unmet.views.model_report import TABLE_BETTER, ForecastReport, worse_first, worse_sentence
from unmet.views.page import PageTable, render_page
from unmet.views.terminal import print_summary, say
from unmet.views.theme import percent

__all__ = ["print_forecast", "write_forecast"]

MAX_REGIONS = 20  # regions in the table of a page


def _mwh(kwh: float) -> str:
    return f"{kwh / 1000:,.1f}"


def write_forecast(report: ForecastReport, folder: Path) -> dict[str, Any]:
    """Write a forecast into a folder: its tables, the summary, which is returned, and the page."""
    totals, sums = report.totals(), report.sums()
    zone = report.model.time_zone_
    peak = totals.row(0, named=True)
    hours = report.forecast["ds"]
    first, last = hours.sort()[0], hours.sort()[-1]
    summary: dict[str, Any] = {
        "first_hour": f"{first:%Y-%m-%dT%H:%MZ}",
        "last_hour": f"{last:%Y-%m-%dT%H:%MZ}",
        "hours": report.forecast["ds"].n_unique(),
        "regions": totals.height,
        "expected_kwh": round(float(totals["kwh"].sum()), 1),
        "most_in": peak["unique_id"],
        "most_kwh": round(peak["kwh"], 1),
        "time_zone": zone,
        "forecasts_true": report.model.forecasts_true,
        "worse_than_table": list(report.worse),
        "seed": report.model.seed,
        "version": __version__,
    }
    total = None
    if sums is not None:
        sums.write_parquet(folder / "sums.parquet")
        total = sums.filter(pl.col("unique_id").is_null(), pl.col("day").is_null()).row(0, named=True)
        summary |= {"low_kwh": round(total["low_kwh"], 1), "high_kwh": round(total["high_kwh"], 1)}
    if report.keep_draws and report.drawn is not None:
        report.draws_table().write_parquet(folder / "draws.parquet")
    report.forecast.write_parquet(folder / "forecast.parquet")
    report.past.write_parquet(folder / "past.parquet")
    write_json(folder / "summary.json", summary | {"by_region": totals.select("unique_id", "kwh").to_dicts()})
    local = totals["peak"].dt.convert_time_zone(zone)
    share = percent(report.model.levels[-1] - report.model.levels[0])
    interval = f" ({share} interval: {_mwh(total['low_kwh'])} to {_mwh(total['high_kwh'])} MWh)" if total else ""
    kind = "including drivers whom full stations would turn away" if report.model.forecasts_true else "as recorded"
    page = render_page(
        report,
        FORECAST_FIGURES,
        title="unmet: a forecast",
        headline=f"{summary['expected_kwh'] / 1000:,.1f} MWh is expected in the next "
        f"{_span_of(summary['hours'])}{interval}",
        lead=(
            f"Demand for charging in {totals.height} regions from {first:%d %B %Y, %H:%M} UTC onwards, {kind}. "
            "Expected demand is the mean of all likely outcomes, so it can be added up over hours and regions. "
            + " ".join(report.model.notes_)
        ),
        facts=(
            (f"{summary['expected_kwh'] / 1000:,.1f} MWh", "expected in all regions"),
            (f"{report.past_week_kwh() / 1000:,.1f} MWh", "recorded in the seven days before"),
            (str(peak["unique_id"]), f"is the busiest region, with {peak['kwh'] / 1000:,.1f} MWh"),
            (f"{peak['peak_kwh']:,.0f} kWh", f"expected in its peak hour, {local[0]:%a %d %b, %H:%M} local time"),
        ),
        table=_forecast_table(report, totals, sums),
        warning=worse_sentence(report.worse),
        footer=f"unmet {__version__}, {report.model.title}, seed {report.model.seed}.",
    )
    (folder / "forecast.html").write_text(page, encoding="utf-8")
    return summary


def _span_of(hours: int) -> str:
    return f"{hours // 24} days" if hours % 24 == 0 and hours > 24 else f"{hours} hours"


def _forecast_table(report: ForecastReport, totals: pl.DataFrame, sums: pl.DataFrame | None) -> PageTable:
    """Expected demand by region, with its interval, next to the demand recorded in the week before.

    Regions in which a table of past weeks was better on held-out hours come first.
    """
    totals = worse_first(totals, report.worse)
    local = totals["peak"].dt.convert_time_zone(report.model.time_zone_)
    intervals: dict[str, str] = {}
    if sums is not None:
        rows = sums.filter(pl.col("unique_id").is_not_null(), pl.col("day").is_null())
        intervals = {
            row["unique_id"]: f"{row['low_kwh']:,.0f} to {row['high_kwh']:,.0f}" for row in rows.iter_rows(named=True)
        }
    before = report.past_weeks()
    share = percent(report.model.levels[-1] - report.model.levels[0])
    return PageTable(
        ("Region", "expected, kWh", f"{share} interval", "week before, kWh", "peak hour, kWh", "at, local time"),
        [
            (
                (row["unique_id"], TABLE_BETTER if row["unique_id"] in report.worse else ""),
                f"{row['kwh']:,.0f}",
                intervals.get(row["unique_id"], "-"),
                f"{before.get(row['unique_id'], 0.0):,.0f}",
                f"{row['peak_kwh']:,.0f}",
                f"{when:%a %d %b, %H:%M}" if row["peak_kwh"] > 0 else "-",
            )
            for row, when in zip(totals.head(MAX_REGIONS).iter_rows(named=True), local, strict=False)
        ],
        f"{totals.height - MAX_REGIONS} more regions are in summary.json." if totals.height > MAX_REGIONS else "",
    )


def print_forecast(summary: dict[str, Any], out: Path, *, as_json: bool) -> None:
    """Print the summary of a forecast."""
    printed = summary if as_json else {name: value for name, value in summary.items() if name != "worse_than_table"}
    print_summary("Forecast", printed | {"out": str(out)}, as_json=as_json)
    if not as_json:
        if sentence := worse_sentence(summary["worse_than_table"]):
            say(sentence)
        print(f"Forecast and figures: {out / 'forecast.html'} (open it in a browser)")
