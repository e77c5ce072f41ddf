"""The cases of the stress tests: `python -m benchmarks.stress.cases` prints how much demand each one loses."""

from __future__ import annotations

from benchmarks.stress.arrivals import Case
from benchmarks.stress.simulator import Network, simulate

__all__ = ["CASES"]

CASES = (
    # A Poisson model with weekly profiles, slow levels and day effects holds in these.
    Case("light", "Stations are seldom full.", "right", load=0.075),
    Case("base", "An ordinary network: some stations are full at peak hours.", "right"),
    Case("heavy", "Many stations are full at peak hours.", "right", load=0.235),
    Case("very-heavy", "Most stations are full for much of the day.", "right", load=0.46),
    Case("growth", "Demand grows threefold within 16 weeks.", "right", growth=3.0),
    Case("season", "Demand rises and falls by 40 % over a year.", "right", stations=20, weeks=52, season=0.4),
    Case("openings", "A quarter of the sites open halfway through.", "right", opening_share=0.25),
    Case("city-days", "Some days are busier than others all over town (by 25 %).", "right", city_day=0.25),
    Case("station-days-30", "Each station has its own busy days (by 30 %).", "right", site_day=0.3),
    Case("station-days-50", "Each station has its own very busy days (by 50 %).", "right", site_day=0.5),
    Case(
        "both-days",
        "Days differ all over town (by 20 %) and at each station (by 30 %).",
        "right",
        city_day=0.2,
        site_day=0.3,
    ),
    Case(
        "energies",
        "Sessions are far larger at some stations than at others, and larger in the evening than in the morning.",
        "right",
        energy_sigma=0.4,
        energy_swing=0.35,
    ),
    Case("two-years", "Two years of records of 15 stations.", "right", stations=15, weeks=104),
    Case("single-plugs", "Every station has a single plug.", "right", plug_choices=(1,), load=0.06),
    Case(
        "single-plugs-told",
        "The same, with a prior that arrivals do not depend on occupied plugs.",
        "right",
        plug_choices=(1,),
        load=0.06,
        known_response=True,
    ),
    Case("small", "A small operator: six stations, six weeks.", "right", stations=6, weeks=6, load=0.2, town_km=5.0),
    # Arrivals within the hour are more or less regular than Poisson.
    Case("hours", "Demand at each station changes from hour to hour (by 50 %).", "hard", site_hour=0.5),
    Case("area-hours", "Parts of the town are busy for two hours at a time (by 50 %).", "hard", area_hours=0.5),
    Case("batches-10", "A tenth of the drivers come in groups of two to five.", "hard", batch_share=0.1),
    Case("batches-33", "A third of the drivers come in groups of two to five.", "hard", batch_share=0.33),
    Case("depots", "Vehicles return to depots at three fixed times a day.", "hard", depot_share=1.0),
    Case("some-depots", "A quarter of the sites are depots with fixed arrival times.", "hard", depot_share=0.25),
    Case("commuters", "Half of the drivers come at their usual time on most weekdays.", "hard", commuter_share=0.5),
    # Drivers react to full stations, or the records differ from what happened.
    Case(
        "waiting", "Three in ten drivers wait up to half an hour for a plug.", "structure", waiting_share=0.3, load=0.2
    ),
    Case(
        "queues",
        "At one site in five, eight in ten drivers wait up to half an hour; nobody waits at the others.",
        "structure",
        waiting_share=0.8,
        waiting_every=5,
        load=0.2,
    ),
    Case(
        "spill",
        "Half of those turned away try the nearest other site within 2 km.",
        "structure",
        spill_share=0.5,
        load=0.2,
    ),
    Case(
        "spill-later",
        "The same, and it takes them eight minutes to get there.",
        "structure",
        spill_share=0.5,
        spill_minutes=8.0,
        load=0.2,
    ),
    Case(
        "sites",
        "Sites consist of two to four posts side by side, listed as separate stations.",
        "structure",
        plug_choices=(1, 2),
        stations_per_site=(2, 3, 4),
        load=0.25,
    ),
    Case(
        "exclusive",
        "At four stations in ten, posts have two connectors but charge one car at a time.",
        "structure",
        exclusive_share=0.4,
        plug_choices=(1, 1, 2, 2, 3, 4),
    ),
    Case("table-high", "A fifth of the stations are listed with one plug too many.", "structure", table_share=0.2),
    Case(
        "table-low",
        "A fifth of the stations are listed with one plug too few.",
        "structure",
        table_share=0.2,
        table_error=-1,
    ),
    Case("restarts", "A fifth of the sessions are recorded as two or three.", "structure", restart_share=0.2),
    Case(
        "overlaps",
        "A third of the sessions are recorded as ending up to three minutes late.",
        "structure",
        overlap_share=0.33,
    ),
    Case("balking", "Up to 40 % of drivers stay away as plugs fill up.", "structure", balking=0.4, load=0.2),
    Case(
        "depletion",
        "Each site serves a limited pool of cars, four per plug.",
        "structure",
        pool_per_plug=4.0,
        load=0.25,
    ),
    Case("outages", "A quarter of the stations are out of order for a week or two.", "structure", outage_share=0.25),
    Case("steps", "Demand halves or rises by 60 % overnight at a quarter of the sites.", "structure", step_share=0.25),
    Case("no-ids", "The records name neither plugs nor drivers.", "structure", plug_ids=False, user_ids=False),
    Case(
        "everything",
        "A little of everything: busy days, growth, waiting, spill and restarts.",
        "structure",
        city_day=0.15,
        site_day=0.2,
        growth=1.3,
        waiting_share=0.15,
        spill_share=0.25,
        restart_share=0.1,
        load=0.18,
    ),
)


def _row(case: Case, networks: list[Network]) -> str:
    """One line of the table: means over networks."""

    def mean(values: list[float]) -> float:
        return sum(values) / len(values)

    sessions = mean([network.sessions.height for network in networks])
    drivers = mean([network.lost.height / network.drivers for network in networks])
    energy = mean([_energy_share(network) for network in networks])
    full = mean([float(network.truth["full_share"].to_numpy().mean()) for network in networks])
    return (
        f"| {case.name} | {case.kind} | {case.stations} | {sessions:,.0f} | {100 * drivers:.1f} % "
        f"| {100 * energy:.1f} % | {100 * full:.1f} % | {case.title} |"
    )


def _energy_share(network: Network) -> float:
    """Lost energy over all energy that drivers wanted."""
    lost = float(network.lost["energy_kwh"].sum())
    return lost / (lost + float(network.sessions["energy_kwh"].sum()))


def main() -> None:
    """Print the size and the losses of every case, means over two seeds."""
    print("| case | kind | stations | sessions | drivers lost | energy lost | time full | what it is |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | --- |")
    for case in CASES:
        print(_row(case, [simulate(case, seed) for seed in (0, 1)]), flush=True)


if __name__ == "__main__":
    main()
