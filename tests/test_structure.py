"""Limits that keep the code readable: sizes of functions, classes and files, and one meaning for each name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.conftest import SLOW_FIRST

SOURCE = Path(__file__).parents[1] / "src" / "unmet"
MAX_FUNCTION_LINES = 60  # without the docstring
MAX_FILE_LINES = 375
MAX_FIELDS = 12
MAX_METHODS = 20

LONG_FUNCTIONS = {
    "fit_rates": "the components of one fit, each given the others",
}
WIDE_CLASSES = {
    "Habits": "the parameters of the built-in city, documented as one table",
    "Mapping": "the keys of a flat YAML file",
    "PanelChoices": "the options of a command",
    "_Options": "the keys of a stored model",
    "HourlyHistory": "one array for each running state",
    "Forecaster": "annotations of fitted values",
    "Inspection": "the keys of a JSON summary",
    "AreaEstimate": "the tables and draws that are sent from one process to another",
    "_Sums": "one running sum for each table",
}
SHARED_NAMES: dict[str, str] = {}
"""Public classes and functions that two modules define, and why."""


def modules() -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def code_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    lines = (node.end_lineno or 0) - node.lineno + 1
    first = node.body[0]
    if ast.get_docstring(node) is not None:
        lines -= (first.end_lineno or 0) - first.lineno + 1
    return lines


def public_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def test_functions_fit_a_screen():
    long = {
        f"{path.relative_to(SOURCE)}: {node.name} has {code_lines(node)} lines"
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and code_lines(node) > MAX_FUNCTION_LINES
        and node.name not in LONG_FUNCTIONS
    }
    assert long == set()


def test_classes_have_few_fields_and_methods():
    wide = set()
    for path, tree in modules():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ClassDef) or node.name in WIDE_CLASSES:
                continue
            fields = sum(isinstance(part, ast.AnnAssign) for part in node.body)
            methods = sum(isinstance(part, ast.FunctionDef) for part in node.body)
            if fields > MAX_FIELDS or methods > MAX_METHODS:
                wide.add(f"{path.relative_to(SOURCE)}: {node.name} has {fields} fields and {methods} methods")
    assert wide == set()


def test_files_are_short():
    lines = {str(path.relative_to(SOURCE)): path.read_text(encoding="utf-8").count("\n") for path, _ in modules()}
    assert {name: number for name, number in lines.items() if number > MAX_FILE_LINES} == {}


def test_a_public_name_is_defined_once():
    """Commands are exempt: they have the names that users type, which the functions they call have too."""
    defined = defaultdict(list)
    for path, tree in modules():
        if path.parent.name != "cli":
            for name in public_names(tree):
                defined[name].append(str(path.relative_to(SOURCE)))
    twice = {name: places for name, places in defined.items() if len(places) > 1 and name not in SHARED_NAMES}
    assert twice == {}


def test_the_files_of_tests_that_run_first_exist():
    tests = Path(__file__).parent
    assert [name for name in SLOW_FIRST if not (tests / name).is_file()] == []
