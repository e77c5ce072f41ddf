"""Records with plugs removed on paper: what is turned away, what is kept as the truth, and the verb."""

from __future__ import annotations

import polars as pl
import pytest
from typer.testing import CliRunner

from tests.demand.records import sessions, stations, visits
from unmet.cli import app
from unmet.demand.occupancy import peak_cars, stays_by_station
from unmet.demand.panel import _codes
from unmet.demand.sites import merge_sites
from unmet.errors import InputError
from unmet.study.thinning import thin, thinning_scenes

DAYS = 42
NAMES = ("a", "b", "c")


@pytest.fixture(scope="module")
def records() -> tuple[pl.DataFrame, pl.DataFrame]:
    rows = [row for name in NAMES for row in visits(name, 0.8, 6, 0, DAYS, 2.0, seed=3).rows]
    return sessions(*rows).sort("start"), stations(*NAMES, plugs=[6] * 3)


@pytest.mark.parametrize("share", [0.1, 0.2, 0.35])
def test_so_much_energy_is_turned_away_and_no_station_is_closed(records, share):
    made = thin(*records, share)
    assert made.removed == pytest.approx(share, abs=0.05)
    assert made.sessions["energy_kwh"].sum() == pytest.approx((1 - made.removed) * records[0]["energy_kwh"].sum())
    assert made.plugs["plugs"].min() >= 1
    assert made.plugs["plugs"].sum() < 18
    kept = stays_by_station(*_codes(made.sessions, records[1]), 3)
    assert (peak_cars(kept).cars <= made.plugs["plugs"].to_numpy()).all()
    assert made.sessions.join(records[0], on=records[0].columns, how="anti").is_empty()


def test_the_same_seed_removes_the_same_plugs(records):
    assert thin(*records, 0.2, 5).plugs.equals(thin(*records, 0.2, 5).plugs)
    assert len({tuple(thin(*records, 0.2, seed).plugs["plugs"]) for seed in range(6)}) > 1


def test_the_truth_is_the_untouched_records(records):
    scenes, notes = thinning_scenes(*records, "UTC", (0.1, 0.2), "station")
    assert [scene.labels for scene in scenes] == [{"removed": 0.1}, {"removed": 0.2}]
    assert all(scene.run == 0 and scene.tells_all for scene in scenes)
    assert "3 sites" in notes[0]
    for scene in scenes:
        panel = scene.panel
        assert panel.height == 3 * 24 * DAYS
        assert panel["y_true"].sum() == pytest.approx(records[0]["energy_kwh"].sum())
        assert (panel["y"] <= panel["y_true"] + 1e-9).all()
        assert panel["y"].sum() / panel["y_true"].sum() == pytest.approx(1 - scene.labels["removed"], abs=0.05)
        assert panel.select(pl.all().null_count()).row(0) == (0,) * panel.width
        hidden = panel.filter(pl.col("y") < pl.col("y_true") - 1e-9)
        assert hidden["exposure"].max() < 1


def test_every_run_removes_other_plugs(records):
    scenes, notes = thinning_scenes(*records, "UTC", (0.2,), "station", runs=4)
    assert [scene.run for scene in scenes] == [0, 1, 2, 3]
    assert len({scene.fingerprint() for scene in scenes}) > 1
    assert len({scene.panel["y_true"].sum() for scene in scenes}) == 1
    assert " to " in notes[1]


def test_a_station_of_unknown_power_links_no_others(records):
    lat = pl.Series([55.0, 55.0005, 55.001])
    near = records[1].with_columns(lat=lat, lon=pl.lit(12.0), power_kw=pl.Series([50.0, None, 3.7]))
    silent = records[0].filter(pl.col("station_id") != "b")
    assert merge_sites(silent, near)[1].height == 3
    assert merge_sites(silent, near.with_columns(power_kw=pl.Series([50.0, 50.0, 50.0])))[1].height == 1
    nothing_known = near.with_columns(power_kw=pl.lit(None, pl.Float64))
    assert merge_sites(silent.with_columns(energy_kwh=pl.lit(0.0)), nothing_known)[1].height == 1


def test_stations_beside_each_other_are_one_site(records):
    near = records[1].with_columns(lat=pl.Series([55.0, 55.0005, 55.1]), lon=pl.lit(12.0))
    merged, sites = merge_sites(records[0], near)
    assert sites.select("station_id", "plugs").rows() == [("a", 12), ("c", 6)]
    assert set(merged["station_id"]) == {"a", "c"}
    unplaced = records[1].with_columns(lat=pl.lit(None, pl.Float64), lon=pl.lit(None, pl.Float64))
    assert merge_sites(records[0], unplaced)[1].height == 3


def test_records_without_truth_and_shares_out_of_reach_are_refused(records):
    crowded = sessions(*visits("a", 3.0, 2, 0, DAYS, 3.0).rows)
    with pytest.raises(InputError, match="no truth in these records"):
        thinning_scenes(crowded, stations("a", plugs=[2]), "UTC")
    with pytest.raises(InputError, match="no share asked for can be reached"):
        thinning_scenes(*records, "UTC", (0.98,), "station")
    with pytest.raises(InputError, match="makes no sense"):
        thinning_scenes(*records, "UTC", (1.2,))


def test_the_verb_tests_models_on_files_of_ones_own(records, tmp_path):
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
