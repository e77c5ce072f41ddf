"""Mappings: what each column of a file means, and how its values are written.

Every format is read into a table of raw cells; its mapping says what they mean. A mapping can be a small YAML file, so
that an analyst writes it once for a source and reuses it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from unmet.errors import refusal
from unmet.files import read_yaml_lines

__all__ = ["Mapping", "mapping_from", "read_mapping"]


Ids = str | tuple[str, ...] | None  # a column, several that together form an id, or none


class Mapping(BaseModel):
    """Names of the columns of a source, and how to convert their values."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    start: str | tuple[str, ...] = Field("start", description="column of the start, or columns of date and time")
    end: str | tuple[str, ...] = Field("end", description="column of the end, or columns of date and time")
    duration: str | None = Field(None, description="column of the time plugged in, if there is no end")
    duration_unit: Literal["h", "min", "s"] | None = Field(
        None, description="unit of durations that are bare numbers, or of the first part of 42:29"
    )
    energy_kwh: str = Field("energy_kwh", description="column of the energy")
    meter_start: str | None = Field(None, description="column of the meter reading at the start, if there is no energy")
    meter_end: str | None = Field(None, description="column of the meter reading at the end")
    energy_factor: float = Field(1.0, gt=0, description="factor on the energy: 0.001 for Wh")
    session_id: Ids = Field("session_id", description="column of the session's id")
    station_id: Ids = Field("station_id", description="column of the station's id")
    station: str | None = Field(None, description="name of the only station, if there is no such column")
    plug_id: Ids = Field("plug_id", description="column of the plug or connector")
    vehicle_id: Ids = Field("vehicle_id", description="column of the vehicle")
    user_id: Ids = Field("user_id", description="column of the driver, badge or card")
    post_id: Ids = Field("post_id", description="column of the post that a plug is part of")
    operator: str | None = Field("operator", description="column of the operator")
    charged: str | None = Field("charged", description="column of the time at which the energy flow ended")
    time_zone: str = Field("UTC", description="time zone of times that carry none")
    local_zone: str | None = Field(None, description="local time zone, if times are in another one")
    zone: str | None = Field(None, description="column of zone abbreviations, such as MST and MDT")
    end_zone: str | None = Field(None, description="the same for the end, if it has its own column")
    day_first: bool | None = Field(None, description="whether 03/04/2018 is in April; inferred if not given")

    @property
    def station_zone(self) -> str:
        """The local time zone of the stations, if known; else that of the times."""
        return self.local_zone or self.time_zone

    def to_yaml(self) -> str:
        """The mapping as the text of a mapping file, without defaults."""
        return yaml.safe_dump(self.entries(mode="json"), sort_keys=False, allow_unicode=True)

    def entries(self, mode: Literal["python", "json"] = "python") -> dict[str, Any]:
        """The entries that were set, even to their defaults: `time_zone: UTC` is a choice."""
        return self.model_dump(mode=mode, exclude_unset=True)


def mapping_from(values: dict[str, Any], source: str, base: Mapping | None = None) -> Mapping:
    """A mapping with these values in place of those of `base`; raises `InputError` if a value is invalid.

    `source` says where the values come from, for the message.
    """
    try:
        return Mapping(**((base or Mapping()).entries() | values))
    except ValidationError as error:
        known = ", ".join(Mapping.model_fields)
        raise refusal(error, source, f"maps {{name}}, which cannot be mapped: give {known}") from None


def read_mapping(path: Path) -> Mapping:
    """Read a mapping file."""
    return mapping_from(read_yaml_lines(path, "mapping", "`start: ConnectionStart`"), str(path))
