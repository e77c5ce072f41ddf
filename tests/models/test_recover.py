"""Recovery: what was lost is found again, every sum has its interval, and every number says what it rests on."""

from __future__ import annotations

import datetime as dt
import io
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.demand.records import sessions, stations, visits
from tests.models.panels import MONDAY, hours_from, quick, seen_records, thinned_panel
from unmet.demand.market import Market
from unmet.demand.panel import build_panel
from unmet.errors import InputError
from unmet.models.forecaster import Forecaster
from unmet.models.imputation import fit_unseen
from unmet.models.recover import ALL, recover
from unmet.models.recovery import estimate, recover_hours

HOURS = 6 * 168
KINDS = ("kwh", "arrivals")
FROM = ("from_data", "from_calendar", "from_neighbours")
SEEN = {"kwh": "observed_kwh", "arrivals": "arrivals"}


@pytest.fixture(scope="module")
def panel() -> pl.DataFrame:
    """A thinned panel of six weeks, with an hour a day of which next to nothing is hidden."""
    nearly = pl.col("ds").dt.hour() == 20
    return thinned_panel(HOURS).with_columns(exposure=pl.when(nearly).then(0.9995).otherwise("exposure"))


@pytest.fixture(scope="module")
def model(panel):
    return quick("linear", "exposure", horizon=1, epochs=1).fit(panel)


@pytest.fixture(scope="module")
def made(model, panel):
    return recover(model, panel)


def truth_of(panel: pl.DataFrame) -> float:
    return panel.select((pl.col("y_true") - pl.col("y")).sum()).item()


def widths(table: pl.DataFrame, name: str = "lost_kwh") -> np.ndarray:
    return (table[f"{name}_high"] - table[f"{name}_low"]).to_numpy()


def test_what_was_lost_is_found_again(made, panel):
    assert made.total_kwh.mean == pytest.approx(truth_of(panel), rel=0.1)
    assert made.total_kwh.low < truth_of(panel) < made.total_kwh.high
    assert made.total_kwh.high - made.total_kwh.low < 0.1 * made.total_kwh.mean
    hours = made.hours.join(panel.with_columns(pl.col("ds").cast(made.hours.schema["ds"])), on=["unique_id", "ds"])
    hidden = hours.filter(pl.col("exposure") < 0.9)
    inside = hidden.select((pl.col("y_true") - pl.col("y")).is_between("lost_kwh_low", "lost_kwh_high").mean()).item()
    assert 0.82 < inside < 0.95


def test_intervals_hold_the_truth_as_often_as_they_say():
    week, group = np.arange(HOURS) % 168, np.arange(HOURS) // 168
    inside = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rate = np.outer(2 + np.sin(2 * np.pi * week / 24), [1.0, 2.0]) * rng.gamma(5, 1 / 5, (HOURS, 2))
        exposure = rng.choice([1.0, 0.6, 0.2], rate.shape, p=[0.5, 0.3, 0.2])
        seen, lost = (rng.poisson(rate * share).astype(float) for share in (exposure, 1 - exposure))
        records = seen_records(seen, exposure)
        made = recover_hours(fit_unseen(20 * seen, records, week), records, week, group, draws=100)
        sums = np.add.reduceat(lost, np.arange(0, HOURS, 168))
        told = estimate(made.drawn_arrivals, 0.9)
        inside.append((sums >= told.low) & (sums <= told.high))
    assert 0.8 < np.mean(inside) < 0.97


def test_every_hour_adds_up_and_says_what_it_rests_on(made, panel):
    hours = made.hours
    assert hours.height == panel.height
    assert hours["observed_kwh"].to_numpy() == pytest.approx(panel["y"].to_numpy())
    for kind in KINDS:
        lost, low, high = (hours[f"lost_{kind}{end}"].to_numpy() for end in ("", "_low", "_high"))
        for end, value in (("", lost), ("_low", low), ("_high", high)):
            assert hours[f"true_{kind}{end}"].to_numpy() == pytest.approx(hours[SEEN[kind]].to_numpy() + value)
        assert (low >= 0).all()
        assert (low <= lost + 1e-4).all()
        # Only where an arrival is so rare that 19 times out of 20 there is none does the mean exceed the interval.
        rare = lost > high + 1e-4
        assert (high[rare] == 0).all()
        assert (hours["lost_arrivals"].to_numpy()[rare] < 0.2).all()
    shares = hours.select(FROM).to_numpy()
    assert shares.sum(axis=1) == pytest.approx(1)
    assert ((shares > -1e-9) & (shares < 1 + 1e-9)).all()
    whole = hours.filter((panel["exposure"] == 1).alias("exposed"))
    assert (whole.select("lost_kwh", "lost_kwh_high", "lost_arrivals_high").to_numpy() == 0).all()
    assert (whole["from_data"] == 1).all()
    assert (hours.filter((panel["exposure"] < 0.9).alias("hidden"))["from_data"] < 1).all()


def test_weeks_regions_and_totals_are_sums_of_hours(made):
    weekly = pl.col("ds").dt.truncate("1w").dt.date().alias("week")
    for kind in KINDS:
        names = [SEEN[kind], f"lost_{kind}", f"true_{kind}"]
        sums = made.hours.group_by("unique_id", weekly).agg(pl.col(names).sum()).sort("unique_id", "week")
        whole = sums.group_by("week").agg(pl.col(names).sum()).sort("week").select(pl.lit(ALL).alias("unique_id"), "*")
        expected = pl.concat([sums, whole.select(sums.columns)])
        assert_frame_equal(made.weeks.select(sums.columns), expected, rel_tol=1e-4)
        regions = sums.group_by("unique_id").agg(pl.col(names).sum()).sort("unique_id")
        assert_frame_equal(made.regions.select(regions.columns), regions, rel_tol=1e-4)
    assert made.weeks["week"].to_list()[:2] == [dt.date(2019, 9, 2), dt.date(2019, 9, 9)]
    assert made.total_kwh.mean == pytest.approx(made.hours["lost_kwh"].sum(), rel=1e-4)
    assert made.total_arrivals.mean == pytest.approx(made.hours["lost_arrivals"].sum(), rel=1e-4)


@pytest.mark.parametrize(("column", "spread"), [("exposure_spread", 0.1), ("lost_spread", 0.2)])
def test_what_hours_have_in_common_widens_the_interval_of_their_sum(model, panel, made, column, spread):
    unsure = recover(model, panel.with_columns(pl.lit(spread).alias(column)))
    weekly = pl.col("ds").dt.truncate("1w")
    for found, least, most in ((made, 0.8, 1.3), (unsure, 2.0, 10.0)):
        squares = ((pl.col("lost_kwh_high") - pl.col("lost_kwh_low")) ** 2).sum().sqrt().alias("width")
        apart = found.hours.group_by(weekly).agg(squares).sort("ds")["width"].to_numpy()
        ratio = widths(found.weeks.filter(pl.col("unique_id") == ALL)) / apart
        assert (ratio > least).all()
        assert (ratio < most).all()
    assert unsure.total_kwh.mean == pytest.approx(made.total_kwh.mean, rel=0.1)


def test_a_wider_interval_holds_a_narrower_one(model, panel, made):
    for interval, wider in ((0.5, False), (0.98, True)):
        other = recover(model, panel, interval=interval)
        assert other.interval == interval
        assert other.total_kwh.mean == made.total_kwh.mean
        assert (other.total_kwh.low < made.total_kwh.low) == wider
        assert (other.total_kwh.high > made.total_kwh.high) == wider
        more = widths(other.hours) - widths(made.hours)
        assert (more >= 0 if wider else more <= 0).all()


def as_bytes(table: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.write_parquet(buffer)
    return buffer.getvalue()


def test_the_same_seed_gives_the_same_bytes(model, panel):
    parts = []
    one, again, other = (
        recover(model, panel, draws=40, seed=seed, on_progress=progress)
        for seed, progress in ((1, None), (1, parts.append), (2, None))
    )
    for name in ("hours", "weeks", "regions"):
        assert as_bytes(getattr(one, name)) == as_bytes(getattr(again, name))
        assert as_bytes(getattr(one, name)) != as_bytes(getattr(other, name))
    assert one.total_kwh == again.total_kwh
    assert parts == sorted(parts)
    assert parts[-1] == pytest.approx(1)


def test_a_stored_model_recovers_the_same(model, panel, made, tmp_path):
    again = Forecaster.load(model.save(tmp_path / "m"))
    assert recover(again, panel).hours.equals(made.hours)
    again.unseen_ = replace(again.unseen_, memory=21.0)
    moving = recover(again, panel, draws=40).hours
    assert recover(Forecaster.load(again.save(tmp_path / "n")), panel, draws=40).hours.equals(moving)
    assert moving["lost_kwh"].sum() == pytest.approx(made.hours["lost_kwh"].sum(), rel=0.05)


def test_only_hours_from_a_time_on_are_told(model, panel, made):
    since = MONDAY + dt.timedelta(days=30)
    late = recover(model, panel, since=since)
    assert late.hours["ds"].min() == since
    assert late.hours["ds"].max() == made.hours["ds"].max()
    expected = made.hours.filter(pl.col("ds") >= since)
    assert late.hours["observed_kwh"].equals(expected["observed_kwh"])
    assert late.hours["lost_kwh"].sum() == pytest.approx(expected["lost_kwh"].sum(), rel=0.02)
    assert late.total_kwh.mean == pytest.approx(late.hours["lost_kwh"].sum(), rel=1e-4)
    assert late.weeks["week"].min() == dt.date(2019, 9, 30)
    assert recover(model, panel, since=MONDAY - dt.timedelta(days=9)).hours.equals(made.hours)


def test_what_makes_no_sense_is_refused(model, panel):
    with pytest.raises(InputError, match="no hour from 2030-01-01 00:00 on"):
        recover(model, panel, since=dt.datetime(2030, 1, 1, tzinfo=dt.UTC))
    with pytest.raises(InputError, match="likelihood quantile does not say what was not seen: fit one with exposure"):
        recover(quick("seasonal", "quantile", epochs=1).fit(panel), panel)
    for interval in (0.0, 1.0, 90.0):
        with pytest.raises(InputError, match="makes no sense: give one between 0 and 1"):
            recover(model, panel, interval=interval)
    with pytest.raises(InputError, match="3 draws are too few"):
        recover(model, panel, draws=3)
    with pytest.raises(InputError, match="no column exposure"):
        recover(model, panel.drop("exposure"))


@pytest.fixture(scope="module")
def visited():
    """Drivers at four stations of two plugs, for six weeks."""
    return [visits(n, r, 2, 0, 42, 0.8, seed=7) for n, r in zip("abcd", (1.5, 2.5, 2.0, 3.0), strict=True)]


@pytest.mark.parametrize("share", [1.0, 0.5, (0.4, 0.6)])
def test_what_stations_lost_sums_to_what_their_region_lost_at_them(visited, share):
    rows = [row for part in visited for row in part.rows]
    panel = build_panel(sessions(*rows), stations(*"abcd", plugs=[2] * 4), regions="2", market=Market(share=share))
    model = quick("linear", "exposure", horizon=1, epochs=1).fit(panel.table)
    made = recover(model, panel.table, station_hours=panel.station_hours(), stations=panel.stations)
    assert made.stations["station_id"].to_list() == list("abcd")
    assert made.stations["arrivals"].to_list() == [len(part.rows) for part in visited]
    assert made.stations["observed_kwh"].to_numpy() == pytest.approx(panel.stations["energy_kwh"].to_numpy())
    truth = np.array([len(part.lost) for part in visited])
    assert made.stations["lost_arrivals"].to_numpy() == pytest.approx(truth, rel=0.2)
    at_stations = made.stations.group_by("unique_id").agg(pl.col("lost_arrivals", "lost_kwh").sum()).sort("unique_id")
    if share == 1.0:
        for kind in KINDS:
            assert at_stations[f"lost_{kind}"].to_numpy() == pytest.approx(
                made.regions[f"lost_{kind}"].to_numpy(), rel=0.05
            )
        low, high = (made.stations[f"lost_arrivals_{end}"].to_numpy() for end in ("low", "high"))
        assert ((low < truth) & (truth < high)).sum() >= 3
    else:  # as many as were wanted here in all went to competitors
        wanted = made.stations.group_by("unique_id").agg(pl.col("true_arrivals").sum()).sort("unique_id")
        others = made.regions["lost_arrivals"] - at_stations["lost_arrivals"]
        assert others.to_numpy() == pytest.approx(wanted["true_arrivals"].to_numpy(), rel=0.1)


def test_an_unsure_share_gives_a_wider_interval(visited):
    rows = [row for part in visited for row in part.rows]
    found = []
    for share in (0.25, (0.2, 0.3)):
        table = build_panel(sessions(*rows), stations(*"abcd", plugs=[2] * 4), market=Market(share=share)).table
        model = quick("seasonal", "exposure", horizon=1, epochs=1).fit(table)
        found.append(recover(model, table).total_kwh)
    sure, unsure = found
    assert unsure.high - unsure.low > 3 * (sure.high - sure.low)
    # What was wanted is what was seen over the share, so that it lies between a third and a half more and less.
    assert unsure.low < 0.85 * unsure.mean < 1.15 * unsure.mean < unsure.high
    assert unsure.mean == pytest.approx(sure.mean, rel=0.05)


def test_a_region_that_was_never_seen_is_estimated_from_its_neighbours():
    rng = np.random.default_rng(9)
    rate = 6 * (1.1 + np.sin(2 * np.pi * np.arange(HOURS) / 24))
    frames = []
    for name, size, exposure in (("r0", 1.0, 1.0), ("r1", 1.0, 0.0), ("r2", 1.0, 0.8), ("r3", 0.2, 1.0)):
        seen = rng.poisson(size * rate * exposure)
        columns = {"ds": hours_from(MONDAY, HOURS), "y": 20.0 * seen, "arrivals": seen, "exposure": exposure}
        frames.append(pl.DataFrame({"unique_id": [name] * HOURS} | columns))
    positions = pl.DataFrame(
        {"unique_id": ["r0", "r1", "r2", "r3"], "lat": [55.0, 55.01, 55.02, 56.0], "lon": [12.0] * 4}
    )
    panel = pl.concat(frames)
    model = quick("linear", "exposure", horizon=1, epochs=1).fit(panel, positions)
    hours = recover(model, panel).hours
    blind = hours.filter(pl.col("unique_id") == "r1")
    assert blind["lost_arrivals"].sum() == pytest.approx(rate.sum(), rel=0.1)
    assert blind["lost_kwh"].sum() == pytest.approx(20 * rate.sum(), rel=0.1)
    assert blind["from_neighbours"].min() > 0.9
    partly = hours.filter(pl.col("unique_id") == "r2")
    assert partly["from_neighbours"].max() < 0.05
    assert partly["from_calendar"].mean() > 0.05
    assert (hours.filter(pl.col("unique_id").is_in(["r0", "r3"]))["from_data"] == 1).all()
