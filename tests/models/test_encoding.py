"""Panels as arrays, and arrays as inputs of networks."""

from __future__ import annotations

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.panels import HOUR, MONDAY, small_panel
from unmet.errors import InputError
from unmet.models import series as room
from unmet.models.encoding import Encoding
from unmet.models.series import read_positions, read_series


def rows(*cells, **columns):
    """A panel of rows of region, hour from Monday midnight, kWh."""
    frame = pl.DataFrame(
        {
            "unique_id": [cell[0] for cell in cells],
            "ds": pl.Series([MONDAY + cell[1] * HOUR for cell in cells], dtype=pl.Datetime("ms", "UTC")),
            "y": [float(cell[2]) for cell in cells],
        }
    )
    return frame.with_columns(pl.Series(name, values, strict=False) for name, values in columns.items())


hour_sets = st.lists(
    st.tuples(st.sampled_from(["b", "a", "c"]), st.integers(0, 30), st.floats(0, 100)),
    min_size=1,
    max_size=40,
    unique_by=lambda cell: cell[:2],
)


@settings(max_examples=40)
@given(hour_sets)
def test_rows_fill_their_cells_and_all_others_are_missing(cells):
    series = read_series(rows(*cells))
    assert series.names == tuple(sorted({cell[0] for cell in cells}))
    first = min(cell[1] for cell in cells)
    assert series.first == MONDAY + first * HOUR
    assert series.hours == max(cell[1] for cell in cells) - first + 1
    expected = np.full((series.hours, len(series.names)), np.nan)
    for name, hour, y in cells:
        expected[hour - first, series.names.index(name)] = y
    for part in (series.demand, series.target, series.lower, series.upper):
        np.testing.assert_array_equal(part, expected)


def test_bounds_follow_the_censoring_flag():
    inf, nan = np.inf, np.nan
    flags = [0, 1, 1, -1, -1, 1, -1, 0, None]
    lower = [nan, nan, 3, nan, 1, 3, nan, 9, nan]
    upper = [nan, nan, nan, nan, nan, 8, 2, 9, nan]
    panel = rows(*(("a", hour, 4) for hour in range(9)), censored=flags, lower=lower, upper=upper)
    expected = [(4, 4), (4, inf), (3, inf), (-inf, 4), (1, 4), (3, 8), (-inf, 2), (4, 4), (4, 4)]
    for given_as in (panel, panel.fill_nan(None), panel.to_pandas(), panel.to_arrow()):
        series = read_series(given_as)
        assert list(zip(series.lower[:, 0], series.upper[:, 0], strict=True)) == expected
        assert (series.demand == 4).all()
        assert series.set_aside.is_empty()


def test_an_infinite_bound_is_no_bound():
    panel = rows(("a", 0, 4), ("a", 1, 4), censored=[1, -1], lower=[4, -np.inf], upper=[np.inf, 4])
    series = read_series(panel)
    assert series.lower[:, 0].tolist() == [4, -np.inf]
    assert series.upper[:, 0].tolist() == [np.inf, 4]


def test_flags_may_be_true_and_false():
    series = read_series(rows(("a", 0, 4), ("a", 1, 5), censored=[True, False]))
    assert series.upper[:, 0].tolist() == [np.inf, 5]


def test_bounds_the_wrong_way_round_are_refused():
    with pytest.raises(InputError, match="must not exceed"):
        read_series(rows(("a", 0, 4), censored=[1], lower=[5.0], upper=[3.0]))


def test_another_target_is_learned_without_bounds():
    panel = rows(("a", 0, 4), ("a", 1, 5), censored=[1, 0], true_y=[9.0, None])
    series = read_series(panel, target="true_y")
    np.testing.assert_array_equal(series.demand[:, 0], [4, 5])
    for part in (series.target, series.lower, series.upper):
        np.testing.assert_array_equal(part[:, 0], [9, np.nan])


@pytest.mark.parametrize("shape", ["pandas", "arrow", "lazy", "dict", "csv", "parquet", "text", "local"])
def test_frames_and_files_of_any_kind_give_the_same_series(shape, tmp_path):
    panel = small_panel(hours=60).with_columns(censored=pl.col("y") > 5, heat=pl.col("y") * 2)
    expected = read_series(panel, extras=["heat"])
    path = tmp_path / f"panel.{shape}"
    if shape == "csv":
        panel.write_csv(path)
    elif shape == "parquet":
        panel.write_parquet(path)
    given_as = {
        "pandas": panel.to_pandas,
        "arrow": panel.to_arrow,
        "lazy": panel.lazy,
        "dict": lambda: panel.to_dict(as_series=False),
        "text": lambda: panel.with_columns(
            pl.col("ds").dt.to_string("%Y-%m-%dT%H:%M:%SZ"), pl.col("y", "censored").cast(str)
        ),
        "local": lambda: panel.with_columns(pl.col("ds").dt.convert_time_zone("Asia/Tokyo")),
        "csv": lambda: path,
        "parquet": lambda: str(path),
    }[shape]()
    if shape in ("csv", "text"):
        expected = read_series(panel.with_columns(pl.col("y", "heat").cast(str).cast(float)), extras=["heat"])
    series = read_series(given_as, extras=["heat"])
    assert (series.names, series.first) == (expected.names, expected.first)
    for part in ("demand", "target", "lower", "upper", "extras"):
        np.testing.assert_array_equal(getattr(series, part), getattr(expected, part))


def test_nan_means_missing_in_any_kind_of_frame():
    panel = rows(("a", 0, 4), ("a", 1, np.nan), ("a", 2, 6), heat=[1.0, 2.0, np.nan])
    for given_as in (panel, panel.to_pandas(), pa.table(panel.to_dict(as_series=False))):
        series = read_series(given_as, extras=["heat"])
        np.testing.assert_array_equal(series.demand[:, 0], [4, np.nan, 6])
        np.testing.assert_array_equal(series.extras[:, 0, 0], [1, np.nan, np.nan])


def test_a_series_as_a_table_is_the_original_panel():
    panel = small_panel(hours=50)
    back = read_series(panel).table()
    assert back.select("unique_id").equals(panel.select("unique_id"))
    assert (back["ds"] == panel["ds"]).all()
    assert (back["demand"] == panel["y"]).all()


def test_only_the_last_hours_are_read_if_asked_for():
    panel = small_panel(hours=100)
    whole, part = read_series(panel), read_series(panel, last_hours=24)
    assert part.hours == 24
    np.testing.assert_array_equal(part.demand, whole.demand[-24:])
    assert part.times().to_list() == whole.times().to_list()[-24:]


def test_a_region_without_recent_rows_is_kept():
    panel = small_panel(hours=100)
    quiet = panel.filter((pl.col("unique_id") != "r1") | (pl.col("ds") < MONDAY + 50 * HOUR))
    series = read_series(quiet, names=("r0", "r1", "r2"), last_hours=24)
    whole = read_series(quiet)
    np.testing.assert_array_equal(series.demand, whole.demand[-series.hours :])
    assert np.isnan(series.demand[-24:, 1]).all()


def test_other_regions_columns_and_shapes_are_refused_with_a_remedy():
    panel = small_panel(hours=50)
    for wrong, options, remedy in (
        (panel, {"names": ("r0", "r1")}, "give a panel of the same regions"),
        (panel, {"names": ("r0", "r1", "r2", "r3")}, "give a panel of the same regions"),
        (panel, {"extras": ["heat"]}, "no column heat: its columns are unique_id, ds, y"),
        (panel, {"extras": ["y"]}, "cannot be a feature"),
        (panel, {"target": "true_y"}, "no column true_y"),
        (panel.drop("y"), {}, "has no column y"),
        (panel.head(0), {}, "it needs unique_id, ds"),
        ([1, 2], {}, "give a Polars, pandas or PyArrow frame"),
        ("no such file.csv", {}, "check the path"),
    ):
        with pytest.raises(InputError, match=remedy):
            read_series(wrong, **options)


def test_a_panel_that_spans_centuries_is_refused_before_it_fills_the_memory():
    ds = pl.Series([MONDAY, dt.datetime(1905, 1, 1, tzinfo=dt.UTC)], dtype=pl.Datetime("ms", "UTC"))
    names = [f"r{i}" for i in range(1 + room.MAX_CELLS // 1_000_000)]
    panel = pl.DataFrame({"unique_id": names}).join(pl.DataFrame({"ds": ds}), how="cross").with_columns(y=pl.lit(1.0))
    with pytest.raises(InputError, match=r"from 1905-01-01 to 2019-09-02.*Check its dates"):
        read_series(panel)


def test_positions_are_found_by_name():
    places = {"unique_id": ["b", "c", "a"], "lat": [1.0, 2.0, 3.0], "lon": [4.0, 5.0, 6.0]}
    np.testing.assert_array_equal(read_positions(places, ("a", "b")), [[3, 6], [1, 4]])
    with pytest.raises(InputError, match="Regions without a position: d"):
        read_positions(places, ("a", "d"))
    with pytest.raises(InputError, match="Regions without a position: a"):
        read_positions(places | {"lat": [1.0, 2.0, 99.0]}, ("a", "b"))


def test_scales_are_the_largest_demand_of_the_training_part():
    panel = small_panel(hours=100).with_columns(
        y=pl.when(pl.col("unique_id") == "r2")
        .then(0.0)
        .when(pl.col("ds") >= MONDAY + 80 * HOUR)
        .then(999.0)
        .otherwise("y")
    )
    series = read_series(panel)
    encoding = Encoding.of(series, 80, "UTC", marks_unknown=True)
    np.testing.assert_array_equal(encoding.scale, [*series.demand[:80, :2].max(axis=0), 1])
    data = encoding.encode(series)
    np.testing.assert_allclose(data.y.numpy() * encoding.scale, series.demand, rtol=1e-6)


@settings(max_examples=30)
@given(st.integers(0, 1000), st.booleans(), st.sampled_from(["UTC", "Europe/Copenhagen", "America/New_York"]))
def test_features_hold_past_demand_and_what_is_known_of_the_next_hour(seed, marks_unknown, zone):
    rng = np.random.default_rng(seed)
    panel = small_panel(hours=200, seed=seed).with_columns(heat=pl.Series(rng.normal(5, 2, 600)))
    panel = panel.filter(pl.Series(rng.random(600) > 0.2) | (pl.col("ds") == MONDAY))
    series = read_series(panel, extras=["heat"])
    encoding = Encoding.of(series, 150, zone, marks_unknown=marks_unknown)
    values = encoding.encode(series).values.double().numpy()
    shape = encoding.shape(24)
    assert (shape.nodes, shape.features, shape.lags) == (3, values.shape[-1], 24)
    assert shape.past_features == 1 + marks_unknown
    known = np.isfinite(series.demand)
    scaled = series.demand / encoding.scale
    np.testing.assert_allclose(values[known][:, 0], scaled[known], rtol=1e-6)
    if marks_unknown:
        np.testing.assert_array_equal(values[..., 1], known)
        assert (values[~known][:, 0] == 0).all()
    hour, node = 77, 1
    local = (series.times()[hour] + HOUR).astimezone(ZoneInfo(zone))
    day, week = 2 * np.pi * local.hour / 24, 2 * np.pi * local.weekday() / 7
    past = shape.past_features
    np.testing.assert_allclose(
        values[hour, node, past : past + 4], [np.sin(day), np.cos(day), np.sin(week), np.cos(week)], atol=1e-6
    )
    heat = series.extras[:150]
    to_come = (series.extras[1:, :, 0] - np.nanmean(heat)) / np.nanstd(heat)
    np.testing.assert_allclose(values[:-1, :, -1], np.nan_to_num(to_come), atol=1e-5)


def test_missing_hours_are_filled_with_the_weekly_profile_if_they_are_not_marked():
    panel = small_panel(hours=500)
    gap = panel.filter((pl.col("unique_id") != "r0") | (pl.col("ds") != MONDAY + 400 * HOUR))
    series = read_series(gap)
    encoding = Encoding.of(series, 450, "UTC", marks_unknown=False)
    filled = encoding.encode(series).values[400, 0, 0].item()
    same_hour = series.demand[[400 - 168, 400 - 336], 0].mean() / encoding.scale[0]
    assert filled == pytest.approx(same_hour, rel=1e-6)


def test_a_constant_feature_stays_finite_when_it_changes():
    panel = small_panel(hours=100).with_columns(price=pl.lit(0.1))
    series = read_series(panel, extras=["price"])
    encoding = Encoding.of(series, 80, "UTC", marks_unknown=True)
    ahead = encoding.encode(series, np.full((5, 3, 1), 0.2)).values[..., -1]
    assert ahead.abs().max() < 1


def test_missing_and_future_hours_have_no_weight():
    panel = small_panel(hours=100).filter((pl.col("unique_id") != "r0") | (pl.col("ds") != MONDAY + 7 * HOUR))
    series = read_series(panel.with_columns(censored=pl.col("y") > 6))
    encoding = Encoding.of(series, 80, "UTC", marks_unknown=True)
    data = encoding.encode(series, np.empty((5, 3, 0)))
    assert len(data.weight) == len(data.values) == len(data.week) == 105
    assert data.weight[7].tolist() == [0, 1, 1]
    assert (data.weight[100:] == 0).all()
    assert data.weight.sum() == 299
    for part in data:
        assert not torch.isnan(part.double()).any()
    censored = torch.isinf(data.upper)
    np.testing.assert_array_equal(censored[:100].numpy(), np.isinf(series.upper))
    assert (data.lower[censored] == data.y[censored]).all()


def test_segments_and_their_targets_are_slices_of_the_data():
    series = read_series(small_panel(hours=100))
    data = Encoding.of(series, 80, "UTC", marks_unknown=True).encode(series)
    inputs = data.inputs(torch.tensor([0, 30]), 10)
    assert inputs.values.shape == (10, 2, 3, 6)
    torch.testing.assert_close(inputs.values[:, 1], data.values[30:40])
    torch.testing.assert_close(inputs.week[:, 1], data.week[30:40])
    observations, weight = data.observations(torch.tensor([[3, 50]]))
    torch.testing.assert_close(observations.y[0], data.y[[3, 50]])
    torch.testing.assert_close(weight[0], data.weight[[3, 50]])
