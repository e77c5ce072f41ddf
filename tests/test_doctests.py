"""Examples in docstrings run, and every public name has one, with its arguments and what it returns."""

from __future__ import annotations

import doctest
import inspect
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import unmet
from tests.small_network import STATIONS, records

SOURCE = Path(unmet.__file__).parent
WITH_EXAMPLES = sorted(
    ".".join(("unmet", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
    for path in SOURCE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)
PUBLIC = [name for name in unmet.__all__ if not name.startswith("_")]


@pytest.fixture(scope="module")
def given(tmp_path_factory) -> dict[str, object]:
    """What examples begin with: a panel of made-up records, its lost demand, a model, and a stored run."""
    panel = unmet.Panel(records()[0], STATIONS, regions=2, time_zone="Europe/Copenhagen")
    lost = unmet.LostDemand(draws=20).fit(panel)
    run = tmp_path_factory.mktemp("examples") / "recovered"
    run.mkdir()
    import_module("unmet.views.recovery").write_recovery(
        import_module("unmet.views.lost_report").LostReport.of(lost), None, None, run
    )
    return {"unmet": unmet, "panel": panel, "lost": lost, "run": run}


def test_there_are_examples():
    assert {"unmet.demand.panel", "unmet.planning.plan", "unmet.records.sessions"} <= set(WITH_EXAMPLES)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_run(name, given):
    found = doctest.testmod(import_module(name), extraglobs=given, optionflags=doctest.ELLIPSIS)
    assert found.attempted > 0
    assert found.failed == 0


def test_no_example_is_skipped():
    for module in pkgutil.walk_packages(unmet.__path__, "unmet."):
        path = SOURCE.joinpath(*module.name.split(".")[1:])
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            assert not file.is_file() or "doctest: +SKIP" not in file.read_text(encoding="utf-8"), file


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_an_example(name):
    assert ">>> " in (inspect.getdoc(getattr(unmet, name)) or "")


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_function_names_its_arguments_and_what_it_returns(name):
    thing = getattr(unmet, name)
    text = inspect.getdoc(thing) or ""
    function = thing if inspect.isfunction(thing) else thing.__init__  # that of Forecaster is its kinds' own
    if inspect.isfunction(thing):
        assert "Returns:" in text
    if name in ("Plan", "Scenario", "InputError"):  # made by others, described by fields, or one sentence
        return
    asked = [each for each in inspect.signature(function).parameters if each not in ("self", "args", "kwargs")]
    for parameter in asked:
        assert f"{parameter}:" in text or f"*{parameter}:" in text, parameter
