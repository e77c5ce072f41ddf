"""What the rows of a session file show about the place: its local time zone, and the positions of its stations."""

from __future__ import annotations

import polars as pl

from unmet.csv_files import LINE
from unmet.errors import InputError
from unmet.records.station_columns import known_columns
from unmet.records.stations import STATIONS
from unmet.zones import checked_zone

__all__ = ["local_zone_of", "positions_in"]

_PAIRS = {  # abbreviations of winter and summer: only if both occur is it certain that clocks change there
    ("EST", "EDT"): "America/New_York",
    ("CST", "CDT"): "America/Chicago",
    ("MST", "MDT"): "America/Denver",
    ("PST", "PDT"): "America/Los_Angeles",
    ("AKST", "AKDT"): "America/Anchorage",
    ("AST", "ADT"): "America/Halifax",
    ("NST", "NDT"): "America/St_Johns",
    ("GMT", "BST"): "Europe/London",
    ("WET", "WEST"): "Europe/Lisbon",
    ("CET", "CEST"): "Europe/Berlin",
    ("MEZ", "MESZ"): "Europe/Berlin",
    ("EET", "EEST"): "Europe/Helsinki",
    ("AEST", "AEDT"): "Australia/Sydney",
    ("ACST", "ACDT"): "Australia/Adelaide",
    ("NZST", "NZDT"): "Pacific/Auckland",
}


def local_zone_of(cells: pl.Series) -> str | None:
    """The zone in a column of zones: its only name, or the zone of a winter and a summer abbreviation.

    None if the rows have several zones, or only one abbreviation: MST alone may be Denver in winter or Phoenix.
    """
    names = cells.cast(pl.String, strict=False).str.strip_chars().drop_nulls().unique()
    names = names.filter(names != "")
    if len(names) == 1 and "/" in names[0]:
        try:
            return checked_zone(names[0])
        except InputError:
            return None
    written = {name.upper() for name in names}
    return next((zone for pair, zone in _PAIRS.items() if written == set(pair)), None)


def positions_in(raw: pl.DataFrame, kept: pl.DataFrame) -> pl.DataFrame | None:
    """`station_id, lat, lon` from position columns in a file of sessions; None if there are none.

    Args:
        raw: cells of a file, with LINE.
        kept: its sessions, with LINE and `station_id`.
    """
    known = known_columns(raw.drop(LINE), STATIONS)
    if not {"lat", "lon"} <= set(known) or {known["lat"].lower(), known["lon"].lower()} & {"x", "y"}:
        return None
    as_numbers = pl.col("lat", "lon").cast(pl.String).str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)
    cells = raw.select(pl.col(LINE).cast(pl.UInt32), lat=known["lat"], lon=known["lon"]).with_columns(as_numbers)
    of_row = kept.select(pl.col(LINE).cast(pl.UInt32), "station_id").join(cells, on=LINE, how="left")
    usable = of_row.drop_nulls().filter(pl.col("lat").is_between(-90, 90) & pl.col("lon").is_between(-180, 180))
    usable = usable.filter((pl.col("lat") != 0) | (pl.col("lon") != 0))  # 0, 0 stands for an unknown position
    if usable.is_empty():
        return None
    return usable.group_by("station_id").agg(pl.median("lat", "lon")).sort("station_id")
