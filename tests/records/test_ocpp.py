"""Transactions of OCPP logs become sessions: starts and stops in pairs, whatever else the log holds."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from unmet.records.sessions import Records, read_sessions

NOW = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)


def start(message: str, point: str = "CP1", at: str = "2024-05-01T08:00:00Z", **more: Any) -> dict[str, Any]:
    payload = {"connectorId": 2, "idTag": "TAG", "meterStart": 1000, "timestamp": at} | more
    return {"chargePointId": point, "message": [2, message, "StartTransaction", payload]}


def answer(message: str, transaction: int, point: str = "CP1") -> dict[str, Any]:
    content = {"transactionId": transaction, "idTagInfo": {"status": "Accepted"}}
    return {"chargePointId": point, "message": [3, message, content]}


def stop(
    transaction: int, point: str = "CP1", at: str = "2024-05-01T09:30:00Z", meter: float = 13_500
) -> dict[str, Any]:
    payload = {"transactionId": transaction, "meterStop": meter, "timestamp": at}
    return {"chargePointId": point, "message": [2, f"s{transaction}", "StopTransaction", payload]}


def read(tmp_path: Path, *messages: Any, lines: bool = True) -> Records:
    path = tmp_path / "log.json"
    path.write_text("\n".join(map(json.dumps, messages)) if lines else json.dumps(messages))
    records = read_sessions(path, now=NOW)
    assert records.formats == {str(path): "ocpp"}
    assert records.counts["rows_in"] == records.counts["rows_kept"] + records.rejected.height
    return records


@pytest.mark.parametrize("lines", [True, False])
def test_a_start_its_answer_and_its_stop_are_a_session(tmp_path, lines):
    heartbeat = {"chargePointId": "CP1", "message": [2, "h", "Heartbeat", {}]}
    records = read(tmp_path, start("17"), heartbeat, answer("17", 9), stop(9), lines=lines)
    columns = ("session_id", "station_id", "plug_id", "user_id", "energy_kwh")
    assert records.sessions.select(columns).rows() == [("9", "CP1", "2", "TAG", 12.5)]
    assert records.sessions["start"][0] == dt.datetime(2024, 5, 1, 8, tzinfo=dt.UTC)
    assert records.sessions["end"][0] == dt.datetime(2024, 5, 1, 9, 30, tzinfo=dt.UTC)


def test_charge_points_number_their_transactions_and_messages_on_their_own(tmp_path):
    both = [m for point in ("CP1", "CP2") for m in (start("1", point), answer("1", 1, point), stop(1, point))]
    records = read(tmp_path, *both)
    assert records.sessions["station_id"].to_list() == ["CP1", "CP2"]


def test_messages_in_parts(tmp_path):
    begin = {
        "chargeBoxId": "CP1",
        "action": "StartTransaction",
        "transactionId": 4,
        "payload": {"connectorId": 1, "idTag": "A", "meterStart": 0, "timestamp": "2024-05-01T08:00:00Z"},
    }
    end = {
        "chargeBoxId": "CP1",
        "action": "StopTransaction",
        "payload": {"transactionId": 4, "meterStop": 2000, "timestamp": "2024-05-01T09:00:00Z"},
    }
    assert read(tmp_path, end, begin).sessions["energy_kwh"].to_list() == [2.0]


def test_events_of_ocpp_2(tmp_path):
    def event(kind: str, at: str, reading: float, unit: str = "Wh") -> dict[str, Any]:
        sample = {"value": reading, "unitOfMeasure": {"unit": unit}}
        return {
            "chargingStationId": "CS1",
            "message": [
                2,
                at,
                "TransactionEvent",
                {
                    "eventType": kind,
                    "timestamp": at,
                    "transactionInfo": {"transactionId": "abc"},
                    "evse": {"id": 3, "connectorId": 1},
                    "idToken": {"idToken": "T", "type": "ISO14443"},
                    "meterValue": [{"timestamp": at, "sampledValue": [sample, {"value": 9e9, "measurand": "Voltage"}]}],
                },
            ],
        }

    records = read(
        tmp_path,
        event("Started", "2024-05-01T08:00:00Z", 500),
        event("Updated", "2024-05-01T08:30:00Z", 4.5, "kWh"),
        event("Ended", "2024-05-01T09:00:00Z", 8500),
    )
    columns = ("session_id", "station_id", "plug_id", "user_id", "energy_kwh")
    assert records.sessions.select(columns).rows() == [("abc", "CS1", "3", "T", 8.0)]


def test_what_is_not_a_pair_is_set_aside_with_the_reason(tmp_path):
    records = read(
        tmp_path,
        *(start("1"), answer("1", 1), stop(1)),
        stop(7),
        start("8"),
        *(start("9"), answer("9", 9)),
        {"message": [2, "1", "StopTransaction", {"transactionId": 1}]},
        17,
    )
    reasons = dict(records.rejected.select("line", "reason").rows())
    assert "no start" in reasons[4]
    assert "not answered" in reasons[5]
    assert "still open" in reasons[6]
    assert "the charge point is unknown" in reasons[8]
    assert "not an object" in reasons[9]
    assert records.sessions.height == 1


@pytest.mark.parametrize("key", ["msg", "frame", "ocppMessage"])
@pytest.mark.parametrize("as_text", [True, False])
def test_messages_under_other_names(tmp_path, key, as_text):
    renamed = [
        {"cp": one["chargePointId"], key: json.dumps(one["message"]) if as_text else one["message"]}
        for one in (start("17"), answer("17", 9), stop(9))
    ]
    assert read(tmp_path, *renamed).sessions["energy_kwh"].to_list() == [12.5]


def test_answers_in_the_object_of_their_call(tmp_path):
    begin = {"cp": "CP1", "msg": start("17")["message"], "response": answer("17", 9)["message"]}
    end = {"cp": "CP1", "response": [3, "s9", {}], "msg": stop(9)["message"]}
    assert read(tmp_path, begin, end).sessions["session_id"].to_list() == ["9"]
    begin = {"cp": "CP1", "action": "StartTransaction", "request": start("17")["message"][3]}
    end = {"cp": "CP1", "action": "StopTransaction", "request": stop(9)["message"][3], "response": {}}
    records = read(tmp_path, begin | {"response": {"transactionId": 9}}, end)
    assert records.sessions["energy_kwh"].to_list() == [12.5]
