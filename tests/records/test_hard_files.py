"""Files that are easily read wrong: each is read correctly, or refused with the remedy."""

from __future__ import annotations

import datetime as dt
import itertools

import numpy as np
import polars as pl
import pytest

from unmet.errors import InputError
from unmet.records.sessions import Records, read_sessions

NOW = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)


def sessions(rows: int, stations: int = 4, plugs: int = 2, seed: int = 0) -> list[dict]:
    """Sessions over most of 2018, in order of time, one car at a time on a plug; local wall times."""
    random = np.random.default_rng(seed)
    free = dict.fromkeys(itertools.product(range(stations), range(1, plugs + 1)), dt.datetime(2018, 1, 2))
    made = []
    time = dt.datetime(2018, 1, 2, 6)
    for number in range(rows):
        time += dt.timedelta(minutes=int(random.integers(60, 60 * 24 * 300 // rows)))
        station, plug = list(free)[random.integers(len(free))]
        start = max(time, free[station, plug])
        end = start + dt.timedelta(minutes=int(random.integers(20, 300)))
        free[station, plug] = end + dt.timedelta(minutes=5)
        kwh = round(float(random.uniform(2, 7) * (end - start) / HOUR), 3)
        made.append({"id": number, "station": station, "plug": plug, "start": start, "end": end, "kwh": kwh})
    return sorted(made, key=lambda row: row["start"])


def times(records: Records) -> list[tuple[dt.datetime, dt.datetime]]:
    frame = records.sessions.with_columns(pl.col("session_id").cast(pl.Int64)).sort("session_id")
    return frame.select("start", "end").rows()


def expected(rows: list[dict]) -> list[tuple[dt.datetime, dt.datetime]]:
    return [
        (row["start"].replace(tzinfo=dt.UTC), row["end"].replace(tzinfo=dt.UTC))
        for row in sorted(rows, key=lambda r: r["id"])
    ]


DUNDEE = "Charging event,CP ID,Connector,Start Date,Start Time,End Date,End Time,Total kWh"


def dundee(rows: list[dict], form: str) -> str:
    lines = [
        f"{r['id']},CP{r['station']},{r['plug']},{r['start'].strftime(form)},{r['start']:%H:%M},{r['end'].strftime(form)},"
        f"{r['end']:%H:%M},{r['kwh']}"
        for r in rows
    ]
    return "\n".join([DUNDEE, *lines]) + "\n"


def test_a_councils_files_some_day_first_and_some_month_first(tmp_path):
    rows = sessions(600)
    (tmp_path / "a.csv").write_text(dundee(rows[:300], "%d/%m/%Y"))
    (tmp_path / "b.csv").write_text(dundee(rows[300:], "%m/%d/%Y"))
    both = dundee(rows[:300], "%d/%m/%Y") + dundee(rows[300:], "%m/%d/%Y").split("\n", 1)[1]
    (tmp_path / "c.csv").write_text(both)
    for files in (["a.csv", "b.csv"], ["c.csv"]):
        records = read_sessions([tmp_path / name for name in files], mapping={"time_zone": "UTC"}, now=NOW)
        assert set(records.formats.values()) == {"dundee"}
        assert records.rejected.is_empty()
        assert times(records) == expected(rows)
        assert any("day_first" in note for note in records.notes)


def test_one_clock_reset_to_2000_does_not_make_a_panel_of_eighteen_years(tmp_path):
    rows = sessions(500)
    reset = rows[200] | {"start": dt.datetime(2000, 1, 1, 0, 1), "end": dt.datetime(2000, 1, 1, 1)}
    (tmp_path / "a.csv").write_text(dundee([*rows[:200], reset, *rows[201:]], "%d/%m/%Y"))
    records = read_sessions(tmp_path / "a.csv", mapping={"time_zone": "UTC"}, now=NOW)
    assert records.counts["start_far_away"] == 1
    line, value, reason = records.rejected.select("line", "value", "reason").row(0)
    assert (line, value) == (202, "2000-01-01T00:01:00Z")
    assert "18.0 years away" in reason
    assert records.sessions["start"].min().year == 2018
    assert records.counts["rows_in"] == records.counts["rows_kept"] + records.counts["rows_set_aside"] == 500


BELIB = (
    "Parc;Site;Station;Borne;Type de prise;Prise de courant;Date de début;Jour de début;Mois de début;Année de début;"
    "Heure de début ;Minute de Début;Date de fin;Jour de fin;Mois de fin;Année de fin;Heure de fin;Minute de fin;"
    "L'énergie (Wh);UUID Badge"
)


def belib(rows: list[dict]) -> str:
    lines = [BELIB]
    for r in rows:
        written = [f"{t:%a %b %d %Y %H:%M:%S} GMT+0100 (CET)" for t in (r["start"], r["end"])]
        parts = [f"{t.day};{t.month};{t.year};{t.hour};{t.minute}" for t in (r["start"], r["end"])]
        place = f"VDP;;RUE {r['station']};RUE {r['station']}-0;TE;{r['plug']}{1 + r['id'] % 3}"
        lines.append(f"{place};{written[0]};{parts[0]};{written[1]};{parts[1]};{r['kwh'] * 1000:.0f};{r['id']:08X}")
    return "\n".join(lines) + "\n"


def test_javascript_dates_and_posts_with_sockets(tmp_path):
    rows = sessions(300)
    (tmp_path / "belib.csv").write_text(belib(rows))
    records = read_sessions(tmp_path / "belib.csv", now=NOW)
    assert records.formats == {str(tmp_path / "belib.csv"): "belib"}
    assert records.rejected.is_empty()
    starts = [row["start"].replace(tzinfo=dt.UTC) - HOUR for row in rows]
    assert records.sessions["start"].to_list() == starts
    assert records.sessions["energy_kwh"].sum() == pytest.approx(sum(row["kwh"] for row in rows), abs=0.3)
    counts = records.sessions.select(pl.col("station_id", "post_id", "plug_id").n_unique()).row(0)
    assert counts[:2] == (4, 8)
    assert counts[2] > 8


def test_dates_in_five_columns_can_be_mapped(tmp_path):
    rows = sessions(300)
    (tmp_path / "belib.csv").write_text(belib(rows))
    parts = {
        "start": "Jour de début+Mois de début+Année de début+Heure de début+Minute de Début",
        "end": "Jour de fin+Mois de fin+Année de fin+Heure de fin+Minute de fin",
        "time_zone": "UTC",
    }
    records = read_sessions(tmp_path / "belib.csv", mapping=parts, now=NOW)
    assert records.sessions["start"].to_list() == [row["start"].replace(tzinfo=dt.UTC) for row in rows]


def test_positions_in_swiss_metres(tmp_path):
    (tmp_path / "colonnine.csv").write_text(
        "ChargingStationId,ChargingStationName,X,Y\n0,A,714540.305,101094.698\n1,B,713778.841,96855.316\n2,C,,\n3,D,,\n"
    )
    (tmp_path / "a.csv").write_text(dundee(sessions(100), "%d/%m/%Y").replace("CP", "").replace(" ID", "CP ID"))
    records = read_sessions(tmp_path / "a.csv", stations=tmp_path / "colonnine.csv", now=NOW)
    assert records.counts["stations_unknown"] == 0
    placed = records.stations.drop_nulls("lat")
    assert placed.select("lat", "lon").row(0) == pytest.approx((46.0517, 8.9186), abs=1e-3)
    assert any("EPSG:21781" in note for note in records.notes)


def test_station_tables_with_other_column_names(tmp_path):
    (tmp_path / "stations.csv").write_text("Site,Anzahl\nCP0,2\nCP1,2\nCP2,2\nCP3,2\n")
    (tmp_path / "a.csv").write_text(dundee(sessions(100), "%d/%m/%Y"))
    with pytest.raises(InputError, match="--map-stations station_id=COLUMN"):
        read_sessions(tmp_path / "a.csv", stations=tmp_path / "stations.csv", now=NOW)
    mapping = {"station_id": "Site", "plugs": "Anzahl"}
    records = read_sessions(tmp_path / "a.csv", stations=tmp_path / "stations.csv", station_mapping=mapping, now=NOW)
    assert records.stations["plugs"].to_list() == [2] * 4
    assert records.rejected.is_empty()


def at_sites(rows: list[dict]) -> str:
    """Posts of one site, whose connectors are all numbered 1 and 2."""
    lines = dundee(rows, "%d/%m/%Y").splitlines()
    return "\n".join([lines[0] + ",Site", *(f"{line},Centre" for line in lines[1:])]) + "\n"


def test_connectors_numbered_anew_at_every_post(tmp_path):
    rows = [row | {"id": n} for n, row in enumerate(sessions(3000, stations=6))]
    (tmp_path / "a.csv").write_text(at_sites(rows))
    path = tmp_path / "a.csv"
    truth = expected(rows)
    found = read_sessions(path, mapping={"station_id": "Site", "time_zone": "UTC"}, now=NOW)
    assert found.counts["ends_cut_short"] == 0
    assert times(found) == truth
    assert found.sessions["plug_id"].n_unique() == 12
    assert any("'CP ID'" in note for note in found.notes)
    said = {"station_id": "Site", "plug_id": "CP ID+Connector", "time_zone": "UTC"}
    mapped = read_sessions(path, mapping=said, now=NOW)
    assert times(mapped) == truth
    assert mapped.sessions["plug_id"].unique().sort()[0] == "CP0/1"
    believed = read_sessions(path, mapping={"station_id": "Site", "plug_id": "Connector"}, now=NOW)
    assert any('--map "plug_id=CP ID+PLUG"' in note for note in believed.notes)


def test_own_columns_without_a_zone(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("session_id,station_id,start,end,energy_kwh\n1,A,2018-07-02 10:00:00,2018-07-02 12:00:00,20\n")
    local = read_sessions(path, time_zone="Europe/Copenhagen", now=NOW)
    assert local.sessions["start"][0] == dt.datetime(2018, 7, 2, 8, tzinfo=dt.UTC)
    assert not any("without a zone" in note for note in local.notes)


def test_a_station_table_with_fewer_plugs_than_cars(tmp_path):
    rows = sessions(3000, stations=2, plugs=3)
    (tmp_path / "a.csv").write_text(dundee(rows, "%d/%m/%Y"))
    table = pl.DataFrame({"station_id": ["CP0", "CP1"], "plugs": [2, 3]})
    records = read_sessions(tmp_path / "a.csv", stations=table, now=NOW)
    assert records.stations["plugs"].to_list() == [2, 3]  # what the table says stays
    note = next(note for note in records.notes if "more cars at once" in note)
    assert "1 of 2 stations" in note
    assert "CP0 with 2 plugs had up to 3 cars" in note


def test_restarts_are_one_arrival_each(tmp_path):
    rows = sessions(200)
    lines = ["session_id,station_id,plug_id,start,end,energy_kwh,user_id"]
    for row in rows:
        middle = row["start"] + dt.timedelta(minutes=3)
        user = "Sconosciuto" if row["id"] % 10 == 0 else row["id"]
        for part, (start, end) in enumerate(((row["start"], middle), (middle + dt.timedelta(minutes=2), row["end"]))):
            lines.append(f"{row['id']}-{part},S{row['station']},{row['plug']},{start},{end},{row['kwh'] / 2},{user}")
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    records = read_sessions(tmp_path / "a.csv", now=NOW)
    assert records.counts["restarts_joined"] == 180
    assert records.sessions.height == 220
    assert records.counts["rows_kept"] == 400
    assert records.sessions["energy_kwh"].sum() == pytest.approx(sum(row["kwh"] for row in rows))
    assert read_sessions(tmp_path / "a.csv", now=NOW, join_minutes=0).sessions.height == 400


def test_watt_hours_few_sessions_and_several_missing_columns(tmp_path):
    rows = sessions(50)
    lines = ["station_id,start,end,energy"] + [
        f"S{r['station']},{r['start']},{r['end']},{r['kwh'] * 1000:.0f}" for r in rows
    ]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    records = read_sessions(tmp_path / "a.csv", now=NOW)
    assert records.sessions["energy_kwh"].sum() == pytest.approx(sum(row["kwh"] for row in rows), abs=0.1)
    assert any("in Wh" in note for note in records.notes)
    assert any("only 50 sessions, too few" in note for note in records.notes)
    renamed = "\n".join(["Wo,Steckbeginn,Steckende,Menge", *lines[1:]])
    (tmp_path / "b.csv").write_text(renamed + "\n")
    with pytest.raises(InputError) as error:
        read_sessions(tmp_path / "b.csv", now=NOW)
    said = str(error.value)
    assert all(f"--map {entry}=" in said for entry in ("start", "end", "energy_kwh", "station_id"))
    assert "start=Steckbeginn" in said
    assert "end=Steckende" in said
    assert "energy_kwh=Menge" in said
