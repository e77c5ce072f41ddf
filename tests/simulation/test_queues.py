"""Each queue at one or two stations, worked out by hand, with times in hours for readability."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulation.cities import small_city
from unmet.compiled import compiled
from unmet.errors import InputError
from unmet.simulation.queues import ADMIT, LOST, Driver, Plugs, Queue, Slot, queue_named, register
from unmet.simulation.scenario import Scenario
from unmet.simulation.simulate import prepare, simulate

HOUR = 3600.0


def play(queue, arrivals, plugs=(1,), power=10.0, nearest=None):
    """Send drivers (arrives, leaves, soc) with 100 kWh batteries to station 0; return (station, start, end) or None."""
    first = np.concatenate([[0], np.cumsum(plugs)]).astype(np.int64)
    state = Plugs(first, np.full(len(plugs), power), np.full(first[-1], -np.inf))
    near = np.array(range(len(plugs)) if nearest is None else nearest, np.int64)
    slots = []
    for arrives, leaves, soc in arrivals:
        driver = Driver(arrives * HOUR, leaves * HOUR, soc, 100.0, False)
        slot = queue_named(queue).admit(driver, 0, near, state)
        if slot.plug == LOST:
            slots.append(None)
        else:
            state.free_at[slot.plug] = slot.end
            slots.append((slot.station, pytest.approx(slot.start / HOUR), pytest.approx(slot.end / HOUR)))
    return slots


def test_first_come_keeps_the_plug_until_the_next_trip():
    assert play("first-come", [(0, 10, 0.5), (9, 12, 0.5), (10, 12, 0.5)]) == [(0, 0, 10), None, (0, 10, 12)]


def test_three_hour_frees_the_plug_after_three_hours():
    assert play("three-hour", [(0, 10, 0.5), (2, 12, 0.5), (3, 4, 0.5)]) == [(0, 0, 3), None, (0, 3, 4)]


def test_without_a_later_trip_a_car_leaves_when_it_is_charged():
    # 80 kWh at 10 kW, then 20 kWh at 2.5 kW: 8 h and 8 h
    assert play("first-come", [(0, np.inf, 0.0)]) == [(0, 0, 16)]
    assert play("three-hour", [(0, np.inf, 0.0)]) == [(0, 0, 3)]
    assert play("gas-station", [(0, np.inf, 0.0)]) == [(0, 0, 8)]


def test_gas_station_waits_in_line_charges_to_80_percent_and_gives_up_at_the_next_trip():
    drivers = [(0, 99, 0.5), (1, 99, 0.6), (2, 4, 0.5), (2.5, 99, 0.7), (20, 21, 0.0)]
    # 30 kWh take 3 h; the second driver waits for the first; the turn of the third would be at 5, but it leaves at 4;
    # the fourth follows the second at 5; the last one is cut short by its next trip.
    assert play("gas-station", drivers) == [(0, 0, 3), (0, 3, 5), None, (0, 5, 6), (0, 20, 21)]


def test_reservation_books_the_first_slot_within_an_hour_among_the_nearest():
    drivers = [(0, 99, 0.5), (0, 99, 0.6), (1.5, 99, 0.5), (1.6, 99, 0.5), (1.5, 1.8, 0.5)]
    # The first books here until 3, the second at the neighbour until 2, where the third waits half an hour. The fourth
    # would wait for more than an hour anywhere, and the last leaves too soon.
    assert play("reservation", drivers, plugs=(1, 1)) == [(0, 0, 3), (1, 0, 2), (1, 2, 5), None, None]


def test_reservation_prefers_the_nearest_of_equal_slots():
    assert play("reservation", [(0, 9, 0.5)], plugs=(1, 1), nearest=[1, 0]) == [(1, 0, 3)]


def test_a_slot_exactly_an_hour_away_can_be_booked():
    assert play("reservation", [(0, 99, 0.3), (4, 99, 0.3), (5, 99, 0.5)]) == [(0, 0, 5), (0, 5, 10), None]


def test_an_unknown_queue_is_named_with_the_known_ones():
    with pytest.raises(InputError, match="first-come"):
        queue_named("express")


def test_a_queue_from_outside_needs_one_function_and_one_registration():
    @compiled(ADMIT)
    def nobody(driver, chosen, nearest, plugs):
        return Slot(chosen, LOST, driver.now, driver.now)

    register(Queue("closed", "Closed", nobody))
    try:
        outcome = simulate(prepare(small_city(1, 20, 10, 3, 2)), Scenario(queue="closed", penetration=1))
        assert outcome.arrivals.height > 0
        assert outcome.sessions.is_empty()
    finally:
        from unmet.simulation import queues

        del queues.QUEUES._parts["closed"]


@pytest.mark.parametrize("queue", ["gas-station", "three-hour", "first-come", "reservation"])
def test_the_random_cities_of_the_laws_are_crowded(queue):
    lost = [
        (
            simulate(prepare(small_city(s, 40, 25, 2, 1)), Scenario(queue=queue, penetration=1)).arrivals["outcome"]
            == "lost"
        ).sum()
        for s in range(3)
    ]
    assert min(lost) > 0
