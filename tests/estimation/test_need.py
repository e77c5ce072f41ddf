"""Memory: the estimated need grows with the records, and is compared with what is allowed before it runs out."""

from __future__ import annotations

import pytest

from tests.small_network import STATIONS, records
from unmet.demand.panel import Panel
from unmet.errors import InputError
from unmet.estimation.lost_demand import LostDemand
from unmet.estimation.need import bytes_of_draws, bytes_of_rates
from unmet.planning.hidden import hidden_drivers


def test_larger_records_need_more_memory():
    base = bytes_of_rates(1_000_000, 200, 365)
    assert 0.3e9 < base < 0.8e9  # 0.52 GB were measured
    assert bytes_of_rates(2_000_000, 200, 365) > base
    assert bytes_of_rates(1_000_000, 20_000, 365) > 5 * base
    assert bytes_of_rates(1_000_000, 200, 3650) > base
    draws = bytes_of_draws(10**6, 8760, 16, 200, 2)
    assert bytes_of_draws(10**7, 8760, 16, 200, 2) > draws
    assert bytes_of_draws(10**6, 8760, 16, 2000, 2) > draws


def test_records_that_do_not_fit_are_refused_with_a_remedy(monkeypatch):
    sessions = records(14)[0]
    panel = Panel(sessions, STATIONS, regions=2)
    fitted = LostDemand(draws=20).fit(panel)
    monkeypatch.setenv("UNMET_MAX_MEMORY", "50KB")
    with pytest.raises(InputError, match=r"A panel of 2 regions and 336 hours would need about .*--regions"):
        Panel(sessions, STATIONS, regions=2)
    with pytest.raises(InputError, match=r"An estimate from .* sessions at 5 sites over 14 days .*--by-area"):
        LostDemand(draws=20).fit(panel)
    monkeypatch.setenv("UNMET_MAX_MEMORY", "1KB")
    with pytest.raises(InputError, match=r"A plan from 20 draws of .* full hours"):
        hidden_drivers(fitted)


def test_draws_that_do_not_fit_are_refused_before_drawing(monkeypatch):
    panel = Panel(records(14)[0], STATIONS, regions=2)
    need = bytes_of_rates(panel.sessions.height, panel.sites.height, 14)
    monkeypatch.setenv("UNMET_MAX_MEMORY", f"{need + 1000}B")
    with pytest.raises(InputError, match=r"200 draws of the .* hours in which sites were full .*--draws"):
        LostDemand().fit(panel)


def test_trips_that_do_not_fit_are_refused_with_a_remedy(monkeypatch):
    from tests.simulation.cities import small_city
    from unmet.simulation.simulate import prepare

    city = small_city(1, 20, 40, 6, 2)
    monkeypatch.setenv("UNMET_MAX_MEMORY", "1KB")
    with pytest.raises(InputError, match=r"A simulation of .* trips would need .* Parquet"):
        prepare(city)
