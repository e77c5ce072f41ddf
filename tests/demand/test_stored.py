"""Stored panels: they are read as they were written, and damaged ones are refused in one sentence."""

from __future__ import annotations

import json

import polars as pl
import pytest

from tests.small_network import STATIONS, records
from unmet.demand.market import Market
from unmet.demand.panel import Panel
from unmet.demand.stored import holds_panel, load_panel, read_panel, save_panel
from unmet.errors import InputError

TABLES = ("table", "sessions", "stations", "sites", "everyone", "outages")


def panel(**options) -> Panel:
    return Panel(records(14)[0], STATIONS, regions=2, time_zone="Europe/Copenhagen", country="DK", **options)


def assert_same(one: Panel, other: Panel) -> None:
    for name in TABLES:
        assert getattr(one, name).equals(getattr(other, name)), name
        assert getattr(one, name).schema == getattr(other, name).schema, name
    assert one.regions.centres.equals(other.regions.centres)
    assert one.regions.of_station.equals(other.regions.of_station)
    for name in ("market", "time_zone", "country", "notes"):
        assert getattr(one, name) == getattr(other, name), name


@pytest.mark.parametrize("market", [None, Market(share=0.25), Market(share=(0.2, 0.3)), Market(operator="Ours")])
def test_a_panel_is_read_as_it_was_written(market, tmp_path):
    stations = STATIONS.with_columns(operator=pl.Series(["Ours", "Theirs", "Ours", "Theirs", "Ours", "Ours"]))
    built = Panel(records(14)[0], stations, regions=2, market=market)
    built.save(tmp_path / "panel")
    assert holds_panel(tmp_path / "panel")
    assert_same(built, Panel.load(tmp_path / "panel"))


def test_a_panel_without_positions_and_plugs_is_read_as_it_was_written(tmp_path):
    built = Panel(records(14)[0].drop("plug_id"), STATIONS.select("station_id"))
    save_panel(built, tmp_path / "panel")
    assert_same(built, load_panel(tmp_path / "panel"))


def test_a_folder_is_replaced_only_when_asked(tmp_path):
    built = panel()
    save_panel(built, tmp_path / "panel")
    with pytest.raises(InputError, match="not empty"):
        save_panel(built, tmp_path / "panel")
    save_panel(built, tmp_path / "panel", overwrite=True)
    assert_same(built, load_panel(tmp_path / "panel"))
    (tmp_path / "panel" / "sessions.parquet").write_bytes(b"changed by somebody")
    with pytest.raises(InputError, match=r"changed since \(sessions.parquet\)"):
        save_panel(built, tmp_path / "panel", overwrite=True)


def test_the_table_of_a_panel_can_be_read_alone(tmp_path):
    built = panel()
    save_panel(built, tmp_path / "panel")
    stored = read_panel(tmp_path / "panel")
    assert stored.table.select(built.table.columns).equals(built.table)
    assert stored.regions is not None
    assert stored.regions.equals(built.regions.centres)
    assert stored.time_zone == "Europe/Copenhagen"
    assert stored.source == tmp_path / "panel" / "panel.parquet"
    assert read_panel(stored.source).regions is None


def change(file, **columns):
    table = pl.read_parquet(file)
    table.with_columns(**columns).write_parquet(file)


DAMAGES = {
    "no such folder": (lambda path: path.rename(path.with_name("gone")), "no panel at"),
    "a file is missing": (lambda path: (path / "sites.parquet").unlink(), "sites.parquet is missing"),
    "two files are missing": (
        lambda path: [(path / f"{name}.parquet").unlink() for name in ("sites", "outages")], "are missing",
    ),
    "a file is cut off": (lambda path: (path / "sessions.parquet").write_bytes(b"PAR1 and no more"), "cannot be read"),
    "a column is missing": (
        lambda path: pl.read_parquet(path / "stations.parquet").drop("capacity").write_parquet(
            path / "stations.parquet"
        ), "no column capacity",
    ),
    "a column of another type": (
        lambda path: change(path / "sessions.parquet", energy_kwh=pl.col("energy_kwh").cast(pl.String)),
        "energy_kwh of sessions.parquet holds String",
    ),
    "an empty cell": (
        lambda path: change(path / "sessions.parquet", end=pl.lit(None, pl.Datetime("ms", "UTC"))), "has empty cells",
    ),
    "a session elsewhere": (lambda path: change(path / "sessions.parquet", station_id=pl.lit("x")), "'x'"),
    "a region elsewhere": (lambda path: change(path / "panel.parquet", unique_id=pl.lit("x")), "regions.parquet"),
    "an hour is missing": (
        lambda path: pl.read_parquet(path / "panel.parquet")[1:].write_parquet(path / "panel.parquet"), "every hour",
    ),
    "no JSON": (lambda path: (path / "panel.json").write_text("{"), "panel.json"),
    "JSON without a market": (lambda path: (path / "panel.json").write_text('{"time_zone": "UTC"}'), "panel.json"),
    "no such zone": (
        lambda path: (path / "panel.json").write_text(
            json.dumps(json.loads((path / "panel.json").read_text()) | {"time_zone": "Mars/North"})
        ), "Mars/North",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGES)
def test_a_damaged_panel_is_refused_in_one_sentence(case, tmp_path):
    damage, says = DAMAGES[case]
    save_panel(panel(), tmp_path / "panel")
    load_panel(tmp_path / "panel")
    damage(tmp_path / "panel")
    with pytest.raises(InputError) as refused:
        load_panel(tmp_path / "panel")
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
