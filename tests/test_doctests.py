"""Examples in docstrings run, and every public name has one, besides `Args` and `Returns`."""

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
    """The names that examples can use: a panel of simulated records, its lost demand, and a stored run."""
    panel = unmet.Panel(records()[0], STATIONS, regions=2, time_zone="Europe/Copenhagen")
    lost = unmet.LostDemand(draws=20).fit(panel)
    run = tmp_path_factory.mktemp("examples") / "recovered"
    run.mkdir()
    import_module("unmet.views.recovery").write_recovery(
        import_module("unmet.views.lost_report").LostReport.of(lost), None, None, run
    )
    return {"unmet": unmet, "panel": panel, "lost": lost, "run": run}


def test_important_modules_have_examples():
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
def test_every_public_name_documents_its_arguments_and_return_value(name):
    thing = getattr(unmet, name)
    text = inspect.getdoc(thing) or ""
    function = thing if inspect.isfunction(thing) else thing.__init__
    if inspect.isfunction(thing):
        assert "Returns:" in text
    if name in ("Plan", "Scenario", "InputError"):  # made by `plan`, documented by fields, takes one sentence
        return
    for parameter in set(inspect.signature(function).parameters) - {"self", "args", "kwargs"}:
        assert f"{parameter}:" in text or f"*{parameter}:" in text, parameter
