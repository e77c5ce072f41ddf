"""`constraints.txt` pins the exact version of every dependency of the package and its extras."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

ROOT = Path(__file__).parents[1]


def plain(requirement: str) -> str:
    """The normalised name of a requirement, as package indexes spell it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[ \[<>=!~;(]", requirement.strip(), maxsplit=1)[0]).lower()


def constrained() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return {plain(line): line.split("==")[1] for line in lines if "==" in line}


def named() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for extra in project["optional-dependencies"].values() for line in extra]
    return {plain(line) for line in (*project["dependencies"], *extras)} - {"unmet"}


def test_constraints_pin_every_direct_dependency():
    assert named() - set(constrained()) == set()


def test_constraints_pin_indirect_dependencies():
    known, seen, left = constrained(), set(), named()
    while left:
        name = left.pop()
        seen.add(name)
        try:
            needed = requires(name) or []
        except PackageNotFoundError:
            continue
        unconditional = {plain(line) for line in needed if ";" not in line}  # no platform or extra attached
        left |= unconditional - seen
    assert seen - set(known) == set()


def test_a_package_that_a_test_imports_is_in_the_dev_extra():
    standard = {"tests", "unmet", "benchmarks", "docs"}
    found = {
        re.split(r"[., ]", line.split(maxsplit=1)[1])[0]
        for path in (ROOT / "tests").rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.match(r"(import|from) [a-z]", line)
    }
    import sys

    outside = {plain(name) for name in found - standard - set(sys.stdlib_module_names)}
    package_of = {"yaml": "pyyaml", "sklearn": "scikit-learn", "drives": "unmet"}
    needed = {package_of.get(name, name) for name in outside} - {"unmet"}
    assert needed - set(constrained()) == set()
    assert needed - named() <= {"click", "starlette", "httpx"}  # dependencies of packages that are named
