"""The store of a study: a folder with the result of every run, named by its hash and written atomically."""

from __future__ import annotations

import os
import shutil
import weakref
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from unmet.claims import hold
from unmet.errors import InputError
from unmet.parquet_files import read_parquet
from unmet.runs import atomic_file
from unmet.study.cells import Run, RunResult

__all__ = ["Store"]

MARK = ".unmet-study"  # file with the name of the study, by which its folder is recognised


class Store:
    """Results of a study: `runs/KEY.parquet`, one row each, and `hours/KEY.parquet`, the forecasts, if they are kept.

    The time that a run took is in `seconds/KEY`, apart from the results, so that a repeated study gives the same bytes.
    """

    def __init__(self, folder: Path, *, name: str = "", overwrite: bool = False, read_only: bool = False) -> None:
        """Open the folder of a study, or create it. A folder with other files, or of another study, is refused."""
        self.folder = folder
        mark = folder / MARK
        if folder.exists() and not folder.is_dir():
            raise InputError(f"{folder} is a file: name a folder with --out.")
        if folder.exists() and any(folder.iterdir()) and not mark.is_file():
            raise InputError(f"{folder} contains files that are not part of a study: name another folder with --out.")
        other = mark.read_text(encoding="utf-8").strip() if mark.is_file() else ""
        if name and other and other != name:
            raise InputError(f"{folder} holds the study {other}, not {name}: name another folder with --out.")
        if read_only:
            return
        try:
            folder.mkdir(parents=True, exist_ok=True)
            weakref.finalize(self, os.close, hold(folder))  # one writer at a time
            mark.write_text(name or other, encoding="utf-8")  # first, so that a study stopped here can be resumed
            for part in ("runs", "hours", "seconds"):
                if overwrite and (folder / part).exists():
                    shutil.rmtree(folder / part)
                (folder / part).mkdir(exist_ok=True)
        except OSError as error:
            raise InputError(f"Cannot write to {folder}: {error.strerror}. Name another folder with --out.") from None

    def has(self, run: Run) -> bool:
        """Whether the result of a run is stored."""
        return self._row(run).is_file()

    def write(self, run: Run, result: RunResult) -> None:
        """Store the result of a run. The row is written last: a run that has one is complete."""
        with atomic_file(self.folder / "seconds" / run.key) as draft:
            draft.write_text(f"{result.seconds:.3f}\n", encoding="utf-8")
        if result.hours is not None:
            with atomic_file(self._hours(run)) as draft:
                result.hours.write_parquet(draft)
        with atomic_file(self._row(run)) as draft:
            pl.DataFrame([result.row]).write_parquet(draft)

    def rows(self, runs: list[Run]) -> pl.DataFrame:
        """The rows of the runs that are stored, in the given order."""
        try:
            frames = [read_parquet(self._row(run)) for run in runs if self.has(run)]
        except PolarsError:
            raise InputError(f"A result in {self.folder / 'runs'} is damaged: start again with --overwrite.") from None
        return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame()

    def seconds(self, run: Run) -> float:
        """The time that a run took [s]."""
        path = self.folder / "seconds" / run.key
        return float(path.read_text(encoding="utf-8")) if path.is_file() else float("nan")

    def counts(self, labels: list[str]) -> dict[tuple[Any, ...], int]:
        """Number of results by (labels, model, backbone), regardless of the data that they are from."""
        rows = [read_parquet(path) for path in (self.folder / "runs").glob("*.parquet")]
        if not rows:
            return {}
        table = pl.concat(rows, how="diagonal_relaxed")
        keys = [*labels, "model", "backbone"]
        if not set(keys) <= set(table.columns):
            return {}
        return {tuple(row[:-1]): row[-1] for row in table.group_by(keys).len().iter_rows()}

    def typical_seconds(self) -> float | None:
        """The median time of the stored runs that trained a network [s]; None if there are none.

        Runs of a second or less are baselines that train no network.
        """
        timed = [float(path.read_text(encoding="utf-8")) for path in (self.folder / "seconds").glob("*")]
        network_runs = sorted(value for value in timed if value > 1)
        return network_runs[len(network_runs) // 2] if network_runs else None

    def hours(self, run: Run) -> pl.DataFrame:
        """The forecasts of a run that keeps them."""
        return read_parquet(self._hours(run))

    def _row(self, run: Run) -> Path:
        return self.folder / "runs" / f"{run.key}.parquet"

    def _hours(self, run: Run) -> Path:
        return self.folder / "hours" / f"{run.key}.parquet"
