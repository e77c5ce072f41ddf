"""Checkpoints: files from which training can be resumed, one per seed, written atomically."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from unmet.claims import claimed, is_claimed
from unmet.errors import InputError
from unmet.models.training import Training, TrainingState
from unmet.runs import atomic_file

__all__ = ["check_trainings", "discard_trainings", "mark_folder", "read_state", "training_folder", "write_state"]

if TYPE_CHECKING:
    from unmet.models.seeds import TrainingJob

MARK = "training-of"  # file with a digest of the panel and options that a folder's checkpoints belong to
STATE_SUFFIX = ".safetensors"
PARTS = ("weights", "best", "moments")  # fields of `TrainingState` with tensors; `numbers()` returns the others


def write_state(path: Path, state: TrainingState) -> None:
    """Write a checkpoint."""
    tensors = {
        f"{part}/{name}": value.cpu().contiguous() for part in PARTS for name, value in getattr(state, part).items()
    }
    with atomic_file(path) as draft:
        save_file(tensors, draft, {"numbers": json.dumps(state.numbers())})


def read_state(path: Path) -> TrainingState:
    """Read a checkpoint; the initial state if there is no file."""
    if not path.exists():
        return TrainingState()
    parts: dict[str, dict[str, torch.Tensor]] = {part: {} for part in PARTS}
    try:
        with safe_open(path, "pt") as file:
            numbers = json.loads(file.metadata()["numbers"])
            for key in file.keys():  # noqa: SIM118 (the file is not a mapping)
                part, _, name = key.partition("/")
                parts[part][name] = file.get_tensor(key)
        numbers["losses"] = [(loss, validation) for loss, validation in numbers["losses"]]
        return TrainingState(**numbers, weights=parts["weights"], best=parts["best"], moments=parts["moments"])
    except (SafetensorError, OSError, KeyError, TypeError, ValueError):
        raise InputError(f"{path} is not a checkpoint that can be read: delete it and start again.") from None


@contextmanager
def training_folder(out: Path, *, resume: bool, overwrite: bool) -> Iterator[Path]:
    """The folder beside a run that holds its checkpoints until the run is written.

    The caller must have claimed the run (`unmet.claims`). With `resume`, the folder must exist. Otherwise it must not
    exist, unless `overwrite` starts again. If training fails, the error says where the checkpoints are kept and how to
    continue; if there are none yet, nothing is left behind.
    """
    folder = _folder_beside(out)
    _check_folder(folder, resume=resume, overwrite=overwrite)
    if not resume and folder.exists():
        shutil.rmtree(folder)
    before = _written(folder)
    try:
        yield folder
    except BaseException as error:
        written = _written(folder)
        if not written:
            shutil.rmtree(folder, ignore_errors=True)
        elif written != before:
            error.add_note(f"The training so far is kept in {folder}: the same command with --resume continues it.")
        raise


def check_trainings(out: Path, *, resume: bool, overwrite: bool) -> None:
    """Make the checks of `training_folder` before the run is claimed, unless another process has claimed it."""
    if not is_claimed(out.resolve()):
        _check_folder(_folder_beside(out), resume=resume, overwrite=overwrite)


def discard_trainings(out: Path) -> None:
    """Delete the checkpoints of a finished run, unless another process has since begun a new run there."""
    with suppress(InputError), claimed(out.resolve(), 0.0):
        shutil.rmtree(_folder_beside(out), ignore_errors=True)


def _folder_beside(out: Path) -> Path:
    return out.with_name(f"{out.name}.training")


def _written(folder: Path) -> dict[str, int]:
    """When each checkpoint was written [ns]."""
    return {path.name: path.stat().st_mtime_ns for path in folder.glob(f"*{STATE_SUFFIX}")}


def _check_folder(folder: Path, *, resume: bool, overwrite: bool) -> None:
    if resume and not (folder / MARK).is_file():
        raise InputError(f"There is no unfinished training at {folder}: leave out --resume.")
    if not resume and folder.exists():
        if not overwrite:
            raise InputError(
                f"There is unfinished training at {folder}: resume it (--resume), or start again (--overwrite)."
            )
        if not (folder / MARK).is_file() and any(folder.iterdir()):
            raise InputError(f"{folder} holds files that unmet did not write: name another folder with --out.")


def mark_folder(folder: Path, job: TrainingJob, options: dict[str, Any]) -> None:
    """Mark a folder as that of a job's checkpoints; refuse one that is marked for another panel or other options."""
    digest = hashlib.sha256()
    for part in job.task.data:
        digest.update(np.ascontiguousarray(part.cpu().numpy()).tobytes())
    if job.task.true_demand is not None:
        digest.update(job.task.true_demand.lost.tobytes())
    values = {name: asdict(value) if isinstance(value, Training) else value for name, value in options.items()}
    values.pop("workers")  # does not change the result
    digest.update(json.dumps(values, sort_keys=True, default=str).encode())
    digest.update(job.graph.data.tobytes())
    mark = folder / MARK
    if mark.exists() and mark.read_text(encoding="utf-8") != digest.hexdigest():
        raise InputError(f"{folder} holds checkpoints of another panel or with other options: start again.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        mark.write_text(digest.hexdigest(), encoding="utf-8")
    except OSError as error:
        raise InputError(f"Cannot write checkpoints to {folder}: {error.strerror}. Name another folder.") from None
