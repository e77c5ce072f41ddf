"""Options that choose a city: the built-in one, or one made of the user's own trips and stations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unmet.cli.options import pairs_of

if TYPE_CHECKING:
    from unmet.city.build import City

__all__ = ["CityOptions", "city_options"]

_PANEL = "City"


@dataclass(frozen=True, slots=True)
class CityOptions:
    """The city to work on: the built-in one, unless trips and stations are given."""

    trips: Path | None = None
    stations: Path | None = None
    cars: int | None = None
    time_zone: str | None = None
    trip_columns: dict[str, str] = field(default_factory=dict)  # headings in `trips`, by unmet's names of the columns
    station_columns: dict[str, str] = field(default_factory=dict)  # the same for `stations`

    @property
    def has_own_cars(self) -> bool:
        """Whether the city's cars are exactly the vehicles in the user's trips, so that all may be electric."""
        return self.trips is not None and not self.cars

    def build(self, seed: int) -> City:
        """Build the city, and report notes and rejected rows."""
        from unmet.city.build import build_city
        from unmet.views.terminal import progress, report_set_aside, say

        with progress("Building the city"):
            city = build_city(
                self.trips,
                self.stations,
                self.cars,
                self.time_zone,
                seed,
                mapped=self.trip_columns,
                mapped_stations=self.station_columns,
            )
        for note in city.notes():
            say(note)
        report_set_aside(city.rejected)
        return city

    def by_seed(self) -> Callable[[int], City]:
        """A function from a seed to its city. The user's own trips are read once and are the same for every seed."""
        last: dict[int, City] = {}

        def city_of(seed: int) -> City:
            key = 0 if self.trips else seed
            if key not in last:
                last.clear()  # a city's trips are large, so keep one city at a time
                last[key] = self.build(seed)
            return last[key]

        return city_of


def city_options(
    trips: Annotated[
        Path | None,
        typer.Option(
            help="Your own trips: CSV, Parquet, or a folder or pattern of Parquet files. Default: the built-in city's.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    stations: Annotated[
        Path | None,
        typer.Option(
            help="Your own stations, CSV or Parquet. Default: the built-in city's.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    cars: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Cars in the city; the penetration is a share of them. Default: 571,627 for the built-in trips, the "
            "vehicles in the file for your own.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    time_zone: Annotated[
        str | None,
        typer.Option(
            help="Time zone of the city. [Europe/Copenhagen for the built-in trips, UTC for your own]",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    map_trips: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COLUMN",
            help="Heading of a column of --trips, such as vehicle_id=car.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
    map_stations: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COLUMN",
            help="Heading of a column of --stations, such as station_id=Site.",
            rich_help_panel=_PANEL,
        ),
    ] = None,
) -> CityOptions:
    """The city that `simulate` and the studies work on."""
    return CityOptions(
        trips,
        stations,
        cars,
        time_zone,
        pairs_of(map_trips, "--map-trips"),
        pairs_of(map_stations, "--map-stations"),
    )
