"""Find the code blocks of the documentation, and run them as a reader would.

A comment directly before a block changes how it is tested, and says why:
`<!-- parsed: REASON -->` checks that commands and options exist and that Python compiles, without running anything;
`<!-- not run: REASON -->` only checks that Python compiles. Every other block is run.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.main import get_command
from typer.testing import CliRunner

from unmet.cli import app

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
_BLOCK = re.compile(
    r"(?:<!-- (parsed|not run): (.*?) -->\n)?^( *)```(python|sh)\n(.*?)^ *```", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Block:
    """One block of a page: `mode` is run, parsed or not run."""

    page: Path
    line: int
    language: str
    code: str
    mode: str
    reason: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in _BLOCK.finditer(text):
        mode, reason, indent, language, code = match.groups()
        code = re.sub(rf"^{indent}", "", code, flags=re.MULTILINE)
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(page, line, language, code, mode or "run", reason or ""))
    return found


def commands_of(code: str) -> list[list[str]]:
    """The words of every command of a shell block, without comments and a trailing `&`."""
    joined = code.replace("\\\n", " ")
    return [words for line in joined.splitlines() if (words := shlex.split(line.rstrip(" &"), comments=True))]


def check_command(words: list[str]) -> None:
    """Check that a command exists and has these options, without running it."""
    match words:
        case ["unmet", "--install-completion" | "--version"]:
            return
        case ["unmet", *rest]:
            command: Any = get_command(app)
            while hasattr(command, "commands"):
                assert rest[0] in command.commands, words
                command, *rest = command.commands[rest[0]], *rest[1:]
            if "--help" not in rest:
                command.make_context(command.name, list(rest))
        case ["make", target]:
            assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE), words
        case ["pip" | ".venv/bin/pip", "install", *what]:
            extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
            for name in re.findall(r"(?:unmet|\.)\[(.*?)\]", " ".join(what)):
                assert set(name.split(",")) <= set(extras), words
        case ["python", "-m", module, *_] if module.startswith("benchmarks"):
            place = ROOT / module.replace(".", "/")
            assert place.is_dir() or place.with_suffix(".py").exists(), words
        case ["python", file, *_]:
            assert (ROOT / file).exists(), words
        case ["cd" | "git" | "source", *_]:
            return
        case _:
            raise AssertionError(f"not a command that these tests know: {shlex.join(words)}")


def run_command(words: list[str]) -> None:
    """Run a command of unmet in this process; only check that any other exists."""
    if words[0] == "export":
        name, _, value = words[1].partition("=")
        os.environ[name] = value
    elif words[0] in ("cat", "gunzip"):
        subprocess.run(["bash", "-c", shlex.join(words).replace("'>'", ">")], check=True)  # noqa: S607
    elif words[0] == "unmet" and "--version" not in words:
        done = CliRunner().invoke(app, words[1:], catch_exceptions=False)
        assert done.exit_code == 0, f"{shlex.join(words)}: {done.output}"
    else:
        check_command(words)
