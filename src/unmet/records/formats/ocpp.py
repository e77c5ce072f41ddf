"""Sessions from OCPP logs: pairs of StartTransaction and StopTransaction of 1.6, and TransactionEvent of 2.0.1.

A log is JSON, one message per line or in an array. Each names its charge point (`chargePointId`) and holds the message:
as the protocol sends it, `"message": [2, "17", "StartTransaction", {...}]`, under any name and perhaps as text, or in
parts, `"action"` and `"payload"` (or `"request"`). The number of a transaction is in the response to its start,
`[3, "17", {"transactionId": 9}]`, in the same object (`"response"`) or another one, or next to the payload. Other
messages are ignored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from unmet.records.formats.base import Format, Head, Raw
from unmet.records.formats.json_text import Reject, read_members, rejected_frame, text_frame
from unmet.records.mapping import Mapping

__all__ = ["OCPP"]

_COLUMNS = ("transaction", "charge_point", "connector", "id_tag", "start", "end", "energy_wh", "reason")
_MAPPING = Mapping(
    session_id="transaction",
    station_id="charge_point",
    plug_id="connector",
    user_id="id_tag",
    start="start",
    end="end",
    energy_kwh="energy_wh",
    energy_factor=0.001,
)
_CHARGE_POINT_NAMES = (
    "chargePointId",
    "charge_point_id",
    "chargePoint",
    "charge_point",
    "chargeBoxId",
    "chargingStationId",
    "cpId",
    "cp",
)
_ACTIONS = ("StartTransaction", "StopTransaction", "TransactionEvent")
_CALL, _RESPONSE = 2, 3  # kinds of messages in the protocol
_ACTION = re.compile(rf'"({"|".join(_ACTIONS)})\\?"')  # quotes are escaped if the message is text
_REGISTER = "Energy.Active.Import.Register"
Key = tuple[str, str]  # charge point, transaction
Message = tuple[int, str, str | None, dict[str, Any]]  # kind, id, action (None for responses), payload


@dataclass(slots=True)
class _Transaction:
    """What the log says about one transaction."""

    number: int  # number of the message in which it first appears
    cells: dict[str, str | None] = field(default_factory=dict)  # by column of _COLUMNS
    first_wh: float | None = None  # meter readings
    last_wh: float | None = None


def _matches(head: Head) -> bool:
    return head.kind == "json" and _ACTION.search(head.text) is not None


def _read(head: Head) -> Raw:
    log = _Log()
    for number, member in read_members(head.path, "messages"):
        log.add(number, member)
    sessions = text_frame(log.rows(), _COLUMNS)
    return Raw(_MAPPING, sessions, rejected=rejected_frame(sorted(log.rejects)))


class _Log:
    """The transactions in the part of a log that has been read."""

    def __init__(self) -> None:
        self.transactions: dict[Key, _Transaction] = {}
        self.waiting: dict[Key, tuple[int, dict[str, Any]]] = {}  # unanswered starts, by charge point and message
        self.rejects: list[Reject] = []

    def add(self, number: int, member: Any) -> None:
        """Add an object of the log; `number` counts them from 1."""
        if not isinstance(member, dict):
            self.rejects.append((number, "", str(member)[:200], "is not an object with a charge point and a message"))
            return
        point = next((str(member[name]) for name in _CHARGE_POINT_NAMES if member.get(name) not in (None, "")), None)
        for message in _messages(member):
            self._add_message(number, point, message, member)

    def _add_message(self, number: int, point: str | None, message: Message, member: dict[str, Any]) -> None:
        kind, identity, action, payload = message
        if kind == _RESPONSE and point is not None and (point, identity) in self.waiting:
            started, start = self.waiting.pop((point, identity))
            self._start(started, point, start, payload.get("transactionId"))
        elif action not in _ACTIONS:
            return
        elif point is None:
            self.rejects.append((number, "chargePointId", None, "is missing, so the charge point is unknown"))
        elif action == "StartTransaction":
            answer = _object(member.get("response", member.get("result")))
            transaction_id = payload.get("transactionId", member.get("transactionId", answer.get("transactionId")))
            if transaction_id is None:
                self.waiting[point, identity] = number, payload
            else:
                self._start(number, point, payload, transaction_id)
        elif action == "StopTransaction":
            self._stop(number, point, payload, payload.get("transactionId", member.get("transactionId")))
        else:
            self._event(number, point, payload)

    def _start(self, number: int, point: str, payload: dict[str, Any], transaction_id: Any) -> None:
        transaction = self._transaction(number, point, transaction_id)
        transaction.cells |= {
            "connector": _text(payload.get("connectorId")),
            "id_tag": _text(payload.get("idTag")),
            "start": _text(payload.get("timestamp")),
        }
        transaction.first_wh = _number(payload.get("meterStart"))

    def _stop(self, number: int, point: str, payload: dict[str, Any], transaction_id: Any) -> None:
        transaction = self._transaction(number, point, transaction_id)
        transaction.cells |= {"end": _text(payload.get("timestamp")), "reason": _text(payload.get("reason"))}
        transaction.last_wh = _number(payload.get("meterStop"))

    def _transaction(self, number: int, point: str, transaction_id: Any) -> _Transaction:
        """The transaction with this id, which is new if the log has not mentioned it before."""
        return self.transactions.setdefault((point, str(transaction_id)), _Transaction(number))

    def _event(self, number: int, point: str, payload: dict[str, Any]) -> None:
        info, evse, token = (_object(payload.get(name)) for name in ("transactionInfo", "evse", "idToken"))
        transaction = self._transaction(number, point, info.get("transactionId"))
        for name, value in (("connector", evse.get("id")), ("id_tag", token.get("idToken"))):
            if value is not None:
                transaction.cells.setdefault(name, _text(value))
        kind = payload.get("eventType")
        if kind in ("Started", "Ended"):
            transaction.cells["start" if kind == "Started" else "end"] = _text(payload.get("timestamp"))
        for reading in _registers(payload):
            transaction.first_wh = reading if transaction.first_wh is None else min(transaction.first_wh, reading)
            transaction.last_wh = reading if transaction.last_wh is None else max(transaction.last_wh, reading)

    def rows(self) -> Iterator[tuple[int, dict[str, str | None]]]:
        """The sessions, at the end of the log; transactions that are not complete are added to `rejects`."""
        for (point, identity), (number, payload) in self.waiting.items():
            self.rejects.append(
                (
                    number,
                    "transactionId",
                    _text(payload.get("idTag")),
                    f"of {point}: the start {identity} was not answered",
                )
            )
        for (point, transaction_id), transaction in sorted(self.transactions.items(), key=lambda item: item[1].number):
            number = transaction.number
            if "start" not in transaction.cells:
                self.rejects.append((number, "transactionId", transaction_id, "has a stop but no start in this log"))
                continue
            first_wh, last_wh = transaction.first_wh, transaction.last_wh
            energy = None if first_wh is None or last_wh is None else repr(last_wh - first_wh)
            added = {"transaction": transaction_id, "charge_point": point, "energy_wh": energy}
            yield number, transaction.cells | added


def _messages(member: dict[str, Any]) -> list[Message]:
    """The messages in an object, as arrays or logged in parts; calls come before responses."""
    frames = [frame for frame in map(_frame, member.values()) if frame is not None]
    return sorted(frames, key=lambda frame: frame[0]) or [_in_parts(member)]


def _frame(value: Any) -> Message | None:
    """A message as the protocol sends it, perhaps as text."""
    if isinstance(value, str) and value.lstrip()[:1] == "[":
        try:
            value = json.loads(value)
        except ValueError:
            return None
    if (
        not isinstance(value, list)
        or len(value) < 3
        or value[0] not in (_CALL, _RESPONSE)
        or not isinstance(value[1], str | int)
    ):
        return None
    if value[0] == _RESPONSE:
        return _RESPONSE, str(value[1]), None, _object(value[2])
    return (_CALL, str(value[1]), str(value[2]), _object(value[3])) if len(value) >= 4 else None


def _in_parts(member: dict[str, Any]) -> Message:
    """Kind, id, action and payload of a message that is logged in parts."""
    action = member.get("action")
    is_answer = str(member.get("type", member.get("messageType", ""))).lower() in (
        "3",
        "callresult",
        "response",
        "conf",
    )
    payload = next(
        (member[name] for name in ("payload", "request", "body") if isinstance(member.get(name), dict)), member
    )
    identity = str(member.get("messageId", member.get("uniqueId", member.get("id", ""))))
    return _RESPONSE if is_answer else _CALL, identity, None if is_answer else action, _object(payload)


def _registers(payload: dict[str, Any]) -> Iterator[float]:
    """Meter readings in an event [Wh]."""
    for value in payload.get("meterValue") or ():
        for sample in _object(value).get("sampledValue") or ():
            sample = _object(sample)
            reading = _number(sample.get("value"))
            if reading is not None and sample.get("measurand", _REGISTER) == _REGISTER:
                unit = _object(sample.get("unitOfMeasure"))
                kilo = 1000 if str(unit.get("unit", sample.get("unit", "Wh"))).lower() == "kwh" else 1
                # In OCPP 2.0.1, the multiplier is an exponent of 10.
                yield reading * kilo * 10.0 ** float(unit.get("multiplier") or 0)


def _object(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return None if value is None or isinstance(value, dict | list) else str(value)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


OCPP = Format("ocpp", "OCPP 1.6 or 2.0.1 logs of transactions (JSON)", _matches, _read)
