"""SAP Labs France's open charging sessions: French headers, energy in Wh."""

from __future__ import annotations

from unmet.records.formats.table import table_format
from unmet.records.mapping import Mapping

FORMAT = table_format(
    "sap",
    "SAP Labs France open data (CSV)",
    columns=(
        "ID transaction",
        "ID borne",
        "ID connecteur borne",
        "Date demarrage",
        "Date fin",
        "Consommation totale (Wh)",
    ),
    mapping=Mapping(
        session_id="ID transaction",
        station_id="ID borne",
        plug_id="ID connecteur borne",
        start="Date demarrage",
        end="Date fin",
        energy_kwh="Consommation totale (Wh)",
        energy_factor=0.001,
        time_zone="Europe/Paris",
    ),
)
