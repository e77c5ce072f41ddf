"""`unmet recover` as a person or a script meets it."""

from __future__ import annotations

import datetime as dt
import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from unmet.cli import app, main
from unmet.models.recover import ALL

QUICK = ("--seeds", 1, "--epochs", 1, "--lags", 24, "--horizon", 24, "--backbone", "seasonal", "--workers", 1)
MONDAY = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
DAYS = 28
STATIONS = {"station_id": ["a", "b", "c", "d"], "lat": [55.60, 55.61, 55.70, 55.71], "lon": [12.5] * 4,
            "plugs": [1, 1, 2, 2]}  # fmt: skip
DRAWS = ("--draws", 40)


def sessions(seed: int = 1) -> pl.DataFrame:
    """Two hours at a plug for whoever finds one free; at the first two stations many do not."""
    rng = np.random.default_rng(seed)
    rows = []
    for station, plugs, rate in zip(STATIONS["station_id"], STATIONS["plugs"], (0.5, 0.4, 0.3, 0.2), strict=True):
        free = np.zeros(plugs)
        for time in np.sort(rng.uniform(0, 24 * DAYS, rng.poisson(rate * 24 * DAYS))):
            plug = int(free.argmin())
            if free[plug] <= time:
                free[plug] = time + 2
                rows.append((station, time, time + 2, 5 + 10 * rng.random()))
    table = pl.DataFrame(rows, schema=["station_id", "start", "end", "energy_kwh"], orient="row")
    moment = (pl.lit(MONDAY) + pl.duration(seconds=(pl.col("start", "end") * 3600).cast(pl.Int64))).name.keep()
    return table.with_columns(moment)


def run(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.exception
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A panel from records, the same without its stations, and models of it with and without exposure."""
    made = tmp_path_factory.mktemp("recover")
    sessions().write_parquet(made / "sessions.parquet")
    pl.DataFrame(STATIONS).write_csv(made / "stations.csv")
    options = ("--stations", made / "stations.csv", "--regions", 2, "--time-zone", "Europe/Copenhagen")
    run("panel", made / "sessions.parquet", *options, "--out", made / "panel")
    run("fit", made / "panel", "--out", made / "model", *QUICK)
    run("fit", made / "panel", "--out", made / "unaware", *QUICK, "--likelihood", "quantile")
    return made


@pytest.fixture(scope="module")
def said(folder) -> dict:
    out = run("recover", folder / "model", folder / "panel", "--out", folder / "out", *DRAWS, "--json")
    return json.loads(out)


@pytest.fixture
def refused(folder, capsys, monkeypatch):
    """Call the command where it must refuse: the sentence that it gives."""

    def call(*arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", ["unmet", *map(str, arguments), "--out", str(folder / "refused")])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        text = capsys.readouterr()
        assert (ended.value.code, text.out) == (2, "")
        assert len(text.err.strip().splitlines()) == 1
        assert not (folder / "refused").exists()
        assert not list(folder.glob(".refused*"))
        return text.err

    return call


def test_the_summary_adds_up(folder, said):
    tables = {
        name: pl.read_parquet(folder / "out" / f"{name}.parquet") for name in ("hours", "weeks", "regions", "stations")
    }
    panel = pl.read_parquet(folder / "panel" / "panel.parquet")
    assert (said["regions"], said["hours"]) == (2, 24 * DAYS)
    assert said["observed_kwh"] == pytest.approx(panel["y"].sum(), abs=0.01)
    assert said["observed_arrivals"] == panel["arrivals"].sum()
    every = tables["weeks"].filter(pl.col("unique_id") == ALL)
    alone = tables["weeks"].filter(pl.col("unique_id") != ALL)
    for name in ("kwh", "arrivals"):
        observed, lost, true = (said[f"{kind}_{name}"] for kind in ("observed", "lost", "true"))
        assert observed + lost == pytest.approx(true, abs=0.01)
        assert 0 < said[f"lost_{name}_low"] < lost < said[f"lost_{name}_high"]
        for table in (tables["hours"], tables["regions"], every, alone):
            assert table[f"lost_{name}"].sum() == pytest.approx(lost, rel=1e-4)
        assert tables["stations"][f"lost_{name}"].sum() == pytest.approx(lost, rel=0.1)
        assert said[f"true_{name}_high"] - said[f"lost_{name}_high"] == pytest.approx(observed, abs=0.01)
    assert said["lost_share"] == pytest.approx(said["lost_kwh"] / said["true_kwh"], abs=1e-6)
    assert said["from_data"] + said["from_calendar"] + said["from_neighbours"] == pytest.approx(1, abs=1e-5)
    lent = said["lost_from_calendar"] + said["lost_from_neighbours"]
    assert said["from_data"] == pytest.approx(1 - lent * said["lost_share"], abs=1e-5)
    assert json.loads((folder / "out" / "summary.json").read_text()) == {k: v for k, v in said.items() if k != "out"}


def test_the_worst_places_come_first(folder, said):
    regions = said["regions_most_lost"]
    assert sum(row["lost_kwh"] for row in regions) == pytest.approx(said["lost_kwh"], rel=1e-4)
    assert [row["lost_kwh"] for row in regions] == sorted((row["lost_kwh"] for row in regions), reverse=True)
    assert all(row["lost_kwh_low"] < row["lost_kwh"] < row["lost_kwh_high"] for row in regions)
    stations = [row["station_id"] for row in said["stations_most_lost"]]
    assert stations[:2] == ["a", "b"]
    assert len(stations) == 3


def test_the_page_says_the_answer_first_and_people_get_tables(folder, said):
    out = run("recover", folder / "model", folder / "panel", "--out", folder / "told", *DRAWS)
    assert "Stations that lost most" in out
    assert "of it borrowed from neighbours" in out
    page = (folder / "told" / "recovery.html").read_text()
    assert f"of charging demand ({100 * said['lost_share']:.1f} %, between" in page
    assert all(f'id="{name}"' in page for name in ("recovered-weeks", "recovered-regions", "table"))


def test_the_same_seed_gives_the_same_bytes(folder, said):
    for name, seed in (("again", 1), ("other", 2)):
        run("recover", folder / "model", folder / "panel", "--out", folder / name, *DRAWS, "--seed", seed)
    files = sorted(path.name for path in (folder / "out").iterdir())
    tables = ["hours.parquet", "regions.parquet", "stations.parquet", "weeks.parquet"]
    assert files == sorted([*tables, ".unmet-run", "recovery.html", "summary.json"])
    for name in files:
        assert (folder / "again" / name).read_bytes() == (folder / "out" / name).read_bytes(), name
    for name in tables:
        assert (folder / "other" / name).read_bytes() != (folder / "out" / name).read_bytes(), name


def test_since_leaves_earlier_hours_out(folder, said):
    out = run("recover", folder / "model", folder / "panel", "--out", folder / "late", *DRAWS, "--json",
              "--since", "2024-01-17")  # fmt: skip
    late = json.loads(out)
    assert late["first_hour"] == "2024-01-17T00:00Z"
    assert late["hours"] == 24 * 12
    stations = pl.read_parquet(folder / "late" / "stations.parquet")
    assert stations["observed_kwh"].sum() == pytest.approx(late["observed_kwh"], abs=0.01)
    assert late["lost_kwh"] == pytest.approx(said["lost_kwh"] * 12 / DAYS, rel=0.5)


def test_a_panel_without_stations_gives_none(folder):
    file = folder / "panel" / "panel.parquet"
    summary = json.loads(run("recover", folder / "model", file, "--out", folder / "file", *DRAWS, "--json"))
    assert summary["stations_most_lost"] == []
    assert not (folder / "file" / "stations.parquet").exists()
    assert "Regions in numbers" in (folder / "file" / "recovery.html").read_text()


def test_times_in_which_nobody_could_be_seen_are_told(folder):
    panel = pl.read_parquet(folder / "panel" / "panel.parquet")
    name = panel["unique_id"][0]
    dark = (pl.col("unique_id") == name) & (pl.col("ds") < MONDAY + dt.timedelta(days=9))
    shut = panel.with_columns(
        pl.when(dark).then(0).otherwise(column).alias(column) for column in ("exposure", "arrivals", "y")
    )
    shut.write_parquet(folder / "shut.parquet")
    out = run("recover", folder / "model", folder / "shut.parquet", "--out", folder / "shut", *DRAWS, "--json")
    (note,) = json.loads(out)["notes"]
    assert f"7 days or more on end in 1 region ({name} for 9 days)" in note


def test_what_cannot_be_recovered_is_one_sentence_and_nothing_is_written(folder, refused, tmp_path):
    panel = pl.read_parquet(folder / "panel" / "panel.parquet")
    panel.drop("exposure").write_parquet(tmp_path / "blind.parquet")
    panel.with_columns(unique_id=pl.lit("x") + pl.col("unique_id")).write_parquet(tmp_path / "other.parquet")
    model, given = folder / "model", folder / "panel"
    for arguments, says in (
        ((folder / "unaware", given), "fit one with exposure"),
        ((model, tmp_path / "blind.parquet"), "no column exposure"),
        ((model, tmp_path / "other.parquet"), "other regions than the model was fitted on"),
        ((model, given, "--since", "2030-01-01"), "no hour from 2030-01-01"),
        ((model, given, "--interval", 90), "between 0 and 1"),
        ((model, given, "--draws", 3), "at least 20"),
        ((model, tmp_path / "nothing"), "There is no panel at"),
        ((tmp_path, given), "There is no model at"),
    ):
        assert says in refused("recover", *arguments)


def test_damaged_tables_of_stations_are_told(folder, refused, tmp_path):
    for name in ("panel", "stations"):
        (tmp_path / f"{name}.parquet").write_bytes((folder / "panel" / f"{name}.parquet").read_bytes())
    (tmp_path / "station_hours.parquet").write_bytes(b"PAR1 and no more")
    assert "is damaged" in refused("recover", folder / "model", tmp_path)


def test_a_model_that_needs_exposure_says_what_to_do_without_it(folder, refused, tmp_path):
    panel = pl.read_parquet(folder / "panel" / "panel.parquet")
    panel.drop("arrivals", "exposure").write_parquet(tmp_path / "plain.parquet")
    sentence = refused("fit", tmp_path / "plain.parquet", *QUICK)
    assert "no column arrivals, exposure" in sentence
    assert "--likelihood censored-quantile" in sentence


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--waiting", "some"), "give auto, or a share from 0 to 1"),
        (("--spill", 1.2), "give auto, or a share from 0 to 1"),
        (("--energy", "all"), "choose one of seen, to-80"),
        (("--share", "0.3-0.2"), "as 0.25 or 0.2-0.3"),
    ],
)
def test_what_becomes_of_drivers_must_make_sense(folder, refused, options, says):
    assert says in refused("panel", folder / "sessions.parquet", *options)


def test_drivers_who_wait_or_are_seen_elsewhere_are_not_lost(folder):
    def lost(name: str, *options: object) -> dict:
        base = ("panel", folder / "sessions.parquet", "--stations", folder / "stations.csv", "--regions", 2)
        return json.loads(run(*base, *options, "--out", folder / name, "--json"))

    none, some = lost("p0", "--waiting", 0), lost("p1", "--waiting", 0.5, "--spill", "0.2", "--share", "0.2-0.3")
    assert (some["waiting"], some["spill"]) == (0.5, 0.2)
    for name in ("arrivals_lost_at_full_stations", "energy_lost_at_full_stations_kwh"):
        assert some[name] < 0.9 * none[name]
    assert "20 % are taken to be seen at another station" in (folder / "p1" / "panel.html").read_text()
    assert pl.read_parquet(folder / "p1" / "panel.parquet")["exposure_spread"].min() > 0
