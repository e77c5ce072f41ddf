"""Registries: built-in parts, and those of other packages."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from unmet import registry
from unmet.errors import InputError
from unmet.models.backbones import BACKBONES
from unmet.models.likelihoods import LIKELIHOODS
from unmet.registry import Registry


class Part:
    def __init__(self, name) -> None:
        self.name = name


SALT, PEPPER = Part("salt"), Part("pepper")


@pytest.fixture
def spices() -> Registry[Part]:
    """A registry of salt and pepper."""
    registered: Registry[Part] = Registry("spice")
    assert registered.register(SALT) is SALT
    registered.register(PEPPER)
    return registered


def test_parts_are_found_by_name_and_listed_in_order_of_registration(spices):
    assert spices.named("salt") is SALT
    assert spices.named("pepper") is PEPPER
    assert spices.names() == ("salt", "pepper")


def test_registering_a_name_again_replaces_the_part_in_place(spices):
    other = spices.register(Part("salt"))
    assert spices.named("salt") is other
    assert spices.names() == ("salt", "pepper")


def test_the_error_for_an_unknown_name_lists_the_known_ones(spices):
    with pytest.raises(InputError, match="There is no spice named 'sugar': choose one of salt, pepper"):
        spices.named("sugar")


def test_registries_do_not_share_their_parts(spices):
    assert spices.names()
    assert Registry("spice").names() == ()


def test_the_built_in_models_are_registered():
    assert BACKBONES.names()[:4] == ("tgcn", "mlp", "linear", "seasonal")
    assert LIKELIHOODS.names()[:4] == ("gaussian", "tobit", "quantile", "censored-quantile")
    for registered in (BACKBONES, LIKELIHOODS):
        for name in registered.names():
            assert registered.named(name).name == name
            assert registered.named(name).title


sugar = Part("sugar")


def registry_with_entry_points(monkeypatch, *entries):
    """A registry, as if installed packages had these entry points."""
    found = [EntryPoint(name, value, "test.spices") for name, value in entries]
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry for entry in found if entry.group == group])
    return Registry("spice", "test.spices")


def test_parts_of_installed_packages_are_loaded_on_request(monkeypatch):
    parts = registry_with_entry_points(monkeypatch, ("sugar", f"{__name__}:sugar"), ("broken", "no.such.module:part"))
    parts.register(Part("salt"))
    assert parts.named("sugar") is sugar
    assert parts.is_installed("sugar")
    assert not parts.is_installed("salt")
    assert parts.names() == ("salt", "sugar")
    with pytest.raises(InputError, match=r"cannot load its spice 'broken'.*fix the package, or uninstall it"):
        parts.named("broken")


def test_a_registered_part_takes_precedence_over_an_installed_one(monkeypatch):
    parts = registry_with_entry_points(monkeypatch, ("sugar", f"{__name__}:sugar"))
    own = parts.register(Part("sugar"))
    assert parts.named("sugar") is own
    assert not parts.is_installed("sugar")


def test_an_entry_point_must_have_the_name_of_its_part(monkeypatch):
    parts = registry_with_entry_points(monkeypatch, ("honey", f"{__name__}:sugar"))
    with pytest.raises(InputError, match="whose own name is 'sugar'"):
        parts.named("honey")
    assert parts.names() == ()
