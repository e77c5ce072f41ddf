"""Inputs that once crashed a reader are now read, or refused with one sentence."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from tests.fuzzing import CORPUS, TARGETS
from unmet.errors import InputError


@pytest.mark.parametrize("kept", sorted(CORPUS.iterdir()), ids=lambda path: path.name)
def test_an_input_that_once_failed_is_read_or_refused(kept: Path, tmp_path):
    target = TARGETS[kept.name.partition("--")[0]]
    path = tmp_path / target.file
    path.write_bytes(kept.read_bytes())
    with contextlib.suppress(InputError):
        target.read(path)


@pytest.mark.parametrize("name", TARGETS)
def test_the_inputs_that_are_mutated_are_valid(name, tmp_path):
    target = TARGETS[name]
    for i, seed in enumerate(target.seeds()):
        (tmp_path / str(i)).mkdir()
        path = tmp_path / str(i) / target.file
        path.write_bytes(seed)
        assert target.read(path) is not None
