"""Registries: parts by their names, ours and those of others."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest

from unmet import registry as room
from unmet.errors import InputError
from unmet.models.backbones import BACKBONES
from unmet.models.likelihoods import LIKELIHOODS
from unmet.registry import Registry


class Part:
    def __init__(self, name) -> None:
        self.name = name


def test_a_part_is_found_by_its_name_in_the_order_of_registering():
    parts: Registry[Part] = Registry("spice")
    salt, pepper = Part("salt"), Part("pepper")
    assert parts.register(salt) is salt
    parts.register(pepper)
    assert parts.named("salt") is salt
    assert parts.named("pepper") is pepper
    assert parts.names() == ("salt", "pepper")


def test_the_last_of_a_name_counts_and_keeps_the_place():
    parts: Registry[Part] = Registry("spice")
    parts.register(Part("salt"))
    parts.register(Part("pepper"))
    other = parts.register(Part("salt"))
    assert parts.named("salt") is other
    assert parts.names() == ("salt", "pepper")


def test_an_unknown_name_is_told_with_those_that_are_known():
    parts: Registry[Part] = Registry("spice")
    parts.register(Part("salt"))
    parts.register(Part("pepper"))
    with pytest.raises(InputError, match="There is no spice named 'sugar': choose one of salt, pepper"):
        parts.named("sugar")


def test_registries_do_not_share_their_parts():
    parts: Registry[Part] = Registry("spice")
    parts.register(Part("salt"))
    assert Registry("spice").names() == ()


def test_our_models_are_there():
    assert BACKBONES.names()[:4] == ("tgcn", "mlp", "linear", "seasonal")
    assert LIKELIHOODS.names()[:4] == ("gaussian", "tobit", "quantile", "censored-quantile")
    for registered in (BACKBONES, LIKELIHOODS):
        for name in registered.names():
            assert registered.named(name).name == name
            assert registered.named(name).title


sugar = Part("sugar")


def brought(monkeypatch, *entries):
    """A registry in a world where packages announce these parts."""
    found = [EntryPoint(name, value, "test.spices") for name, value in entries]
    monkeypatch.setattr(room, "entry_points", lambda group: [entry for entry in found if entry.group == group])
    return Registry("spice", "test.spices")


def test_packages_bring_parts_that_are_loaded_when_asked_for(monkeypatch):
    parts = brought(monkeypatch, ("sugar", f"{__name__}:sugar"), ("broken", "no.such.module:part"))
    parts.register(Part("salt"))
    assert parts.named("sugar") is sugar
    assert parts.is_installed("sugar")
    assert not parts.is_installed("salt")
    assert parts.names() == ("salt", "sugar")
    with pytest.raises(InputError, match=r"cannot load its spice 'broken'.*fix the package, or uninstall it"):
        parts.named("broken")


def test_a_registered_part_goes_before_one_that_a_package_brings(monkeypatch):
    parts = brought(monkeypatch, ("sugar", f"{__name__}:sugar"))
    own = parts.register(Part("sugar"))
    assert parts.named("sugar") is own
    assert not parts.is_installed("sugar")


def test_a_part_must_be_announced_by_its_own_name(monkeypatch):
    parts = brought(monkeypatch, ("honey", f"{__name__}:sugar"))
    with pytest.raises(InputError, match="whose own name is 'sugar'"):
        parts.named("honey")
    assert parts.names() == ()
