"""The server: API, documentation and pages behind one guard."""

from __future__ import annotations

import gc
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from unmet import __version__
from unmet.errors import LONGEST_MESSAGE, InputError, printable, shortened
from unmet.extras import needs_extra
from unmet.views.app.settings import Limits, Settings
from unmet.views.terminal import say

if TYPE_CHECKING:
    from unmet.views.app.live_city import LiveCity

__all__ = ["Limits", "Settings", "listening_at", "make_server", "run_server"]

ABOUT = "Charging demand that records do not show: the built-in city, records, plans and forecasts."
MAX_PROBLEMS = 20  # mistakes in a request that are reported at most
DOCS_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>unmet: API</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="/swagger/swagger-ui.css"></head><body><div id="swagger-ui"></div>
<script src="/swagger/swagger-ui-bundle.js"></script><script src="/docs/start.js"></script></body></html>"""
DOCS_SCRIPT = (
    'SwaggerUIBundle({url: "/docs/openapi.json", dom_id: "#swagger-ui", deepLinking: true, validatorUrl: null});'
)


def make_server(settings: Settings) -> Any:
    """The whole app as an ASGI application.

    Returns:
        A `FastAPI` application behind its guard; its state is in `state.state`.
    """
    try:
        import swagger_ui_bundle
        from fastapi import FastAPI, Request
        from fastapi.exceptions import RequestValidationError
        from fastapi.responses import HTMLResponse, JSONResponse, Response
        from fastapi.staticfiles import StaticFiles

        from unmet.views.app.api import make_api
        from unmet.views.app.pages import make_pages
        from unmet.views.app.security import Guard, content_policy
        from unmet.views.app.state import State
    except ImportError as error:
        raise needs_extra("The app", error) from None
    state = State(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # The city is built while the first page loads.
        threading.Thread(target=_warm_up, args=(state.city,), daemon=True).start()
        yield
        state.close()

    server = FastAPI(
        title="unmet", version=__version__, description=ABOUT, docs_url=None, redoc_url=None, lifespan=lifespan
    )
    server.state.state = state
    server.include_router(make_api(state))
    server.mount("/swagger", StaticFiles(directory=swagger_ui_bundle.swagger_ui_path), name="swagger")

    @server.exception_handler(RequestValidationError)
    async def refuse(_: Request, error: RequestValidationError) -> JSONResponse:
        # The values themselves are left out, because NaN, for example, cannot be sent back as JSON.
        problems = [
            {
                "type": each["type"],
                "loc": [part if isinstance(part, int) else shortened(printable(str(part))) for part in each["loc"]],
                "msg": shortened(printable(each["msg"]), LONGEST_MESSAGE),
            }
            for each in error.errors()[:MAX_PROBLEMS]
        ]
        return JSONResponse({"detail": problems}, 422)

    @server.get("/docs", include_in_schema=False)
    def docs() -> HTMLResponse:
        return HTMLResponse(DOCS_PAGE)

    @server.get("/docs/start.js", include_in_schema=False)
    def docs_script() -> Response:
        return Response(DOCS_SCRIPT, media_type="text/javascript")

    @server.get("/docs/openapi.json", include_in_schema=False)
    def docs_schema() -> dict[str, Any]:
        return server.openapi() | {"openapi": "3.0.3"}  # the packaged Swagger UI reads no later version

    pages = make_pages(server, state)
    policy = content_policy(pages.csp_hashes())
    server.add_middleware(Guard, settings=settings, policy=lambda: policy)
    return server


def _warm_up(city: LiveCity) -> None:
    """Build the city, then exclude all objects that live as long as the server from garbage collection.

    Python collects cycles among old objects only once their number has grown by a quarter. Modules and the city consist
    of so many objects that the figures of dozens of reports, 10 MB each, would pile up before that. Frozen objects do
    not count.
    """
    city.warm_up()
    gc.collect()
    gc.freeze()
    gc.collect()  # resets the count of old objects, which decides when the next collection is due


def run_server(settings: Settings) -> None:
    """Serve until the process is stopped."""
    try:
        import uvicorn
    except ImportError as error:
        raise needs_extra("The app", error) from None
    with listening_at(settings.host, settings.port) as listener:
        server = make_server(settings)
        host, port = listener.getsockname()[:2]
        where = f"http://{'[' + host + ']' if ':' in host else host}:{port}"
        access = "" if settings.is_local else " Visitors need the token."
        say(f"unmet is at {where} (API: {where}/docs). Ctrl-C stops it.{access}")
        options: dict[str, Any] = {"log_level": "warning", "server_header": False, "access_log": False}
        uvicorn.Server(uvicorn.Config(server, host=settings.host, **options)).run(sockets=[listener])


def listening_at(host: str, port: int) -> socket.socket:
    """A socket that listens at an address; port 0 chooses a free port.

    Raises:
        InputError: another program listens there, or this machine has no such address.
    """
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address, family=family)
    except OSError as error:
        # `create_server` repeats the address: "Address already in use (while attempting to bind on address ...)"
        reason = (error.strerror or str(error)).partition(" (while")[0]
        raise InputError(f"Cannot listen at {host}, port {port} ({reason}): give another --port or --host.") from None
