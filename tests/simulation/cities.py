"""Random small cities for Hypothesis, with few stations and busy cars, so that every queue gets crowded."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import strategies as st

from unmet.city.build import City, build_city
from unmet.simulation.queues import queue_names
from unmet.simulation.scenario import Curve, Scenario, TurnedAway


def small_city(seed: int, vehicles: int, trips_each: int, stations: int, plugs: int) -> City:
    """Cars within a few kilometres, whose trips have long nominal distances so that batteries run low."""
    rng = np.random.default_rng(seed)
    rows = []
    for vehicle in range(vehicles):
        time = 1_567_296_000 + rng.integers(0, 86_400)
        for _ in range(rng.integers(1, trips_each + 1)):
            start = time + int(rng.choice([0, 300, 3600, 20_000, 60_000]) * rng.random())
            km = 150 * rng.random()
            end = start + int(km / 200 * 3600)
            rows.append((f"v{vehicle}", start, end, 55 + 0.03 * rng.random(), 12 + 0.05 * rng.random(), km))
            time = end
    columns = ["vehicle_id", "start_time", "end_time", "end_lat", "end_lon", "distance_km"]
    trips = pl.DataFrame(rows, schema=columns, orient="row")
    places = pl.DataFrame(
        {
            "station_id": [f"s{i}" for i in range(stations)],
            "lat": 55 + 0.03 * rng.random(stations),
            "lon": 12 + 0.05 * rng.random(stations),
            "power_kw": rng.choice([3.7, 11.0, 22.0, 50.0, 150.0], stations),
            "plugs": rng.integers(1, plugs + 1, stations),
        }
    )
    return build_city(trips, places)


cities = st.builds(
    small_city,
    seed=st.integers(0, 2**32 - 1),
    vehicles=st.integers(2, 40),
    trips_each=st.integers(1, 25),
    stations=st.integers(1, 7),
    plugs=st.integers(1, 3),
)

scenarios = st.builds(
    Scenario,
    queue=st.sampled_from(queue_names()),
    penetration=st.sampled_from([0.5, 1.0]),
    seed=st.integers(0, 10_000),
    plug_in_a=st.sampled_from([0.7, 3.4, 9.0]),
    plug_in_b=st.sampled_from([0.7, 3.7, 9.0]),
    distance_sensitivity=st.sampled_from([-1.0, 0.0, 1.0, 3.0]),
    curve=st.sampled_from(Curve),
    turned_away=st.sampled_from(TurnedAway),
    turned_away_share=st.sampled_from([0.0, 0.4, 1.0]),
)
