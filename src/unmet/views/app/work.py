"""The work of jobs: estimate lost demand, plan, forecast. Each job writes a run that the commands can read."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from unmet.errors import InputError
from unmet.views.app.jobs import ReportProgress

__all__ = ["forecast_run", "plan_run", "recover_again", "recover_upload"]

BLOCK_BYTES = 1 << 20
PLAN_STEPS = {
    "Reading the drivers": 0.05,
    "Replaying drivers": 0.3,
    "Choosing plugs": 0.55,
    "Simulating all sites together": 0.6,
    "Assessing the uncertainty of the choice": 0.75,
}
"""Share of the work that is done when a step of `unmet.planning.plan.plan` begins; keys are its progress messages."""
MAX_EXPANSION = 20  # a gzipped file may expand to this many times the limit of an upload


def recover_upload(folder: Path, request: dict[str, Any], progress: ReportProgress) -> None:
    """Read uploaded records and write the run of their lost demand."""
    from unmet.demand.from_records import PanelChoices, panel_from_records

    files = tuple(Path(name) for name in request["files"])
    stations = Path(request["stations"]) if request.get("stations") else None
    progress("Checking the files", 0.05)
    for file in (*files, *([stations] if stations else [])):
        check_rows(file, request["max_rows"], request["max_bytes"])
    progress("Reading records", 0.1)
    choices = PanelChoices(
        files=files, stations=stations, time_zone=request.get("time_zone") or None,
        country=request.get("country") or None, regions=str(request.get("regions") or 10),
    )  # fmt: skip
    panel, rejected, about = panel_from_records(choices)
    if panel.sessions.height > request["max_rows"]:
        raise InputError(
            f"The files hold {panel.sessions.height:,} sessions, but this app accepts at most {request['max_rows']:,}."
        )
    about["formats"] = {
        request["names"].get(Path(name).name, Path(name).name): kind for name, kind in about["formats"].items()
    }
    _recover(folder, panel, rejected, about, request, progress)


def recover_again(folder: Path, request: dict[str, Any], progress: ReportProgress) -> None:
    """Repeat the estimate from the records of a run, under other assumptions."""
    import json

    from unmet.parquet_files import read_parquet

    run = Path(request["run"])
    progress("Reading records", 0.1)
    panel = _panel_of(run)
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    rejected_file = run / "rejected.parquet"
    unchanged = {name: summary[name] for name in ("energies", "interval") if name in summary}
    rejected = read_parquet(rejected_file) if rejected_file.is_file() else None
    _recover(folder, panel, rejected, summary.get("records"), request | unchanged, progress)


def _recover(
    folder: Path, panel: Any, rejected: Any, about: Any, request: dict[str, Any], progress: ReportProgress
) -> None:
    """Estimate the lost demand of a panel and write the run; `about` says how the records were read."""
    from unmet.estimation.lost_demand import LostDemand
    from unmet.views.lost_report import LostReport
    from unmet.views.recovery import write_recovery
    from unmet.views.table_files import write_table_files

    progress("Estimating lost demand", 0.35)
    options = {name: request[name] for name in ("waiting", "spill", "energies", "interval", "seed") if name in request}
    report = LostReport.of(LostDemand(**options).fit(panel))
    progress("Writing tables and figures", 0.85)
    write_recovery(report, rejected, about, folder)
    write_table_files(folder, frozenset({"csv", "xlsx"}))


def _panel_of(run: Path) -> Any:
    """The records in a run."""
    from unmet.demand.stored import holds_panel, load_panel

    source = next((path for path in (run, run / "panel") if holds_panel(path)), None)
    if source is None:
        raise InputError(
            "This run does not contain its records: estimate lost demand again with this version of `unmet recover`."
        )
    return load_panel(source)


def check_rows(file: Path, max_rows: int, max_bytes: int) -> None:
    """Refuse a text file with too many lines, or a file that is too large once it is unpacked."""
    with file.open("rb") as plain:
        packed = plain.read(2) == b"\x1f\x8b"
    lines = size = 0
    try:
        with gzip.open(file) if packed else file.open("rb") as text:
            while block := text.read(BLOCK_BYTES):
                size += len(block)
                lines += block.count(b"\n")
                if size > max_bytes * (MAX_EXPANSION if packed else 1):
                    raise InputError("The file is too large once it is unpacked: give a smaller one.")
                if lines > max_rows and file.suffix in (".csv", ".gz", ".txt", ".tsv"):
                    raise InputError(f"The file has more than {max_rows:,} lines: give a shorter one.")
    except (OSError, EOFError) as error:
        raise InputError(f"The file cannot be unpacked: {error}.") from None


def plan_run(folder: Path, request: dict[str, Any], progress: ReportProgress) -> None:
    """Plan where to add plugs, from a run of lost demand."""
    from unmet.planning.plan import plan
    from unmet.views.plan import write_plan

    options = {name: value for name, value in request.items() if name not in ("run", "seed") and value is not None}
    result = plan(
        Path(request["run"]), workers=1, progress=lambda step: progress(step, PLAN_STEPS.get(step, 0.5)), **options
    )
    progress("Writing tables and figures", 0.9)
    write_plan(result, folder)


def forecast_run(folder: Path, request: dict[str, Any], progress: ReportProgress) -> None:
    """Fit a model of true demand to a run of lost demand, and forecast the hours ahead."""
    from unmet.demand.stored import read_panel
    from unmet.evaluation.evaluate import evaluate
    from unmet.models.forecaster import Forecaster
    from unmet.models.series import read_series
    from unmet.views.forecast_pages import write_forecast
    from unmet.views.model_report import ForecastReport
    from unmet.views.table_files import write_table_files

    progress("Reading the records", 0.05)
    stored = read_panel(Path(request["run"]))
    progress("Fitting a model", 0.15)
    model = Forecaster(seed=request["seed"], time_zone=stored.time_zone, country=stored.country)
    model.fit(stored.table, stored.regions)
    progress("Comparing with a table of past weeks", 0.6)
    worse = evaluate(model, stored.table).comparison.worse_regions()
    progress("Forecasting", 0.85)
    forecast = model.forecast(stored.table, request["hours"]).hours
    past = read_series(stored.table, names=model.regions_, last_hours=168).table()
    write_forecast(ForecastReport(model, forecast, past, worse=tuple(worse)), folder)
    write_table_files(folder, None)
