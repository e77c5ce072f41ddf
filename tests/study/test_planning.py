"""The study of plans, in a small simulated city where the truth is known."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from unmet.city.build import build_city
from unmet.simulation.simulate import prepare
from unmet.study.planning import PlanningStudy, planned_city, run_planning
from unmet.views.planning_study import planning_markdown, write_planning


@pytest.fixture(scope="module")
def small():
    """Three weeks of the built-in city."""
    city = build_city()
    first = city.period[0]
    weeks = city.trips.filter(pl.col("end_time") < first + pl.duration(days=21))
    return build_city(weeks, city.stations)  # all of its cars are electric: about as many as at 5 %


@pytest.fixture(scope="module")
def city(small):
    return planned_city(prepare(small), "first-come", 1.0, 1)


@pytest.fixture(scope="module")
def study(small, city):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unmet.study.planning.planned_city", lambda *_: city)  # estimated once for all tests
        return run_planning(
            lambda _: small, plugs=(20, 60), penetrations=(1.0,), seeds=(1,),
            methods=("observed", "time-full", "exposure"),
        )  # fmt: skip


def test_every_plan_is_simulated(study):
    table = study.table
    assert table.height == 2 * 4
    assert set(table["method"]) == {"observed", "time-full", "exposure", "truth"}
    assert (table["realised_kwh"] > 0).all()
    assert (table["realised_kwh"] < table["lost_kwh"]).all()
    more = table.pivot("plugs", index="method", values="realised_kwh")
    assert (more["60"] > more["20"]).all()
    promised = table.filter(pl.col("method") == "exposure")
    assert (promised["promised_kwh_low"] < promised["promised_kwh_high"]).all()


def test_plans_from_records_come_close_to_plans_from_the_truth(study):
    # Three weeks of records; the published study has three months.
    aware = study.table.filter(pl.col("method") == "exposure")["share"]
    assert aware.min() > 0.9


def test_the_plugs_of_a_plan_are_simulated(city):
    assert city.realised(np.zeros(city.panel.sites.height, np.int64)) == 0.0
    most = city.realised(np.full(city.panel.sites.height, 50, np.int64))
    assert most == pytest.approx(city.lost_kwh, rel=0.01)


def test_failed_targets_come_first():
    rows = [
        {"seed": 1, "penetration": 0.05, "plugs": 25, "method": name, "sites": 3, "lost_kwh": 100.0,
         "realised_kwh": gain, "promised_kwh": 50.0 if name == "exposure" else None,
         "promised_kwh_low": 45.0 if name == "exposure" else None,
         "promised_kwh_high": 55.0 if name == "exposure" else None, "share": gain / 50}
        for name, gain in (("observed", 30.0), ("time-full", 44.0), ("exposure", 43.0), ("truth", 50.0))
    ]  # fmt: skip
    study = PlanningStudy(pl.DataFrame(rows, infer_schema_length=None), "first-come")
    met = {what: ok for what, _, _, ok in study.targets()}
    assert list(met.values()) == [False, False, False, False]
    text = planning_markdown(study)
    assert text.index("**no**") < text.index("Promised and achieved")


def test_the_study_is_written_to_a_folder(study, tmp_path):
    write_planning(study, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "study.html", "study.md", "plans.parquet", "plans.csv", "summary.json",
    }  # fmt: skip
    assert pl.read_parquet(tmp_path / "plans.parquet").equals(study.table)
