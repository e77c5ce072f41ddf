"""Run folders, as read by reports and the app: lost demand, a plan, a forecast."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from unmet.errors import InputError
from unmet.files import read_json
from unmet.parquet_files import read_parquet
from unmet.planning.plan_tables import PlanTables
from unmet.shown import Shown
from unmet.views.figures.map_layers import MapLayers, region_outlines
from unmet.views.lost_tables import LostTables

__all__ = ["StoredForecast", "StoredLost", "StoredPlan", "StoredRun", "StoredRuns", "open_runs", "read_runs"]

KINDS = {  # kinds of runs, and the commands that write them
    "lost": "`unmet recover` or `unmet panel`",
    "plan": "`unmet plan`",
    "forecast": "`unmet forecast`",
}
WEEKS, BY_REGION, SENSITIVITY, HOURS = "weeks", "by_region", "sensitivity", "hours"


@dataclass(frozen=True)
class StoredRun:
    """The folder, kind and summary of a run."""

    folder: Path
    kind: str
    summary: dict[str, Any]

    @property
    def digest(self) -> str:
        """First twelve digits of the SHA-256 of its summary, to tell runs apart."""
        return hashlib.sha256((self.folder / "summary.json").read_bytes()).hexdigest()[:12]


@dataclass(frozen=True)
class StoredLost(LostTables):
    """Lost demand, read from the folder of a run."""

    folder: Path = field(default=Path(), kw_only=True)
    rejected: pl.DataFrame | None = field(default=None, kw_only=True)

    @cached_property
    def hours(self) -> pl.DataFrame:
        """One row per region and hour."""
        if (self.folder / "hours.parquet").is_file():
            return _table(self.folder, HOURS)
        return _table(self.folder, "panel").rename({"y": "observed_kwh"})

    @property
    def time_zone(self) -> str:
        """Name of the local time zone; runs of old versions keep it in other places."""
        found = self.summary.get("time_zone") or (self.summary.get("records") or {}).get("time_zone")
        for about in (self.folder / "panel.json", self.folder / "panel" / "panel.json"):
            if not found and about.is_file():
                found = _json(about).get("time_zone")
        return str(found or "UTC")

    @property
    def far_off(self) -> bool:
        """Whether the self-check says that the estimate is doubtful."""
        return bool(self.summary.get("doubtful"))

    @property
    def elsewhere_kwh(self) -> float:
        """Energy that is expected to have gone to competitors [kWh]."""
        return float(self.summary.get("elsewhere_kwh") or 0.0)

    @property
    def records(self) -> dict[str, Any]:
        """How the records were read, and counts of rows that were used or set aside; empty if a panel was read."""
        own = self.summary.get("records")
        return dict(own) if own else (self.summary if "rows_in" in self.summary else {})


@dataclass(frozen=True)
class StoredPlan:
    """A plan, read from the folder of a run, in the form that figures of plans expect."""

    summary: dict[str, Any]
    tables: PlanTables
    layers: MapLayers | None = None
    """Lines and outlines to draw under its map."""

    @property
    def plugs(self) -> int:
        """Number of plugs added."""
        return int(self.summary["plugs"])

    @property
    def knee(self) -> int | None:
        """Number of plugs beyond which more plugs gain little."""
        return None if self.summary.get("knee") is None else int(self.summary["knee"])

    @property
    def interval(self) -> float:
        """Probability that an interval contains the truth."""
        return float(self.summary["interval"])

    @property
    def lost_kwh(self) -> float:
        """Energy lost per week without the plan [kWh]."""
        return float(self.summary["lost_kwh_per_week"])

    @property
    def chosen(self) -> pl.DataFrame:
        """Sites that get plugs, with `label`, a unique name."""
        name = pl.col("name").fill_null(pl.col("site_id"))
        label = pl.when(name.is_duplicated()).then(pl.format("{} ({})", name, "site_id")).otherwise(name)
        return self.tables.sites.with_columns(label=label).filter(pl.col("plugs_added") > 0)


@dataclass(frozen=True)
class _StoredModel:
    """The attributes of a model that figures of forecasts use."""

    levels: tuple[float, ...]
    time_zone_: str
    forecasts_true: bool


@dataclass(frozen=True)
class StoredForecast:
    """A forecast, read from the folder of a run, in the form that figures of forecasts expect."""

    summary: dict[str, Any]
    forecast: pl.DataFrame
    past: pl.DataFrame

    @cached_property
    def model(self) -> _StoredModel:
        """The quantile levels and the time zone, and whether true demand is forecast."""
        levels = sorted(float(name[1:]) for name in self.forecast.columns if _is_quantile(name))
        zone, true = str(self.summary.get("time_zone") or "UTC"), bool(self.summary.get("forecasts_true", True))
        return _StoredModel(tuple(levels), zone, true)

    def expected(self) -> pl.DataFrame:
        """The forecast with its mean [kWh]."""
        from unmet.views.model_report import expected_hours

        return expected_hours(self.forecast, self.model.levels)

    def totals(self) -> pl.DataFrame:
        """Expected energy by region over all forecast hours [kWh], largest first: `unique_id, kwh, peak_kwh, peak`."""
        from unmet.views.model_report import expected_totals

        return expected_totals(self.forecast, self.model.levels)

    def busiest(self) -> list[str]:
        """The regions by expected energy, largest first."""
        return [str(name) for name in self.totals()["unique_id"]]


@dataclass(frozen=True)
class StoredRuns(Shown):
    """The runs of one report: at most one each of lost demand, a plan and a forecast."""

    runs: tuple[StoredRun, ...]
    lost: StoredLost | None = None
    plan: StoredPlan | None = None
    forecast: StoredForecast | None = None


def open_runs(*folders: str | Path) -> StoredRuns:
    """Open run folders, to explore them in a notebook.

    Args:
        folders: folders that `recover`, `panel`, `plan` or `forecast` wrote, at most one of each kind.

    Returns:
        The runs, with `.plot()`; `.lost`, `.plan` and `.forecast` have their tables.

    Examples:
        >>> runs = open_runs(run)  # the folder of `unmet recover`
        >>> runs.lost.sites.columns[:2]
        ['site_id', 'name']
        >>> type(runs.plot("when")).__name__
        'Figure'
    """
    return read_runs([Path(folder) for folder in folders])


def read_runs(folders: list[Path], layers: MapLayers | None = None) -> StoredRuns:
    """Read run folders, at most one of each kind.

    Args:
        folders: folders that `recover`, `panel`, `plan` or `forecast` wrote.
        layers: lines to draw under maps.
    """
    runs = [_run(folder) for folder in folders]
    for kind, commands in KINDS.items():
        same = [str(run.folder) for run in runs if run.kind == kind]
        if len(same) > 1:
            raise InputError(f"{', '.join(same)} are all runs of {commands}: a page shows one, so give one of them.")
    by_kind = {run.kind: run for run in runs}
    try:
        lost = _lost(by_kind["lost"], layers) if "lost" in by_kind else None
        return StoredRuns(
            tuple(runs),
            lost,
            _plan(by_kind["plan"], lost.layers if lost else layers) if "plan" in by_kind else None,
            _forecast(by_kind["forecast"]) if "forecast" in by_kind else None,
        )
    except InputError:
        raise
    except (KeyError, pl.exceptions.PolarsError, OSError, ValueError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        names = ", ".join(str(run.folder) for run in runs)
        raise InputError(f"A table of {names} is damaged ({reason}): make the run again with --overwrite.") from None


def _run(folder: Path) -> StoredRun:
    if not folder.is_dir():
        raise InputError(f"There is no run at {folder}: give a folder that {_all_commands()} wrote.")
    found = next(
        (
            kind
            for kind, file in (("plan", "plan.parquet"), ("forecast", "forecast.parquet"), ("lost", "sites.parquet"))
            if (folder / file).is_file() and (folder / "summary.json").is_file()
        ),
        None,
    )
    if found is None:
        raise InputError(f"{folder} is not a run that a report can show: give a folder that {_all_commands()} wrote.")
    return StoredRun(folder, found, _json(folder / "summary.json"))


def _all_commands() -> str:
    return "`unmet recover`, `unmet panel`, `unmet plan` or `unmet forecast`"


def _lost(run: StoredRun, layers: MapLayers | None) -> StoredLost:
    folder = run.folder
    stations = _table(folder, "stations")
    regions = BY_REGION if (folder / f"{BY_REGION}.parquet").is_file() else "regions"
    outlines = region_outlines(stations)
    return StoredLost(
        run.summary,
        stations,
        _table(folder, "sites"),
        _table(folder, regions),
        _table(folder, WEEKS),
        _table(folder, SENSITIVITY),
        layers=MapLayers(layers.lines if layers else (), outlines),
        folder=folder,
        rejected=_table(folder, "rejected") if (folder / "rejected.parquet").is_file() else None,
    )


def _plan(run: StoredRun, layers: MapLayers | None) -> StoredPlan:
    curve, sensitivity = (
        _table(run.folder, name)
        if (run.folder / f"{name}.parquet").is_file()
        else pl.read_csv(run.folder / f"{name}.csv")  # runs of versions up to 0.2.0
        for name in ("gain", SENSITIVITY)
    )
    return StoredPlan(run.summary, PlanTables(_table(run.folder, "plan"), curve, sensitivity), layers)


def _forecast(run: StoredRun) -> StoredForecast:
    forecast = _table(run.folder, "forecast")
    past = forecast.select("unique_id", "ds").clear().with_columns(demand=pl.lit(0.0))
    if (run.folder / "past.parquet").is_file():
        past = _table(run.folder, "past")
    if not any(_is_quantile(name) for name in forecast.columns):
        raise InputError(f"{run.folder} holds a forecast without quantiles: make it again with `unmet forecast`.")
    return StoredForecast(run.summary, forecast, past)


def _is_quantile(name: str) -> bool:
    return name[:1] == "q" and name[1:].replace(".", "", 1).isdecimal()


def _table(folder: Path, name: str) -> pl.DataFrame:
    path = folder / f"{name}.parquet"
    if not path.is_file():
        raise InputError(f"{folder} has no {name}.parquet: make the run again with this version and --overwrite.")
    try:
        return read_parquet(path)
    except (OSError, pl.exceptions.PolarsError):
        raise InputError(f"{path} is damaged: make the run again with --overwrite.") from None


def _json(path: Path) -> dict[str, Any]:
    try:
        value = read_json(path)
    except (OSError, ValueError):
        raise InputError(f"{path} is damaged: make the run again with --overwrite.") from None
    if not isinstance(value, dict):
        raise InputError(f"{path} is damaged: make the run again with --overwrite.")
    return value
