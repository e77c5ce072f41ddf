"""OCPI objects as the specification prints them, and files of them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from unmet.csv_files import LINE
from unmet.records.formats.base import Head

CDR: dict[str, Any] = {
    "country_code": "BE",
    "party_id": "BEC",
    "id": "12345",
    "start_date_time": "2015-06-29T21:39:09Z",
    "end_date_time": "2015-06-29T23:37:32Z",
    "session_id": "S-1",
    "cdr_token": {"country_code": "DE", "party_id": "TNM", "uid": "012345678", "type": "RFID"},
    "auth_method": "WHITELIST",
    "cdr_location": {
        "id": "LOC1",
        "name": "Gent Zuid",
        "address": "F.Rooseveltlaan 3A",
        "coordinates": {"latitude": "51.047599", "longitude": "3.729944"},
        "evse_uid": "3256",
        "evse_id": "BE*BEC*E041503003",
        "connector_id": "1",
        "connector_power_type": "AC_1_PHASE",
    },
    "currency": "EUR",
    "tariffs": [{"id": "12", "elements": [{"price_components": [{"type": "TIME", "price": 2.0}]}]}],
    "charging_periods": [
        {
            "start_date_time": "2015-06-29T21:39:09Z",
            "dimensions": [{"type": "TIME", "volume": 1.973}],
            "tariff_id": "12",
        }
    ],
    "total_cost": {"excl_vat": 4.00, "incl_vat": 4.40},
    "total_energy": 15.342,
    "total_time": 1.973,
    "last_updated": "2015-06-29T22:01:13Z",
}
# 2.3.0 has other prices and no Z need be written.
CDR_230 = CDR | {
    "id": "23-0",
    "start_date_time": "2025-02-03T08:00:00",
    "end_date_time": "2025-02-03T09:30:00.500Z",
    "total_cost": {"before_taxes": 4.0, "taxes": [{"name": "VAT", "amount": 0.4}]},
    "tariffs": [{"id": "12", "tax_included": "NO"}],
}
LOCATION: dict[str, Any] = {
    "country_code": "BE",
    "party_id": "BEC",
    "id": "LOC1",
    "publish": True,
    "name": "Gent Zuid",
    "coordinates": {"latitude": "51.047599", "longitude": "3.729944"},
    "parking_type": "ON_STREET",
    "evses": [
        {
            "uid": "3256",
            "evse_id": "BE*BEC*E041503001",
            "status": "AVAILABLE",
            "status_schedule": [],
            "connectors": [
                {"id": "1", "power_type": "AC_3_PHASE", "max_voltage": 220, "max_amperage": 16},
                {"id": "2", "power_type": "AC_1_PHASE", "max_voltage": 220, "max_amperage": 16},
            ],
            "last_updated": "2015-06-28T08:12:01Z",
        },
        {
            "uid": "3257",
            "status": "RESERVED",
            "connectors": [
                {"id": "1", "power_type": "DC", "max_voltage": 920, "max_amperage": 400, "max_electric_power": 150000}
            ],
            "last_updated": "2015-06-29T20:39:09Z",
        },
        {"uid": "3258", "status": "PLANNED", "connectors": [], "last_updated": "2015-06-29T20:39:09Z"},
    ],
    "operator": {"name": "BeCharged"},
    "time_zone": "Europe/Brussels",
    "last_updated": "2015-06-29T20:39:09Z",
}


def head_of(path: Path, content: Any) -> Head:
    text = content if isinstance(content, str) else json.dumps(content)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return Head(path, "json", (), text[:50_000])


def page(data: Any, **more: Any) -> dict[str, Any]:
    return {"data": data, "status_code": 1000, "status_message": "Success", "timestamp": "2015-06-30T21:59:59Z"} | more


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters()),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=6,
)


def odd(good: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Good objects in which some fields hold anything."""
    return st.dictionaries(st.sampled_from([*good, "credit", "credit_reference_id", LINE]), JSON, max_size=2).map(
        lambda wrong: good | wrong
    )
