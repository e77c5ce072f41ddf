"""Draw the pictures of the documentation with a headless Chromium: `python docs/pictures.py`."""

from __future__ import annotations

import datetime as dt
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import polars as pl

from unmet.city.build import build_city
from unmet.demand.regions import kmeans_regions
from unmet.demand.simulated import simulated_panel
from unmet.estimation.lost_demand import LostDemand
from unmet.estimation.simulated import estimate_simulated
from unmet.simulation.outcome import Outcome
from unmet.simulation.scenario import Scenario
from unmet.simulation.simulate import prepare, simulate
from unmet.study.censoring import run_censoring
from unmet.study.planning import PlanningStudy
from unmet.views.figures.planning_share import PLANNING_SHARE
from unmet.views.figures.region_demand import REGION_DEMAND
from unmet.views.theme import FAINT, FORECAST, LOST, OBSERVED, layout

WIDTH = 1000
IMAGES = Path(__file__).parent / "images"
ZONE = "Europe/Copenhagen"


def draw(name: str, figure: go.Figure, height: int) -> None:
    """Save a figure as a picture."""
    out = IMAGES / f"{name}.png"
    figure.update_layout(width=WIDTH, height=height)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "figure.html"
        page.write_text(
            f"<body style='margin:0'>{figure.to_html(full_html=False, config={'displayModeBar': False})}</body>",
            encoding="utf-8",
        )
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-device-scale-factor=1.5"]
        flags += [f"--user-data-dir={folder}/profile", f"--window-size={WIDTH},{height}", "--virtual-time-budget=15000"]
        subprocess.run(["chromium", *flags, f"--screenshot={out}", page.as_uri()], check=True, capture_output=True)  # noqa: S603, S607
    print(out)


def day_at_a_station(outcome: Outcome, lost: LostDemand) -> go.Figure:
    """One day of the station with two plugs that lost the most drivers: plugs taken, drivers recorded and lost."""
    two_plug_sites = lost.by_site().filter((pl.col("capacity") == 2) & (pl.col("stations") == 1))
    station = two_plug_sites.sort("lost_arrivals", descending=True)["site_id"][0]
    arrivals = outcome.arrivals.filter(pl.col("station_id") == station).with_columns(
        local=pl.col("arrival").dt.convert_time_zone(ZONE)
    )
    days = arrivals.group_by(day=pl.col("local").dt.date()).agg(lost=(pl.col("outcome") == "lost").sum())
    day = days.filter(pl.col("lost") >= 3).sort((pl.col("lost") - 4).abs(), "day")["day"][0]  # closest to four lost
    of_day = arrivals.filter(pl.col("local").dt.date() == day)
    begin = dt.datetime.combine(day, dt.time())  # in local time, like all times below
    stays = arrivals.filter(pl.col("outcome") == "served").with_columns(
        *(pl.col(name).dt.convert_time_zone(ZONE).dt.replace_time_zone(None) for name in ("start", "end"))
    )
    minutes = [begin + dt.timedelta(minutes=5 * i) for i in range(24 * 12 + 1)]
    start, end = stays["start"].to_numpy(), stays["end"].to_numpy()
    cars = [int(((start <= np.datetime64(m)) & (end > np.datetime64(m))).sum()) for m in minutes]
    figure = go.Figure()
    full = np.array(cars) >= 2
    for i in np.flatnonzero(full & ~np.concatenate([[False], full[:-1]])):
        stop = i + int(np.argmin(np.append(full[i:], False)))
        figure.add_vrect(minutes[i], minutes[min(stop, len(minutes) - 1)], fillcolor=LOST, opacity=0.12, line_width=0)
    figure.add_scatter(
        x=minutes, y=cars, mode="lines", line={"shape": "hv", "color": FAINT, "width": 2}, name="Plugs taken, of two"
    )  # fmt: skip
    for outcome_name, name, colour, symbol, height in (
        ("served", "Driver who charges: recorded", OBSERVED, "circle", 2.35),
        ("lost", "Driver who finds no plug: not recorded", LOST, "x", 2.65),
    ):
        times = of_day.filter(pl.col("outcome") == outcome_name)["local"].dt.replace_time_zone(None).to_list()
        marker = {"color": colour, "symbol": symbol, "size": 12}
        figure.add_scatter(x=times, y=[height] * len(times), mode="markers", marker=marker, name=name)
    figure.update_yaxes(tickvals=[0, 1, 2], range=[-0.15, 2.9], title="Plugs taken")
    figure.update_xaxes(title="Time of day; no plug is free where shaded", tickformat="%H:%M", dtick=3 * 3_600_000)
    return layout(figure)


def lost_by_station(outcome: Outcome, lost: LostDemand) -> go.Figure:
    """Lost drivers of each station, estimated and true."""
    truth = outcome.arrivals.filter(pl.col("outcome") == "lost").group_by("station_id").agg(true=pl.len())
    both = lost.by_station().join(truth, on="station_id", how="left").with_columns(pl.col("true").fill_null(0))
    shown = both.filter((pl.col("true") > 0) | (pl.col("lost_arrivals") >= 0.5))
    axis_end = float(max(shown["true"].max(), shown["lost_arrivals"].max())) * 1.3
    figure = go.Figure()
    figure.add_scatter(
        x=[0.5, axis_end], y=[0.5, axis_end], mode="lines", name="Estimate equals truth",
        line={"color": FAINT, "dash": "dash"},
    )  # fmt: skip
    figure.add_scatter(
        x=shown["true"].clip(0.5), y=shown["lost_arrivals"].clip(0.5), mode="markers", name="One station",
        marker={"color": FORECAST[0], "size": 9, "opacity": 0.7},
    )  # fmt: skip
    ticks = {"type": "log", "tickvals": [1, 10, 100, 1000], "range": [np.log10(0.4), np.log10(axis_end)]}
    figure.update_xaxes(title="Drivers lost in three months", **ticks)
    figure.update_yaxes(title="Estimated from the records alone", **ticks)
    return layout(figure)


def weeks_of_a_region(lost: LostDemand, table: pl.DataFrame) -> go.Figure:
    """Weekly demand of the region that lost the most: recorded, recovered and true."""
    gap = table.group_by("unique_id").agg(lost=(pl.col("y_true") - pl.col("y")).sum())
    worst = gap.sort("lost", descending=True)["unique_id"][0]
    recovered = lost.by_week().filter(pl.col("unique_id") == worst)
    local = pl.col("ds").dt.convert_time_zone(ZONE).dt.truncate("1w").dt.date()
    truth = table.filter(pl.col("unique_id") == worst).group_by(week=local).agg(pl.col("y_true").sum(), hours=pl.len())
    weeks = recovered.join(truth, on="week").filter(pl.col("hours") >= 167).sort("week")  # complete weeks
    week = weeks["week"].to_list()
    figure = go.Figure()
    figure.add_bar(x=week, y=weeks["observed_kwh"] / 1000, marker_color=OBSERVED, name="Records", width=4 * 86_400_000)
    figure.add_scatter(
        x=week, y=weeks["true_kwh"] / 1000, mode="markers", marker={"color": FORECAST[0], "size": 10},
        error_y={
            "array": (weeks["true_kwh_high"] - weeks["true_kwh"]) / 1000,
            "arrayminus": (weeks["true_kwh"] - weeks["true_kwh_low"]) / 1000, "thickness": 2,
        },
        name="Recovered, with 90 % interval",
    )  # fmt: skip
    figure.add_scatter(
        x=week, y=weeks["y_true"] / 1000, mode="markers", name="True demand",
        marker={"color": LOST, "symbol": "line-ew-open", "size": 30, "line": {"width": 3}},
    )  # fmt: skip
    figure.update_xaxes(title="Week from", tickvals=week[::2], tickformat="%d %b")
    figure.update_yaxes(title="Demand [MWh]", rangemode="tozero")
    return layout(figure)


def main() -> None:
    """Draw all pictures."""
    city = build_city()
    study = run_censoring(city, queues=["first-come"], penetrations=[0.05])
    draw("hidden-demand", REGION_DEMAND.draw(study), 560)
    outcome = simulate(prepare(city), Scenario(queue="first-come", penetration=0.05))
    regions = kmeans_regions(city.stations, 10)
    lost = estimate_simulated(outcome.sessions, outcome.stations, regions, ZONE)
    draw("day-at-a-station", day_at_a_station(outcome, lost), 360)
    draw("lost-by-station", lost_by_station(outcome, lost), 520)
    table = simulated_panel(outcome.arrivals, regions, city.period)
    draw("recovered-weeks", weeks_of_a_region(lost, table), 460)
    plans = pl.read_parquet(Path(__file__).parent / "results" / "planning.parquet")
    draw("planning-share", PLANNING_SHARE.draw(PlanningStudy(plans, "first-come")), 500)


if __name__ == "__main__":
    main()
