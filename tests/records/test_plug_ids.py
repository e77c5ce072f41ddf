"""Ids of plugs that start again at every post are told apart by the column of the post."""

from __future__ import annotations

import polars as pl

from unmet.csv_files import LINE
from unmet.records.plug_ids import overlap_share, tell_plugs_apart

HOUR = 3_600_000


def posts(number: int, sessions: int = 200) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Sessions of two hours out of three at each plug 1 and 2 of some posts, all of one station."""
    rows = [
        (f"P{post}", str(plug), (3 * n + post % 3) * HOUR, (3 * n + post % 3 + 2) * HOUR)
        for n in range(sessions // number)
        for post in range(number)
        for plug in (1, 2)
    ]
    rows.sort(key=lambda row: row[2])
    post, plug, start, end = zip(*rows, strict=True)
    lines = pl.Series(LINE, range(2, len(rows) + 2), dtype=pl.UInt32)
    typed = pl.DataFrame([lines]).with_columns(
        station_id=pl.lit("S"), plug_id=pl.Series(plug), start=pl.Series(start), end=pl.Series(end)
    )
    raw = pl.DataFrame([lines]).with_columns(
        pl.Series("Charge Point", post),
        pl.Series("Connector", plug),
        pl.Series("Colour", ["red", "blue"] * (len(rows) // 2)),
    )
    return typed, raw


def test_the_post_becomes_part_of_the_id():
    typed, raw = posts(4)
    assert overlap_share(typed, typed["plug_id"]) > 0.5
    told, note = tell_plugs_apart(typed, raw, {"Connector"}, is_settled=False)
    assert told["plug_id"].n_unique() == 8
    assert told["post_id"].n_unique() == 4
    assert overlap_share(told, told["plug_id"]) == 0
    assert "'Charge Point'" in (note or "")


def test_the_user_is_believed_and_told_the_remedy():
    typed, raw = posts(4)
    told, note = tell_plugs_apart(typed, raw, {"Connector"}, is_settled=True)
    assert told.equals(typed)
    assert '--map "plug_id=Charge Point+PLUG"' in (note or "")


def test_without_a_column_of_posts_a_hopeless_id_is_not_used():
    typed, raw = posts(4)
    told, note = tell_plugs_apart(typed, raw.drop("Charge Point"), {"Connector"}, is_settled=False)
    assert "plug_id" not in told.columns
    assert "--map plug_id=POST+PLUG" in (note or "")


def test_ids_that_are_unique_stay():
    typed, raw = posts(1)
    told, note = tell_plugs_apart(typed, raw, {"Connector"}, is_settled=False)
    assert note is None
    assert told.equals(typed)


def test_rows_told_twice_do_not_overlap():
    typed, _ = posts(1)
    twice = pl.concat([typed, typed]).sort("start")
    assert overlap_share(twice, twice["plug_id"]) == 0
