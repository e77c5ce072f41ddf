"""Small valid files of every kind, which fuzzing mutates."""

from __future__ import annotations

import datetime as dt
import io
import json

import polars as pl

TIME = dt.datetime(2024, 3, 4, 8, tzinfo=dt.UTC)


def sessions() -> pl.DataFrame:
    """Some sessions, as `unmet` writes them."""
    start = [TIME + dt.timedelta(hours=7 * i) for i in range(30)]
    return pl.DataFrame(
        {
            "session_id": [str(i) for i in range(30)],
            "station_id": [f"s{i % 3}" for i in range(30)],
            "start": start,
            "end": [time + dt.timedelta(hours=1 + i % 3) for i, time in enumerate(start)],
            "energy_kwh": [5.0 + i for i in range(30)],
        }
    )


def csv_of(frame: pl.DataFrame) -> bytes:
    return frame.write_csv().encode()


def parquet_of(frame: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()


def workbook_of(frame: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    frame.with_columns(pl.col("start", "end").dt.replace_time_zone(None)).write_excel(file)
    return file.getvalue()


def ocpi_cdrs() -> bytes:
    cdrs = [
        {
            "id": str(i), "start_date_time": f"2024-03-0{i}T08:00:00Z", "end_date_time": f"2024-03-0{i}T09:00:00Z",
            "cdr_location": {"id": "L1", "evse_uid": "E1", "connector_id": "1", "coordinates": {"latitude": "55.6",
            "longitude": "12.5"}}, "total_energy": 7.5, "last_updated": "2024-03-09T09:00:00Z",
        }
        for i in range(1, 4)
    ]  # fmt: skip
    return json.dumps({"data": cdrs, "status_code": 1000}).encode()


def operator_tables() -> list[bytes]:
    """Operators' CSV files: unmet's own; a semicolon, decimal commas and day first; one date with two times and Wh;
    a title, durations and half days; meter readings with offsets; changes of status.
    """
    own = csv_of(sessions().head(4))
    german = "Station;Beginn;Ende;Energie (kWh);Breite;L\u00e4nge\n" + "".join(
        f"A{i % 2};{i + 11}.03.2024 08:00;{i + 11}.03.2024 09:30;7,{i};55,6;12,5\n" for i in range(4)
    )
    times = "Date,Start time,End time,Site,Energy (Wh)\n" + "".join(
        f"2024-03-{i + 11},23:0{i},01:30,S{i % 2},{7000 + i}\n" for i in range(4)
    )
    titled = "Sessions of March|||\n\nStation|Start|Duration|kWh\n" + "".join(
        f"S{i % 2}|3/{i + 14}/2024 1:0{i} PM|1:{i + 10}:00|{i}.5\n" for i in range(4)
    )
    meters = "station_id,connector,start,end,meter_start,meter_end,user\n" + "".join(
        f"S,{i % 2},2024-03-{i + 11}T08:00:00+01:00,2024-03-{i + 11}T10:00:00+01:00,{100 + i},{107 + i},u{i}\n"
        for i in range(4)
    )
    status = "location_id,evse_uid,status,timestamp\n" + "".join(
        f"L1,E{i // 3},{word},2024-05-0{i + 1}T07:00:00Z\n"
        for i, word in enumerate(("AVAILABLE", "CHARGING", "AVAILABLE", "OUTOFORDER", "AVAILABLE"))
    )
    return [own, *(text.encode() for text in (german, times, titled, meters, status))]


def json_records() -> list[bytes]:
    """JSON files of records: OCPI, rows, nested rows, ACN-Data and an OCPP log."""
    rows = sessions().head(4)
    nested = [{"station": {"id": "A"}, "period": {"start": "2024-03-04T08:00:00Z", "end": "2024-03-04T09:00:00Z"},
               "energy_kwh": 7.5}]  # fmt: skip
    acn = {"_meta": {}, "_items": [{"_id": "5", "connectionTime": "Wed, 25 Apr 2018 11:08:04 GMT", "disconnectTime":
           "Wed, 25 Apr 2018 13:20:10 GMT", "doneChargingTime": None, "kWhDelivered": 7.9, "sessionID": "2_39_78_362",
           "siteID": "0002", "spaceID": "CA-1", "stationID": "2-39-78-362", "timezone": "America/Los_Angeles",
           "userID": None}]}  # fmt: skip
    ocpp = [
        {"chargePointId": "C", "message": [2, "1", "StartTransaction", {"connectorId": 2, "idTag": "T", "meterStart": 9,
         "timestamp": "2024-05-01T08:00:00Z"}]},
        {"chargePointId": "C", "message": [3, "1", {"transactionId": 7, "idTagInfo": {"status": "Accepted"}}]},
        {"chargePointId": "C", "message": [2, "2", "StopTransaction", {"transactionId": 7, "meterStop": 9000,
         "timestamp": "2024-05-01T09:00:00Z"}]},
    ]  # fmt: skip
    return [ocpi_cdrs(), rows.write_json().encode(), *(json.dumps(part).encode() for part in (nested, acn, ocpp))]


def trips() -> pl.DataFrame:
    start = [TIME + dt.timedelta(hours=3 * i) for i in range(12)]
    columns = {"vehicle_id": [f"v{i % 2}" for i in range(12)], "start_time": start,
               "end_time": [time + dt.timedelta(minutes=20) for time in start], "end_lat": [55.6] * 12,
               "end_lon": [12.5] * 12, "distance_km": [8.0] * 12}  # fmt: skip
    return pl.DataFrame(columns)


def gps_points() -> pl.DataFrame:
    times = [TIME + dt.timedelta(seconds=20 * i) for i in range(60)]
    return pl.DataFrame(
        {"vehicle_id": ["v"] * 60, "time": times, "lat": [55.6 + i / 1000 for i in range(60)], "lon": [12.5] * 60}
    )


def areas() -> bytes:
    square = [[[12, 55], [13, 55], [13, 56], [12, 56], [12, 55]]]
    feature = {"type": "Feature", "properties": {"name": "A"}, "geometry": {"type": "Polygon", "coordinates": square}}
    return json.dumps({"type": "FeatureCollection", "features": [feature]}).encode()


def ocpi_locations() -> bytes:
    connector = {"id": "1", "power_type": "AC_3_PHASE", "max_voltage": 220, "max_amperage": 16}
    evse = {"uid": "E1", "status": "AVAILABLE", "connectors": [connector], "last_updated": "2024-03-01T08:00:00Z"}
    place = {"id": "L1", "name": "Square", "coordinates": {"latitude": "55.6", "longitude": "12.5"}, "evses": [evse],
             "time_zone": "Europe/Copenhagen", "operator": {"name": "O"}}  # fmt: skip
    return json.dumps({"data": [place], "status_code": 1000}).encode()


ROADS = b"""<?xml version="1.0"?>
<network><nodes><node id="a" x="720000" y="6175000"/><node id="b" x="722000" y="6175000"/></nodes>
<links><link id="ab" from="a" to="b" length="2000"/><link id="ba" from="b" to="a" length="2000"/></links></network>"""
PLANS = b"""<?xml version="1.0"?>
<population><person id="p0"><plan selected="yes"><activity type="home" x="720000" y="6175000" end_time="07:00:00"/>
<leg mode="car" dep_time="07:00:00" trav_time="00:20:00"><route distance="2000.0"/></leg>
<activity type="work" link="ab" end_time="16:00:00"/><leg mode="car" dep_time="16:00:00" trav_time="00:20:00"/>
<activity type="home" x="720000" y="6175000"/></plan></person></population>"""
EVENTS = b"""<?xml version="1.0"?>
<events><event time="25200.0" type="departure" person="p0" link="ab" legMode="car"/>
<event time="25900.0" type="arrival" person="p0" link="ba" legMode="car"/></events>"""
OPERATOR_STATIONS = (
    "station_id;Name;Latitude;Longitude;Power;Plugs\nA;Caf\u00e9;55,6;12,5;22 kW;2\nB;;;;7400 W;x\n".encode()
)
SCENARIO = b"queue: first-come\npenetration: 0.05\nseed: 1\ncity:\n  trips: built-in\n  cars: 1000\nversion: 0.1.0\n"
MAPPING = b"start: [Date, Time]\nend: End\ntime_zone: Europe/Copenhagen\n"
