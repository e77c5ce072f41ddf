"""Lost demand area by area: a single area gives the usual estimate, areas add up, and workers make no difference."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.small_network import STATIONS, records
from unmet.demand.from_records import PanelChoices, panel_from_records
from unmet.errors import InputError
from unmet.estimation.lost_demand import LostDemand
from unmet.estimation.recover_areas import Places, recover_by_area, rows_beyond_memory

OPTIONS = {"waiting": None, "spill": None, "energies": "seen", "draws": 40, "interval": 0.9, "seed": 3}


@pytest.fixture(scope="module")
def choices(tmp_path_factory) -> PanelChoices:
    """Two towns, hundreds of kilometres apart, whose sessions are spread over two files."""
    folder = tmp_path_factory.mktemp("towns")
    sessions, stations = [], []
    for town in range(2):
        rows = records(35, seed=town + 1)[0].with_columns(pl.format(f"{town}{{}}", "station_id").alias("station_id"))
        sessions.append(
            rows.with_row_index("n").select(pl.format(f"{town}-{{}}", "n").alias("session_id"), pl.exclude("n"))
        )
        stations.append(
            STATIONS.with_columns(pl.format(f"{town}{{}}", "station_id").alias("station_id"), pl.col("lat") - 5 * town)
        )
    both = pl.concat(sessions).sort("start")
    (folder / "sessions").mkdir()
    both[::2].write_parquet(folder / "sessions" / "a.parquet")
    both[1::2].write_parquet(folder / "sessions" / "b.parquet")
    pl.concat(stations).write_parquet(folder / "stations.parquet")
    return PanelChoices(files=(folder / "sessions",), stations=folder / "stations.parquet", regions="1")


@pytest.fixture(scope="module")
def two_areas(choices, tmp_path_factory):
    return recover_by_area(choices, OPTIONS, tmp_path_factory.mktemp("two"), areas=2, places=Places(workers=1))


def test_a_single_area_gives_the_usual_estimate(choices, tmp_path):
    panel, rejected, about = panel_from_records(choices)
    lost = LostDemand(**OPTIONS).fit(panel)
    added, set_aside, about_areas = recover_by_area(choices, OPTIONS, tmp_path, areas=1)
    assert_frame_equal(added.stations, lost.by_station())
    assert_frame_equal(added.sites, lost.by_site())
    assert_frame_equal(added.regions, lost.by_region())
    assert_frame_equal(added.weeks, lost.by_week())
    assert_frame_equal(added.hours.sort("unique_id", "ds"), lost.by_hour().sort("unique_id", "ds"))
    assert_frame_equal(added.sensitivity, lost.sensitivity())
    summary = lost.summary()
    for name, value in summary.items():
        if name in ("components", "notes"):
            assert set(added.summary[name]) == set(value)
        else:
            assert json.dumps(added.summary[name]) == pytest.approx(json.dumps(value)) or added.summary[
                name
            ] == pytest.approx(value)
    assert (set_aside.height, about_areas["rows_kept"]) == (rejected.height, about["rows_kept"])
    assert not list(tmp_path.iterdir())


def test_areas_add_up(two_areas, choices):
    added, _, about = two_areas
    assert added.summary["areas"] == added.areas.height == 2
    for name in ("kwh", "arrivals"):
        total = added.summary[f"lost_{name}"]["mean"]
        for table in (added.areas, added.sites, added.stations, added.regions, added.hours):
            assert table[f"lost_{name}"].sum() == pytest.approx(total)
        assert added.weeks.filter(pl.col("unique_id") == "all")[f"lost_{name}"].sum() == pytest.approx(total)
    recorded = pl.scan_parquet(choices.files[0] / "*.parquet").select(pl.len(), pl.sum("energy_kwh")).collect().row(0)
    assert about["rows_kept"] == added.areas["sessions"].sum() == recorded[0]
    assert added.sites["observed_kwh"].sum() == pytest.approx(recorded[1])
    assert added.hours["observed_kwh"].sum() == pytest.approx(recorded[1])


def test_the_first_area_consists_of_one_town(two_areas, choices):
    added, _, _ = two_areas
    first = added.areas.row(0, named=True)
    inside = [
        n
        for n in ("0", "1")
        if added.sites.filter(pl.col("site_id").str.starts_with(n))["lost_kwh"].sum()
        == pytest.approx(first["lost_kwh"])
    ]
    assert len(inside) == 1


def test_the_interval_of_a_total_assumes_errors_that_areas_share(two_areas):
    """Wider than if areas were independent, and no wider than the sum of their intervals."""
    added, _, _ = two_areas
    width = added.summary["lost_kwh"]["high"] - added.summary["lost_kwh"]["low"]
    single = (added.areas["lost_kwh_high"] - added.areas["lost_kwh_low"]).to_numpy()
    assert np.sqrt((single**2).sum()) < 1.25 * width
    assert width < 1.1 * single.sum()


def test_workers_make_no_difference(two_areas, choices, tmp_path):
    added, _, _ = two_areas
    again, _, _ = recover_by_area(choices, OPTIONS, tmp_path, areas=2, places=Places(workers=2))
    assert_frame_equal(again.hours, added.hours, check_exact=True)
    assert_frame_equal(again.sites, added.sites, check_exact=True)
    assert again.summary == added.summary


def test_a_cluster_of_two_workers_gives_the_same_result(two_areas, choices, tmp_path):
    distributed = pytest.importorskip("distributed")
    added, _, _ = two_areas
    # Threads of this process, which send each other everything as workers on other machines do;
    # `tests/study/test_same_results.py` has workers in processes of their own.
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp", host="127.0.0.1",
        dashboard_address="127.0.0.1:0", silence_logs=50,
    ) as cluster:  # fmt: skip
        again, _, _ = recover_by_area(
            choices, OPTIONS, tmp_path, areas=2, places=Places(scheduler=cluster.scheduler_address)
        )
    assert_frame_equal(again.hours, added.hours, check_exact=True)
    assert again.summary == added.summary


def test_records_that_cannot_be_divided_are_refused(choices, tmp_path):
    from dataclasses import replace

    with pytest.raises(InputError, match="--stations"):
        recover_by_area(replace(choices, stations=None), OPTIONS, tmp_path)
    with pytest.raises(InputError, match="--share"):
        recover_by_area(replace(choices, share="0.5"), OPTIONS, tmp_path)


def test_memory_decides_whether_areas_are_needed(choices, tmp_path, monkeypatch):
    monkeypatch.setenv("UNMET_MAX_MEMORY", "100MB")
    assert rows_beyond_memory(choices.files) == 0
    monkeypatch.setenv("UNMET_MAX_MEMORY", "0.5MB")
    assert rows_beyond_memory(choices.files) > 0
    assert rows_beyond_memory([tmp_path / "nothing"]) == 0
    with pytest.raises(InputError, match=r"ask for more areas with --by-area"):
        recover_by_area(choices, OPTIONS, tmp_path, areas=1)
