"""A state machine that stitches GPS points into trips, one point at a time, with a fixed record per vehicle.

A point is processed in two steps. First it is classified: out of order, implausibly far (a jump), or good. If this is
undecided (too far, or after a long silence), the point is held until the next ones confirm or refute it. A good point
then updates the state of its vehicle, which is either parked or driving.
"""

from __future__ import annotations

from math import asin, cos, inf, radians, sin, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unmet.compiled import compiled
from unmet.geo import EARTH_RADIUS_KM

__all__ = ["AHEAD", "DUPLICATE", "EARLIER", "JUMP", "StitchLimits", "Stitcher"]

DUPLICATE, EARLIER, JUMP, AHEAD = 1, 2, 3, 4  # why a point is set aside
# Number of consecutive points, held ones included, that confirm a position after a silence or a jump.
AFTER_SILENCE, AFTER_JUMP = 2, 3
PATH_KNOWN, PATH_UNKNOWN = 0, 1  # whether the car's path from its last point to the next is known
DRIVING_KM_PER_MS = 5 / 3.6e6  # straight-line speed over a silence: slower is no evidence of driving
CATCH_UP_KM = 1.0  # if a driving car leaps by less than this, its receiver lagged behind
COLD_START_KM_PER_MS = 30 / 3.6e6  # between parking place and first fix, where the receiver was slow to start

TRIPS, REJECTS, KEPT, FRAGMENTS = 0, 1, 2, 3  # positions in the array of counts
MAX_PER_POINT = 4  # one point ends at most this many trips, and causes at most this many points to be rejected


class StitchLimits(NamedTuple):
    """`unmet.city.gps.StitchRules`, which explains each limit, in the machine's units: milliseconds and kilometres."""

    stop_ms: float
    stop_km: float
    top_km_per_ms: float
    noise_km: float
    bridge_ms: float
    cold_start_km: float
    min_km: float
    min_ms: float


CAR = np.dtype(
    [
        ("points", "i8"), ("ms", "f8"), ("lat", "f8"), ("lon", "f8"),  # good points so far, and the last of them
        ("driving", "i8"), ("stop_lat", "f8"), ("stop_lon", "f8"),  # where it is parked, or drove away from
        ("start_ms", "f8"), ("km", "f8"), ("reach_km", "f8"), ("trip_points", "i8"),  # the drive so far
        ("first_km", "f8"),  # how far from its place the car was at the first point of the drive
        ("ended", "i8"), ("end_ms", "f8"),  # whether there was a trip before, and when it ended
        ("counted_lat", "f8"), ("counted_lon", "f8"),  # the last point that added distance
        # A possible rest, that is, the latest points within the stop radius: its first point, its centre, and the state
        # of the drive when it began.
        ("rest_ms", "f8"), ("rest_lat", "f8"), ("rest_lon", "f8"), ("rest_km", "f8"), ("rest_trip_points", "i8"),
        ("rest_points", "i8"), ("centre_lat", "f8"), ("centre_lon", "f8"),
        ("held", "i8"), ("needed", "i8"),  # points that wait for confirmation, and how many in a row confirm them
        ("held_ms", "f8", (2,)), ("held_lat", "f8", (2,)), ("held_lon", "f8", (2,)), ("held_line", "i8", (2,)),
    ]
)  # fmt: skip

TRIP = np.dtype(
    [
        ("vehicle", "i8"), ("start_time", "i8"), ("end_time", "i8"), ("start_lat", "f8"), ("start_lon", "f8"),
        ("end_lat", "f8"), ("end_lon", "f8"), ("distance_km", "f8"), ("points", "i8"),
    ]
)  # fmt: skip

REJECT = np.dtype([("line", "i8"), ("why", "i8"), ("ms", "i8"), ("lat", "f8"), ("lon", "f8")])


@compiled()
def _km(lat_a: float, lon_a: float, lat_b: float, lon_b: float) -> float:
    """Great-circle distance [km], like `unmet.geo.haversine_km`, for compiled code."""
    phi_a, phi_b = radians(lat_a), radians(lat_b)
    north, east = sin((phi_b - phi_a) / 2), sin((radians(lon_b) - radians(lon_a)) / 2)
    chord = north * north + cos(phi_a) * cos(phi_b) * east * east
    return 2 * EARTH_RADIUS_KM * asin(sqrt(min(chord, 1.0)))


@compiled()
def _begin_rest(car: Any, ms: float, lat: float, lon: float) -> None:
    """Start a possible rest at a point, and remember the state of the drive, in case the trip ends here."""
    car.rest_ms, car.rest_lat, car.rest_lon, car.rest_km = ms, lat, lon, car.km
    car.rest_points, car.centre_lat, car.centre_lon = 1, lat, lon
    car.rest_trip_points = car.trip_points


@compiled()
def _drifted(car: Any, lat: float, lon: float, limits: StitchLimits) -> bool:
    """Whether the first fix of a drive was wrong: the car is back where it parked, and never was farther away.

    A car that really drives somewhere and back gets farther away than the first point of its drive.
    """
    back = _km(car.stop_lat, car.stop_lon, lat, lon) <= limits.stop_km
    return back and car.reach_km <= car.first_km + limits.noise_km


@compiled()
def _end_drive(car: Any, vehicle: int, lat: float, lon: float, limits: StitchLimits, trips: Any, counts: Any) -> None:
    """End the drive at (lat, lon), where the car came to rest: a trip, or a fragment that is only counted."""
    tail = _km(car.rest_lat, car.rest_lon, lat, lon)
    km = car.rest_km + (tail if tail >= limits.noise_km else 0.0)
    far = min(km, car.reach_km) >= limits.min_km
    if far and car.rest_ms - car.start_ms >= limits.min_ms and not _drifted(car, lat, lon, limits):
        trip = trips[counts[TRIPS]]
        trip.vehicle, trip.points, trip.distance_km = vehicle, car.rest_trip_points, km
        trip.start_time, trip.start_lat, trip.start_lon = int(car.start_ms), car.stop_lat, car.stop_lon
        trip.end_time, trip.end_lat, trip.end_lon = int(car.rest_ms), lat, lon
        counts[TRIPS] += 1
        car.ended, car.end_ms = 1, car.rest_ms
    else:
        counts[FRAGMENTS] += 1
    car.driving, car.stop_lat, car.stop_lon = 0, lat, lon


@compiled()
def _drive_away(car: Any, ms: float, lat: float, lon: float, km: float, start_ms: float) -> None:
    """Start a drive whose first point away from the parking place is (lat, lon), `km` from it."""
    car.driving, car.start_ms, car.km, car.reach_km, car.first_km = 1, start_ms, km, km, km
    car.trip_points = 2  # the last point at the parking place, and this one
    car.counted_lat, car.counted_lon = lat, lon
    _begin_rest(car, ms, lat, lon)


@compiled()
def _drive_on(
    car: Any, vehicle: int, ms: float, lat: float, lon: float, path: int, silence: float, limits: StitchLimits,
    trips: Any, counts: Any,
) -> None:  # fmt: skip
    """Add a point to the drive, which ends if the car has rested long enough, or turns out not to have left."""
    leg = _km(car.counted_lat, car.counted_lon, lat, lon)
    if leg >= limits.noise_km:
        car.km += leg if path == PATH_KNOWN else 0.0  # not if the car reappeared elsewhere
        car.counted_lat, car.counted_lon = lat, lon
    car.trip_points += 1
    away = _km(car.stop_lat, car.stop_lon, lat, lon)
    car.reach_km = max(car.reach_km, away)
    if away <= limits.stop_km and (car.reach_km < limits.min_km or _drifted(car, lat, lon, limits)):
        # The car is back before it got anywhere, or the fix was wrong: it is still parked.
        car.driving = 0
        counts[FRAGMENTS] += 1
    elif (
        path == PATH_UNKNOWN
        or silence >= limits.stop_ms
        or _km(car.centre_lat, car.centre_lon, lat, lon) > limits.stop_km
    ):
        _begin_rest(car, ms, lat, lon)
    else:
        car.rest_points += 1
        car.centre_lat += (lat - car.centre_lat) / car.rest_points
        # Differences and results are brought into [-180, 180), so that a rest may lie on the 180th meridian.
        centre_lon = car.centre_lon + ((lon - car.centre_lon + 540) % 360 - 180) / car.rest_points
        car.centre_lon = (centre_lon + 180) % 360 - 180
        if ms - car.rest_ms >= limits.stop_ms:
            _end_drive(car, vehicle, car.centre_lat, car.centre_lon, limits, trips, counts)


@compiled()
def _accept(
    car: Any, vehicle: int, ms: float, lat: float, lon: float, path: int, limits: StitchLimits, trips: Any, counts: Any
) -> None:
    """Move a car to a good point; `path` says whether the path from its last one is known."""
    counts[KEPT] += 1
    broken = path == PATH_UNKNOWN
    silence = ms - car.ms
    silent = silence >= limits.stop_ms
    drove = silence < limits.bridge_ms and _km(car.lat, car.lon, lat, lon) >= DRIVING_KM_PER_MS * silence
    # A driving car that reappears elsewhere at once is still driving: it had no time to park.
    track_lost = (broken and (silent or not car.driving)) or (silent and not drove)
    if car.driving and track_lost:
        _end_drive(car, vehicle, car.lat, car.lon, limits, trips, counts)
    if car.points == 0 or (broken and not car.driving):
        car.stop_lat, car.stop_lon = lat, lon
    elif car.driving:
        _drive_on(car, vehicle, ms, lat, lon, path, silence, limits, trips, counts)
    else:
        away = _km(car.stop_lat, car.stop_lon, lat, lon)
        if away > limits.stop_km:
            if not track_lost:
                _drive_away(car, ms, lat, lon, away, car.ms)
            elif away <= limits.cold_start_km:
                left_ms = max(car.ms, np.floor(ms - away / COLD_START_KM_PER_MS))
                if car.ended:  # no parking is shorter than a stop
                    left_ms = min(max(left_ms, car.end_ms + limits.stop_ms), ms)
                _drive_away(car, ms, lat, lon, away, left_ms)
            else:  # it drove here unobserved, at an unknown time
                car.stop_lat, car.stop_lon = lat, lon
    car.points += 1
    car.ms, car.lat, car.lon = ms, lat, lon


@compiled()
def _reject(line: int, why: int, ms: float, lat: float, lon: float, rejects: Any, counts: Any) -> None:
    reject = rejects[counts[REJECTS]]
    reject.line, reject.why, reject.ms, reject.lat, reject.lon = line, why, int(ms), lat, lon
    counts[REJECTS] += 1


@compiled()
def _release(car: Any, vehicle: int, limits: StitchLimits, trips: Any, counts: Any) -> None:
    """Accept the held points: the position is confirmed."""
    for i in range(car.held):
        leap = i == 0 and car.needed == AFTER_JUMP
        caught_up = car.driving and _km(car.lat, car.lon, car.held_lat[0], car.held_lon[0]) <= CATCH_UP_KM
        path = PATH_UNKNOWN if leap and not caught_up else PATH_KNOWN
        _accept(car, vehicle, car.held_ms[i], car.held_lat[i], car.held_lon[i], path, limits, trips, counts)
    car.held = 0


@compiled()
def _drop(car: Any, why: int, rejects: Any, counts: Any) -> None:
    """Reject the held points."""
    for i in range(car.held):
        _reject(car.held_line[i], why, car.held_ms[i], car.held_lat[i], car.held_lon[i], rejects, counts)
    car.held = 0


@compiled()
def _hold(car: Any, needed: int, ms: float, lat: float, lon: float, line: int) -> None:
    """Hold a point until `needed` points in a row confirm it."""
    i = car.held
    car.held_ms[i], car.held_lat[i], car.held_lon[i], car.held_line[i] = ms, lat, lon, line
    car.held, car.needed = i + 1, needed


@compiled()
def _offer(
    car: Any, vehicle: int, ms: float, lat: float, lon: float, line: int, limits: StitchLimits, trips: Any,
    rejects: Any, counts: Any,
) -> None:  # fmt: skip
    """Classify a point: accept it, hold it or set it aside."""
    if car.points == 0:
        _accept(car, vehicle, ms, lat, lon, PATH_KNOWN, limits, trips, counts)
        return
    if ms <= car.ms or (car.held > 0 and ms == car.held_ms[car.held - 1]):
        _reject(line, EARLIER if ms < car.ms else DUPLICATE, ms, lat, lon, rejects, counts)
        return
    km = _km(car.lat, car.lon, lat, lon)
    speed = (km - limits.noise_km) / (ms - car.ms)
    if car.held > 0:
        last = car.held - 1
        since_held = ms - car.held_ms[last]  # negative if the held point has a later time
        held_km = _km(car.held_lat[last], car.held_lon[last], lat, lon)
        held_speed = (held_km - limits.noise_km) / since_held if since_held > 0 else inf
        # Does the point continue the held points rather than the last good one?
        if car.needed == AFTER_JUMP:
            continues_held = held_speed <= speed
        else:
            continues_held = since_held >= limits.stop_ms or held_km <= km + limits.stop_km
        if held_speed <= limits.top_km_per_ms and continues_held:
            if car.held + 1 < car.needed:
                _hold(car, car.needed, ms, lat, lon, line)
                return
            _release(car, vehicle, limits, trips, counts)
            speed = held_speed
        else:
            _drop(car, AHEAD if since_held < 0 and car.needed == AFTER_SILENCE else JUMP, rejects, counts)
    if speed > limits.top_km_per_ms:
        _hold(car, AFTER_JUMP, ms, lat, lon, line)
    elif ms - car.ms >= limits.stop_ms:
        _hold(car, AFTER_SILENCE, ms, lat, lon, line)
    else:
        _accept(car, vehicle, ms, lat, lon, PATH_KNOWN, limits, trips, counts)


@compiled()
def _feed(
    first: int, vehicle: Any, ms: Any, lat: Any, lon: Any, line: Any, limits: StitchLimits, cars: Any, trips: Any,
    rejects: Any, counts: Any,
) -> int:  # fmt: skip
    """Process the points from number `first` on. Returns the number of the next one, if the output is full."""
    for i in range(first, len(ms)):
        if counts[TRIPS] + MAX_PER_POINT > len(trips) or counts[REJECTS] + MAX_PER_POINT > len(rejects):
            return i
        _offer(cars[vehicle[i]], vehicle[i], ms[i], lat[i], lon[i], line[i], limits, trips, rejects, counts)
    return len(ms)


@compiled()
def _finish(first: int, vehicles: int, limits: StitchLimits, cars: Any, trips: Any, rejects: Any, counts: Any) -> int:
    """End the records of vehicles from number `first` on: decide on held points, and end drives at their last point.

    Returns the number of the next vehicle, if the output is full.
    """
    for vehicle in range(first, vehicles):
        if counts[TRIPS] + MAX_PER_POINT > len(trips) or counts[REJECTS] + MAX_PER_POINT > len(rejects):
            return vehicle
        car = cars[vehicle]
        if car.needed == AFTER_JUMP:
            _drop(car, JUMP, rejects, counts)
        _release(car, vehicle, limits, trips, counts)
        if car.driving:
            _end_drive(car, vehicle, car.lat, car.lon, limits, trips, counts)
    return vehicles


class Stitcher:
    """Stitches points as they arrive. Holds one record per vehicle, and the trips and rejected points so far.

    Args:
        limits: the rules.
        room: number of trips, and of rejected points, that the compiled loop returns at once.
    """

    def __init__(self, limits: StitchLimits, room: int = 4096) -> None:
        self.limits = limits
        self.vehicles = 0
        self.cars = np.zeros(16, CAR).view(np.recarray)
        self._counts = np.zeros(4, np.int64)
        self._out = np.zeros(room, TRIP).view(np.recarray), np.zeros(room, REJECT).view(np.recarray)
        self._trips: list[NDArray[np.void]] = []
        self._rejects: list[NDArray[np.void]] = []

    def feed(self, vehicle: Any, ms: Any, lat: Any, lon: Any, line: Any) -> None:
        """Add points, given as arrays of equal length in the order of the file.

        Vehicles are numbered from 0; `ms` are milliseconds since 1970, UTC.
        """
        self.vehicles = max(self.vehicles, int(vehicle.max(initial=-1)) + 1)
        if self.vehicles > len(self.cars):
            more = np.zeros(2 * self.vehicles - len(self.cars), CAR)
            self.cars = np.concatenate([self.cars, more]).view(np.recarray)
        done = 0
        while done < len(ms):
            done = _feed(done, vehicle, ms, lat, lon, line, self.limits, self.cars, *self._out, self._counts)
            self._collect()

    def finish(self) -> None:
        """End the record of every vehicle."""
        done = 0
        while done < self.vehicles:
            done = _finish(done, self.vehicles, self.limits, self.cars, *self._out, self._counts)
            self._collect()

    def _collect(self) -> None:
        trips, rejects = self._out
        if self._counts[TRIPS]:
            self._trips.append(trips[: self._counts[TRIPS]].copy())
        if self._counts[REJECTS]:
            self._rejects.append(rejects[: self._counts[REJECTS]].copy())
        self._counts[[TRIPS, REJECTS]] = 0

    @property
    def trips(self) -> NDArray[np.void]:
        """The trips that have ended, as records of `TRIP`."""
        return np.concatenate(self._trips) if self._trips else np.zeros(0, TRIP)

    @property
    def rejects(self) -> NDArray[np.void]:
        """The points that were set aside, as records of `REJECT`."""
        return np.concatenate(self._rejects) if self._rejects else np.zeros(0, REJECT)

    @property
    def kept(self) -> int:
        """Number of points that were used."""
        return int(self._counts[KEPT])

    @property
    def fragments(self) -> int:
        """Number of drives that were too short to be a trip."""
        return int(self._counts[FRAGMENTS])
