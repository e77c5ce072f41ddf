"""The state of the running app: the city, runs, uploads and jobs."""

from __future__ import annotations

import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

import polars as pl

from unmet.errors import InputError
from unmet.views.app.jobs import Job, Jobs
from unmet.views.app.live_city import LiveCity
from unmet.views.app.settings import Settings
from unmet.views.app.uploads import Uploads
from unmet.views.app.work import forecast_run, plan_run, recover_again, recover_upload
from unmet.views.figures.map_layers import read_layers
from unmet.views.stored import StoredRuns, read_runs

__all__ = ["GIVEN", "State"]

CACHE_SIZE = 8  # number of runs of jobs that stay in memory
GIVEN = "given"
"""The name of the runs that the app was started with."""
DOWNLOADS = frozenset({".csv", ".xlsx", ".geojson", ".parquet"})
"""Endings of the files of a run that may be downloaded."""


class State:
    """One per server; `close` ends its jobs and removes uploads."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._own_folder = settings.folder is None
        self.folder = Path(tempfile.mkdtemp(prefix="unmet-app-")) if settings.folder is None else settings.folder
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"Cannot write to {self.folder}: {error.strerror}. Name another --folder.") from None
        self.city = LiveCity(settings.seed)
        self.jobs = Jobs(self.folder / "jobs", settings.limits)
        self.uploads = Uploads(self.folder / "uploads", settings.limits.upload_bytes)
        self._runs_lock = threading.Lock()
        self.layers = None if settings.basemap is None else read_layers(settings.basemap)
        self._runs: dict[str, StoredRuns] = {GIVEN: read_runs(list(settings.runs), self.layers)}

    def close(self) -> None:
        """End all jobs, and remove uploads and results in a temporary folder."""
        self.jobs.close()
        if self._own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def runs(self, name: str) -> StoredRuns:
        """The runs with a name: those given at the start, or the run of a job. Raises KeyError if there are none."""
        with self._runs_lock:
            if name not in self._runs:
                job = self.jobs.named(name)
                if job.state != "done":
                    raise KeyError(name)
                self._runs[name] = read_runs([job.run], self.layers)
            self._runs[name] = self._runs.pop(name)  # the one used last comes last
            of_jobs = [kept for kept in self._runs if kept != GIVEN]
            for oldest in of_jobs[:-CACHE_SIZE]:
                del self._runs[oldest]
            return self._runs[name]

    def lost_folder(self, name: str) -> Path:
        """The folder of the lost demand among the runs with a name."""
        folder = next((run.folder for run in self.runs(name).runs if run.kind == "lost"), None)
        if folder is None:
            raise InputError("There is no lost demand to start from: give a run of `unmet recover`, or upload records.")
        return folder

    def table(self, name: str, table: str) -> pl.DataFrame:
        """A table of the runs with a name. Raises KeyError if there is none."""
        runs = self.runs(name)
        found: dict[str, pl.DataFrame] = {}
        if runs.lost is not None:
            lost = runs.lost
            found |= {
                "sites": lost.ranked_sites(), "stations": lost.stations, "regions": lost.ranked_regions(),
                "weeks": lost.weeks, "sensitivity": lost.sensitivity, "week_hours": lost.week_hours,
            }  # fmt: skip
            if lost.rejected is not None:
                found["rejected"] = lost.rejected
        if runs.plan is not None:
            found["plan"] = runs.plan.tables.sites
        if runs.forecast is not None:
            found["forecast"] = runs.forecast.forecast
        return found[table]

    def file(self, name: str, file: str) -> Path:
        """A file of the runs with a name. Raises KeyError if there is none."""
        for run in self.runs(name).runs:
            listed = {path.name: path for path in run.folder.iterdir() if path.suffix in DOWNLOADS and path.is_file()}
            if file in listed:
                return listed[file]
        raise KeyError(file)

    def start_recover(self, upload_id: str, request: dict[str, Any]) -> Job:
        """Estimate the lost demand of an upload."""
        upload = self.uploads.named(upload_id)
        limits = self.settings.limits
        if not upload.sessions:
            raise InputError("There are no session records in this upload: add a file of sessions.")
        job_request = request | {
            "files": [str(path) for path in upload.sessions],
            "stations": str(upload.stations) if upload.stations else None,
            "names": upload.names,
            "max_rows": limits.upload_rows,
            "max_bytes": limits.upload_bytes,
            "seed": self.settings.seed,
        }
        return self.jobs.start("recover", recover_upload, job_request)

    def start_recover_again(self, name: str, request: dict[str, Any]) -> Job:
        """Repeat the estimate of a run under other assumptions."""
        job_request = request | {"run": str(self.lost_folder(name)), "seed": self.settings.seed}
        return self.jobs.start("recover", recover_again, job_request)

    def start_plan(self, name: str, request: dict[str, Any]) -> Job:
        """Plan where to add plugs."""
        return self.jobs.start("plan", plan_run, request | {"run": str(self.lost_folder(name))})

    def start_forecast(self, name: str, hours: int) -> Job:
        """Forecast the hours after the records."""
        request = {"run": str(self.lost_folder(name)), "hours": hours, "seed": self.settings.seed}
        return self.jobs.start("forecast", forecast_run, request)
