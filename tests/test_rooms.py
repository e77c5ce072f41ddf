"""A module or subpackage ("room") imports only from those above it in the order of `docs/architecture.md`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "unmet"

# From top to bottom.
ORDER = [
    "errors",
    "arrays",
    "extras",
    "memory",
    "files",
    "parquet_files",
    "clusters",
    "registry",
    "manifest",
    "claims",
    "shown",
    "finite",
    "runs",
    "processes",
    "compiled",
    "zones",
    "csv_files",
    "tables",
    "frames",
    "geo",
    "city",
    "simulation",
    "records",
    "demand",
    "estimation",
    "models",
    "evaluation",
    "planning",
    "study",
    "views",
    "cli",
    "__main__",
]


def room_of(path: Path) -> str:
    part = path.relative_to(SOURCE).parts[0]
    return part.removesuffix(".py")


def imports(path: Path) -> list[tuple[int, str]]:
    """Line and room of every import of unmet in a file, including imports inside functions."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative imports hide the room"
            names = [node.module] if node.module != "unmet" else [f"unmet.{alias.name}" for alias in node.names]
        else:
            continue
        found += [(node.lineno, name.split(".")[1]) for name in names if name.startswith("unmet.")]
    return found


def wrong_imports(files: list[Path]) -> list[str]:
    wrong = []
    for path in files:
        here = room_of(path)
        for line, room in imports(path):
            if room == "__version__" or room == here:
                continue
            if ORDER.index(room) > ORDER.index(here):
                wrong.append(f"{path.relative_to(SOURCE)}:{line} imports {room}, a room below {here}")
    return wrong


def sources() -> list[Path]:
    return [path for path in SOURCE.rglob("*.py") if path != SOURCE / "__init__.py"]


def test_every_file_is_in_a_known_package():
    assert {room_of(path) for path in sources()} <= set(ORDER)


def test_no_package_imports_from_one_below_it():
    assert wrong_imports(sources()) == []


def test_the_architecture_page_lists_the_packages_in_order():
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.split("## The rooms")[1].split("## ")[0]
    listed = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert listed == ORDER[ORDER.index("geo") : ORDER.index("cli") + 1]
    small = re.findall(r"`(\w+)`", table.split("Above them all")[1])
    assert set(small) <= set(ORDER[: ORDER.index("geo")])


def test_an_import_from_below_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    (tmp_path / "city").mkdir()
    file = tmp_path / "city" / "bad.py"
    file.write_text("def f():\n    from unmet.views import page\n")
    assert wrong_imports([file]) == ["city/bad.py:2 imports views, a room below city"]
