"""Records with plugs removed on paper: the drivers turned away, the truth, and the command."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from tests.demand.records import sessions, stations, visits
from unmet.cli import app
from unmet.errors import InputError
from unmet.study.thinning import quiet_sites, thin, thinned_panel, thinning_scenes, turned_away

DAYS = 42
NAMES = ("a", "b", "c")


@pytest.fixture(scope="module")
def records() -> tuple[pl.DataFrame, pl.DataFrame]:
    rows = [row for name in NAMES for row in visits(name, 0.8, 6, 0, DAYS, 2.0, seed=3).rows]
    return sessions(*rows).sort("start"), stations(*NAMES, plugs=[6] * 3)


def most_at_once(part: pl.DataFrame) -> int:
    """The largest number of cars at once; a departure at the time of an arrival comes first."""
    moves = [(row["end"], -1) for row in part.iter_rows(named=True)]
    moves += [(row["start"], 1) for row in part.iter_rows(named=True)]
    return int(np.cumsum([step for _, step in sorted(moves)]).max())


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=40), st.integers(1, 4))
def test_exactly_the_drivers_who_find_no_plug_are_turned_away(stays, plugs):
    """Compare with a direct count of the cars that were served and have not left yet."""
    start = np.array(sorted(a for a, _ in stays), np.int64)
    end = start + np.array([length for _, length in stays], np.int64)
    present: list[int] = []  # when the cars at the plugs leave
    expected = []
    for a, b in zip(start, end, strict=True):
        present = [until for until in present if until > a]
        expected.append(len(present) >= plugs)
        if not expected[-1]:
            present.append(b)
    assert turned_away(start, end, plugs).tolist() == expected


@pytest.mark.parametrize("share", [0.1, 0.2, 0.35])
def test_the_share_of_energy_is_turned_away_and_no_station_is_closed(records, share):
    thinned = thin(*records, share)
    assert thinned.removed == pytest.approx(share, abs=0.05)
    assert thinned.sessions["energy_kwh"].sum() == pytest.approx((1 - thinned.removed) * records[0]["energy_kwh"].sum())
    assert thinned.plugs["plugs"].min() >= 1
    assert thinned.plugs["plugs"].sum() < 18
    for name, plugs in thinned.plugs.iter_rows():
        assert most_at_once(thinned.sessions.filter(pl.col("station_id") == name)) <= plugs
    assert thinned.sessions.join(records[0], on=records[0].columns, how="anti").is_empty()


def test_the_same_seed_removes_the_same_plugs(records):
    assert thin(*records, 0.2, 5).plugs.equals(thin(*records, 0.2, 5).plugs)
    assert len({tuple(thin(*records, 0.2, seed).plugs["plugs"]) for seed in range(6)}) > 1


def test_the_truth_is_the_original_records(records):
    scenes, notes = thinning_scenes(*records, "UTC", (0.1, 0.2), "station")
    assert [scene.labels for scene in scenes] == [{"removed": 0.1}, {"removed": 0.2}]
    assert all(scene.run == 0 and scene.reports_all_hours for scene in scenes)
    assert "3 sites" in notes[0]
    for scene in scenes:
        panel = scene.panel
        assert panel.height == 3 * 24 * DAYS
        assert panel["y_true"].sum() == pytest.approx(records[0]["energy_kwh"].sum())
        assert (panel["y"] <= panel["y_true"] + 1e-9).all()
        assert panel["y"].sum() / panel["y_true"].sum() == pytest.approx(1 - scene.labels["removed"], abs=0.05)
        assert panel.drop("lost_draws").select(pl.all().null_count()).row(0) == (0,) * (panel.width - 1)
        hidden = pl.col("y") < pl.col("y_true") - 1e-9
        assert (panel.filter(hidden)["lost_kwh_before"] > 0).mean() > 0.99
        assert panel.filter(~hidden)["lost_kwh"].mean() < 0.5 * panel.filter(hidden)["lost_kwh"].mean()
        assert panel["lost_draws"].drop_nulls().to_numpy().mean() == pytest.approx(panel["lost_kwh"].mean(), rel=0.1)


def test_every_run_removes_other_plugs(records):
    scenes, notes = thinning_scenes(*records, "UTC", (0.2,), "station", runs=4)
    assert [scene.run for scene in scenes] == [0, 1, 2, 3]
    assert len({scene.fingerprint() for scene in scenes}) > 1
    assert len({scene.panel["y_true"].sum() for scene in scenes}) == 1
    assert " to " in notes[1]


def test_sites_that_can_be_thinned_are_large_quiet_and_open(records):
    rows = [row for name in NAMES for row in visits(name, 0.8, 6, 0, DAYS, 2.0, seed=3).rows]
    rows += visits("single", 0.05, 1, 0, DAYS, 1.0).rows
    rows += visits("crowded", 2.0, 2, 0, DAYS, 3.0).rows
    rows += visits("late", 0.8, 6, DAYS / 2, DAYS, 2.0).rows
    names = (*NAMES, "single", "crowded", "late")
    sites, kept = quiet_sites(sessions(*rows), stations(*names, plugs=[6, 6, 6, 1, 2, 6]), "UTC")
    assert sites.select("station_id", "plugs").rows() == [("a", 6), ("b", 6), ("c", 6)]
    assert sorted(kept["station_id"].unique()) == ["a", "b", "c"]
    assert kept.height == records[0].height


def test_adjacent_stations_are_thinned_as_one_site(records):
    near = records[1].with_columns(lat=pl.Series([55.0, 55.0005, 55.1]), lon=pl.lit(12.0))
    sites, kept = quiet_sites(records[0], near, "UTC")
    assert sites.select("station_id", "plugs").rows() == [("a", 12), ("c", 6)]
    assert dict(kept.group_by("station_id").len().iter_rows()) == {
        "a": records[0].filter(pl.col("station_id") != "c").height,
        "c": records[0].filter(pl.col("station_id") == "c").height,
    }
    thinned = thin(kept, sites, 0.2)
    panel = thinned_panel(thinned, sites, "station", "UTC")
    assert panel.sites.height == panel.stations.height == 2  # no site is merged again
    assert panel.stations["capacity"].to_list() == thinned.plugs["plugs"].to_list()


def test_merged_sites_that_move_next_to_each_other_are_merged_too(records):
    """Stations 90 m apart in a row of three: the middle of the first two is within reach of the third."""
    row = records[1].with_columns(lat=55 + 0.0008 * pl.int_range(3), lon=pl.lit(12.0))
    sites, kept = quiet_sites(records[0], row, "UTC")
    assert sites["plugs"].to_list() == [18]
    assert kept.height == records[0].height


def test_names_of_plugs_are_dropped_with_the_plugs(records):
    """A plug that is no longer used because plugs were removed on paper does not count as out of order."""
    thinned = [visits(name, 0.8, 6, 0, DAYS, 2.0, seed=3) for name in NAMES]
    rows, plugs = [row for part in thinned for row in part.rows], [plug for part in thinned for plug in part.plug_id]
    named = sessions(*rows, plug_id=plugs).sort("start")
    for lat in ([55.0, 55.01, 55.02], [55.0, 55.0005, 55.1]):
        sites, kept = quiet_sites(named, records[1].with_columns(lat=pl.Series(lat), lon=pl.lit(12.0)), "UTC")
        assert "plug_id" not in kept.columns
        assert sites["plugs"].sum() == 18
        assert thinned_panel(thin(kept, sites, 0.3), sites, "station", "UTC").outages.is_empty()


def test_stations_without_positions_can_be_thinned(records):
    sites, kept = quiet_sites(records[0], records[1].select("station_id", "plugs"), "UTC")
    assert sites["plugs"].to_list() == [6, 6, 6]
    assert kept.height == records[0].height


def test_crowded_records_and_unreachable_shares_are_refused(records):
    crowded = sessions(*visits("a", 3.0, 2, 0, DAYS, 3.0).rows)
    with pytest.raises(InputError, match="no truth in these records"):
        thinning_scenes(crowded, stations("a", plugs=[2]), "UTC")
    with pytest.raises(InputError, match="reaches none of these shares"):
        thinning_scenes(*records, "UTC", (0.98,), "station")
    with pytest.raises(InputError, match="makes no sense"):
        thinning_scenes(*records, "UTC", (1.2,))


def test_the_command_tests_models_on_own_records(records, tmp_path):
    records[0].write_csv(tmp_path / "sessions.csv")
    records[1].write_csv(tmp_path / "stations.csv")
    call = ["study", "thinning", str(tmp_path / "sessions.csv"), "--stations", str(tmp_path / "stations.csv")]
    call += ["--backbones", "seasonal", "--models", "quantile,exposure,oracle", "--runs", "1", "--epochs", "2"]
    call += ["--removed", "0.2", "--workers", "1", "--out", str(tmp_path / "out"), "--regions", "2"]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    cells = pl.read_parquet(tmp_path / "out" / "cells.parquet")
    assert cells["model"].to_list() == ["quantile", "exposure", "oracle"]
    assert cells["removed"].to_list() == [0.2] * 3
    for measure in ("lost_of_true", "lost_inside", "lost_all_of_true", "lost_all_inside"):
        assert cells[measure].is_not_null().to_list() == [False, True, False]
    assert cells["lost_all_of_true"][1] == pytest.approx(1, abs=0.25)
    text = (tmp_path / "out" / "study.md").read_text(encoding="utf-8")
    assert "| Exposure-aware |" in text
    assert "Energy lost in the test part" in text
    assert "Energy lost in all hours" in text
    assert (tmp_path / "out" / "study.html").is_file()
    call[call.index("--out") + 1] = str(tmp_path / "part")
    first = records[0]["start"].min()
    half = first + (records[0]["start"].max() - first) / 2
    part = CliRunner().invoke(app, [*call, "--until", f"{half:%Y-%m-%d}", "--json"])
    assert part.exit_code == 0, part.output
    kept = records[0].filter(pl.col("start") < half.replace(hour=0, minute=0, second=0, microsecond=0)).height
    assert f"{kept:,} of {kept:,} sessions" in (tmp_path / "part" / "study.md").read_text(encoding="utf-8")
    none = CliRunner().invoke(app, [*call, "--since", "2199-01-01"])
    assert isinstance(none.exception, InputError)
    assert "give another --since or --until" in str(none.exception)
