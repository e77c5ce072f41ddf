"""Parcels: a scene, and the models that only this process has registered, as bytes for a worker process."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import cloudpickle

from unmet.errors import InputError
from unmet.models.backbones import BACKBONES
from unmet.models.direct import DIRECT
from unmet.models.likelihoods import LIKELIHOODS
from unmet.registry import Registry
from unmet.study.baselines import BASELINES
from unmet.study.cells import ORACLE, Run
from unmet.study.scenes import Scene

__all__ = ["pack", "unpack_scene"]


def pack(scene: Scene, runs: Sequence[Run]) -> bytes:
    """A scene as bytes, with those backbones, likelihoods and baselines of its runs that workers could not import.

    These are classes that a script registered. Each is sent with everything that it uses from its own module; the
    worker must be able to import the rest.
    """
    known = BASELINES.names()
    networks = [run for run in runs if run.model not in known]
    found = (  # direct backbones and the oracle are part of unmet, and in none of these registries
        _only_here(BACKBONES, (run.backbone for run in networks if run.backbone not in DIRECT)),
        _only_here(LIKELIHOODS, (run.model for run in networks if run.model != ORACLE)),
        _only_here(BASELINES, (run.model for run in runs if run.model in known)),
    )
    parts = [part for kind in found for part in kind.values()]
    with _by_value({sys.modules[part.__module__] for part in parts}):
        try:
            return bytes(cloudpickle.dumps((scene, *(list(kind.values()) for kind in found))))
        except Exception as error:
            names = ", ".join(name for kind in found for name in kind)
            raise InputError(
                f"{names} cannot be sent to other processes ({error}): run with --workers 1, or install their "
                "code as a package with an entry point."
            ) from None


def unpack_scene(parcel: bytes) -> Scene:
    """The scene of a parcel; the models sent with it are registered in this process."""
    scene, backbones, likelihoods, baselines = cloudpickle.loads(parcel)
    for backbone in backbones:
        BACKBONES.register(backbone)
    for likelihood in likelihoods:
        LIKELIHOODS.register(likelihood)
    for baseline in baselines:
        BASELINES.register(baseline)
    return scene  # type: ignore[no-any-return]


def _only_here(registry: Registry[Any], names: Iterable[str]) -> dict[str, type]:
    """The parts that another process could not find, because they are in neither unmet nor an installed package."""
    found = {name: registry.named(name) for name in dict.fromkeys(names)}
    return {
        name: part
        for name, part in found.items()
        if not part.__module__.startswith("unmet.") and not registry.is_installed(name)
    }


@contextmanager
def _by_value(modules: set[ModuleType]) -> Iterator[None]:
    """Let cloudpickle send the classes of these modules with their code instead of an import path."""
    added = [module for module in modules if module.__name__ not in cloudpickle.list_registry_pickle_by_value()]
    for module in added:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in added:
            cloudpickle.unregister_pickle_by_value(module)
