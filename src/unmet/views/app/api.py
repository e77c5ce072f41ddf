"""The JSON API, with which programs can do everything that the pages do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import polars as pl
from fastapi import APIRouter, HTTPException, Path, Query, Request
from fastapi.responses import FileResponse, HTMLResponse
from pydantic import BaseModel, ConfigDict, Field

from unmet import __version__
from unmet.errors import InputError
from unmet.simulation.queues import QUEUES
from unmet.views.app.live_city import Answer, Question
from unmet.views.app.state import GIVEN, State
from unmet.views.app.uploads import TooLargeError
from unmet.views.report import report_page

__all__ = ["make_api"]

T = TypeVar("T")

RunName = Annotated[str, Path(pattern=r"^(given|[0-9a-f]{16})$", description="`given`, or the id of a finished job")]
Id = Annotated[str, Path(pattern=r"^[0-9a-f]{16}$")]
_FileName = Annotated[
    str, Query(min_length=1, max_length=255, description="name of the file, whose ending says how to read it")
]
_OptionalId = Annotated[str, Query(pattern=r"^([0-9a-f]{16})?$")]
_BODY = {"requestBody": {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}}
# A report contains its own scripts and styles. The sandbox gives it a separate origin, without access to the app.
REPORT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "sandbox allow-scripts allow-downloads"
)
PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"description": "The request is invalid; `detail` says why"},
    401: {"description": "A token is needed"},
    404: {"description": "There is nothing with that name"},
    413: {"description": "The file is too large"},
}


class Strict(BaseModel):
    """A request that may not have unknown fields."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Totals(BaseModel):
    """Totals of the whole city."""

    observed_kwh: float
    lost_kwh: float
    lost_share: float
    served_drivers: int
    lost_drivers: int
    competitors_kwh: float
    mean_waited_minutes: float
    electric_cars: int


class WhatIf(BaseModel):
    """The result of a what-if simulation."""

    totals: Totals
    seconds: float = Field(description="server time that the simulation took")
    stations: list[dict[str, Any]]
    regions: list[dict[str, Any]]


class Series(BaseModel):
    """A region over time."""

    days: list[str]
    observed_kwh: list[float] = Field(description="energy per day [kWh]")
    lost_kwh: list[float] = Field(description="energy per day [kWh]")
    observed_by_hour: list[float] = Field(description="mean energy in each hour of the day [kWh]")
    lost_by_hour: list[float] = Field(description="mean energy in each hour of the day [kWh]")


class JobView(BaseModel):
    """The progress of a long task."""

    id: str
    kind: str
    state: str
    doing: str
    progress: float
    error: str


class UploadView(BaseModel):
    """Files that were uploaded."""

    id: str
    sessions: int
    has_stations: bool


class Assumptions(Strict):
    """Assumptions about drivers who find no free plug."""

    waiting: float | None = Field(None, ge=0, le=1, description="share of drivers who wait; estimated if null")
    spill: float | None = Field(
        None, ge=0, le=1, description="share of the others who charge nearby; estimated if null"
    )


class RecoverRequest(Assumptions):
    """How to read uploaded records, and what to assume."""

    time_zone: str | None = Field(None, max_length=60, description="local time zone, such as Europe/London")
    country: str | None = Field(None, max_length=10, description="country for holidays, such as GB")
    regions: str = Field("10", max_length=10, pattern=r"^(\d{1,4}|auto|station)$")


class PlanRequest(Strict):
    """What to plan for: a number of plugs, or a budget."""

    run: str = Field(GIVEN, pattern=r"^(given|[0-9a-f]{16})$")
    plugs: int | None = Field(None, ge=1, le=2000)
    budget: float | None = Field(None, gt=0, le=1e12)
    plug_cost: float | None = Field(None, gt=0, le=1e9)
    site_cost: float = Field(0.0, ge=0, le=1e9)
    max_per_site: int | None = Field(None, ge=1, le=200)


class ForecastRequest(Strict):
    """How far to look ahead."""

    run: str = Field(GIVEN, pattern=r"^(given|[0-9a-f]{16})$")
    hours: int = Field(168, ge=1, le=168)


def make_api(state: State) -> APIRouter:
    """The routes of the API."""
    api = APIRouter(prefix="/api", responses=PROBLEMS)

    @api.get("/health", tags=["app"])
    def health() -> dict[str, Any]:
        """Version, and whether the city is ready."""
        return {
            "version": __version__,
            "city_ready": state.city.is_ready,
            "runs": [r.kind for r in state.runs(GIVEN).runs],
        }

    for add_routes in (_add_city, _add_runs, _add_records, _add_tasks):
        add_routes(api, state)

    @api.get("/{path:path}", include_in_schema=False)
    def unknown(path: str) -> None:
        # It must be the last route, because it matches every path. Without it, the app's own page would answer.
        raise HTTPException(404, "There is nothing at this address: /docs lists the addresses of the API.")

    return api


def _add_city(api: APIRouter, state: State) -> None:
    """Simulations of the city."""

    @api.get("/city", tags=["city"])
    def city() -> dict[str, Any]:
        """The built-in city: its stations, queues and the largest share of electric cars."""
        return {
            "queues": list(QUEUES.names()),
            "max_penetration": round(state.city.max_penetration, 5),
            "stations": _rows(state.city.stations),
        }

    @api.post("/city/what-if", tags=["city"])
    def what_if(question: Question) -> WhatIf:
        """Simulate the city again under other assumptions."""
        answer = _or_400(lambda: state.city.ask(question))
        totals = Totals.model_validate(answer.totals)
        stations, regions = _rows(answer.stations), _rows(answer.region_rows())
        return WhatIf(totals=totals, seconds=round(answer.seconds, 4), stations=stations, regions=regions)

    @api.post("/city/regions/{region}", tags=["city"])
    def region(region: Annotated[str, Path(max_length=100)], question: Question) -> Series:
        """One region of the simulated city over time, or `all` of them."""
        return _series(_or_400(lambda: state.city.ask(question)), region)


def _add_runs(api: APIRouter, state: State) -> None:
    """Results of runs."""

    @api.get("/runs/{name}/summary", tags=["runs"])
    def summary(name: RunName) -> dict[str, Any]:
        """Summaries of runs, by their kind."""
        return {run.kind: run.summary for run in _or_404(lambda: state.runs(name)).runs}

    @api.get("/runs/{name}/tables/{table}", tags=["runs"])
    def table(
        name: RunName,
        table: Annotated[str, Path(pattern=r"^[a-z_]{1,30}$")],
        limit: Annotated[int, Query(ge=1, le=10_000)] = 100,
        offset: Annotated[int, Query(ge=0, le=100_000_000)] = 0,
    ) -> dict[str, Any]:
        """Rows of a table: sites, stations, regions, weeks, week_hours, sensitivity, rejected, plan or forecast."""
        found = _or_404(lambda: state.table(name, table))
        return {"rows": _rows(found.slice(offset, limit)), "total": found.height}

    @api.get("/runs/{name}/files/{file}", tags=["runs"], response_class=FileResponse)
    def file(
        name: RunName, file: Annotated[str, Path(pattern=r"^[a-z_]{1,30}\.(csv|xlsx|geojson|parquet)$")]
    ) -> FileResponse:
        """A table of a run as a file."""
        path = _or_404(lambda: state.file(name, file))
        return FileResponse(path, filename=file, content_disposition_type="attachment")

    @api.get("/runs/{name}/report", tags=["runs"], response_class=HTMLResponse)
    def report(name: RunName) -> HTMLResponse:
        """The report on runs, as `unmet report` writes it."""
        runs = _or_404(lambda: state.runs(name))
        if not runs.runs:
            raise HTTPException(404, "No run was given.")
        return HTMLResponse(report_page(runs), headers={"content-security-policy": REPORT_POLICY})


def _add_records(api: APIRouter, state: State) -> None:
    """Uploads of records."""

    @api.post("/records", tags=["records"], status_code=201, openapi_extra=_BODY)
    async def add_records(request: Request, name: _FileName, upload: _OptionalId = "") -> UploadView:
        """Upload a file of sessions as the body of the request; give `upload` to add it to an earlier upload."""
        return await _add(request, name, upload, stations=False)

    @api.post("/records/{upload}/stations", tags=["records"], status_code=201, openapi_extra=_BODY)
    async def add_stations(request: Request, upload: Id, name: _FileName) -> UploadView:
        """Add the table of stations to an upload."""
        return await _add(request, name, upload, stations=True)

    async def _add(request: Request, name: str, upload: str, *, stations: bool) -> UploadView:
        try:
            added = await state.uploads.add(name, request.stream(), upload, stations=stations)
        except KeyError:
            raise HTTPException(404, "There is no such upload.") from None
        except TooLargeError as error:
            raise HTTPException(413, str(error)) from None
        except InputError as error:
            raise HTTPException(400, str(error)) from None
        return UploadView(id=added.id, sessions=len(added.sessions), has_stations=added.stations is not None)


def _add_tasks(api: APIRouter, state: State) -> None:
    """Long tasks and their progress."""

    @api.post("/records/{upload}/recover", tags=["records"], status_code=202)
    def recover(upload: Id, body: RecoverRequest) -> JobView:
        """Estimate the lost demand of uploaded records; the id of the job is then the name of the run."""
        return _start_job(lambda: state.start_recover(upload, body.model_dump()))

    @api.post("/runs/{name}/recover", tags=["runs"], status_code=202)
    def recover_again(name: RunName, body: Assumptions) -> JobView:
        """Repeat the estimate of a run under other assumptions; the id of the job is then the name of the new run."""
        return _start_job(lambda: state.start_recover_again(name, body.model_dump()))

    @api.post("/plan", tags=["plan"], status_code=202)
    def plan(body: PlanRequest) -> JobView:
        """Plan where to add plugs, from lost demand."""
        if (body.plugs is None) == (body.budget is None):
            raise HTTPException(400, "Give either plugs or a budget.")
        if body.budget is not None and body.plug_cost is None:
            raise HTTPException(400, "A budget needs plug_cost.")
        return _start_job(lambda: state.start_plan(body.run, body.model_dump(exclude={"run"})))

    @api.post("/forecast", tags=["forecast"], status_code=202)
    def forecast(body: ForecastRequest) -> JobView:
        """Forecast the hours after the end of the records."""
        return _start_job(lambda: state.start_forecast(body.run, body.hours))

    @api.get("/jobs", tags=["jobs"])
    def jobs() -> list[JobView]:
        """All jobs."""
        return [JobView(**job.public()) for job in state.jobs.all()]

    @api.get("/jobs/{job}", tags=["jobs"])
    def job(job: Id) -> JobView:
        """The progress of a job."""
        return JobView(**_or_404(lambda: state.jobs.named(job)).public())

    @api.delete("/jobs/{job}", tags=["jobs"], status_code=202)
    def cancel(job: Id) -> JobView:
        """Cancel a job."""
        return JobView(**_or_404(lambda: state.jobs.cancel(job)).public())


def _start_job(start: Callable[[], Any]) -> JobView:
    return JobView(**_or_404(lambda: _or_400(start)).public())


def _or_400(call: Callable[[], T]) -> T:
    """The result of a call; invalid input becomes a response with status 400."""
    try:
        return call()
    except InputError as error:
        raise HTTPException(400, str(error)) from None


def _or_404(call: Callable[[], T]) -> T:
    """The result of a call; a run, table, file or job that does not exist becomes a response with status 404."""
    try:
        return call()
    except KeyError:
        raise HTTPException(404, "There is nothing with that name.") from None


def _series(answer: Answer, region: str) -> Series:
    if region != "all" and region not in answer.regions:
        raise HTTPException(404, f"There is no region {region!r}.")
    chosen = list(answer.regions) if region == "all" else [region]
    rows = [answer.regions.index(name) for name in chosen]
    observed, lost = (grid[rows].sum(axis=0).round(2).tolist() for grid in answer.day_kwh)
    by_hour = [grid[rows].sum(axis=0).round(3).tolist() for grid in answer.hour_kwh]
    return Series(
        days=answer.days.cast(pl.String).to_list(), observed_kwh=observed, lost_kwh=lost, observed_by_hour=by_hour[0],
        lost_by_hour=by_hour[1],
    )  # fmt: skip


def _rows(table: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows for JSON: times as text, and null for NaN and infinity."""
    temporal = [name for name, kind in table.schema.items() if kind.is_temporal()]
    floats = [name for name, kind in table.schema.items() if kind.is_float()]
    plain = table.with_columns(pl.col(temporal).cast(pl.String))
    bounded = [pl.when(pl.col(name).is_finite()).then(pl.col(name).round(4)).alias(name) for name in floats]
    return plain.with_columns(bounded).to_dicts()
