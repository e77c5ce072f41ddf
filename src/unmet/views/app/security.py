"""Access control: the token, checks of the host and origin of requests, and security headers."""

from __future__ import annotations

import hashlib
import hmac
import html
import secrets
from collections.abc import Callable, Sequence
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from unmet.views.app.settings import Settings

__all__ = ["LOGIN", "Guard", "content_policy"]

COOKIE = "unmet_visitor"
LOGIN = "/login"
LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
UPLOADS = "/api/records"  # start of the paths that accept files
LOGIN_BYTES = 4096  # largest body of a login
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # with "no-referrer", browsers would hide the origin of the login form
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


def content_policy(script_hashes: Sequence[str] = ()) -> str:
    """The content security policy of pages: resources of this server only, and only known scripts."""
    return "; ".join(
        [
            "default-src 'none'",
            " ".join(["script-src", "'self'", *script_hashes]),
            "style-src 'self' 'unsafe-inline'",  # Dash and Plotly set styles of elements
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "connect-src 'self'",
            "manifest-src 'self'",
            "form-action 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        ]
    )


class Guard:
    """Middleware around the whole app; refused requests never reach it.

    Args:
        app: the app.
        settings: token, host and limits.
        policy: returns the content security policy of responses that set none.
    """

    def __init__(self, app: ASGIApp, settings: Settings, policy: Callable[[], str]) -> None:
        self.app, self.settings, self.policy = app, settings, policy
        self._secret = secrets.token_bytes(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, then pass it on with headers added to the response."""
        if scope["type"] == "websocket":  # the app has none
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        request_headers = Headers(scope=scope)

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                if _is_trustworthy(scope, request_headers):
                    headers["cross-origin-opener-policy"] = "same-origin"
                headers.setdefault("content-security-policy", self.policy())
                if scope["path"].startswith("/api"):
                    headers["cache-control"] = "no-store"
            await send(message)

        refused = await self._refusal_to(scope, request_headers, receive)
        if refused is not None:
            await refused(scope, receive, send_on)
            return
        limit = None if scope["path"].startswith(UPLOADS) else self.settings.limits.body_bytes
        await self.app(scope, receive if limit is None else _limited(receive, limit), send_on)

    async def _refusal_to(self, scope: Scope, headers: Headers, receive: Receive) -> Response | None:
        """The response to a refused request; None if it may pass."""
        host = headers.get("host", "")
        # Another site can make its own name resolve to this machine (DNS rebinding). Its requests then carry that name.
        if self.settings.is_local and _host_name(host) not in LOCAL_NAMES:
            return _refusal(400, "This server does not answer under that host name: use 127.0.0.1 or localhost.")
        origin = headers.get("origin")
        if scope["method"] not in SAFE_METHODS and origin is not None and urlsplit(origin).netloc != host:
            return _refusal(403, "Requests from other sites are refused.")
        if headers.get("content-length", "0").isdecimal():
            uploads = scope["path"].startswith(UPLOADS)
            limit = self.settings.limits.upload_bytes if uploads else self.settings.limits.body_bytes
            if int(headers.get("content-length", "0")) > limit:
                return _refusal(413, f"The request is larger than {limit / 1e6:,.0f} MB, the limit for requests.")
        if self.settings.token is None or self._is_known(headers, Request(scope).cookies):
            return None
        if scope["path"] == LOGIN:
            return await self._login(Request(scope, _limited(receive, LOGIN_BYTES)))
        if scope["path"].startswith(("/api", "/openapi", "/_dash")):
            return _refusal(401, "A token is needed: send it as `Authorization: Bearer TOKEN`.", bearer=True)
        return RedirectResponse(LOGIN, 303)

    def _is_known(self, headers: Headers, cookies: dict[str, str]) -> bool:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._is_token(given.strip()):
            return True
        return hmac.compare_digest(cookies.get(COOKIE, "").encode(), self._cookie().encode())

    def _is_token(self, given: str) -> bool:
        """Whether a text is the token, compared in constant time so that timing gives nothing away."""
        digests = [hashlib.sha256(text.encode()).digest() for text in (given, self.settings.token or "")]
        return hmac.compare_digest(*digests)

    def _cookie(self) -> str:
        """Proof that a visitor gave the token; it is valid until the server stops."""
        return hmac.new(self._secret, (self.settings.token or "").encode(), hashlib.sha256).hexdigest()

    async def _login(self, request: Request) -> Response:
        if request.method != "POST":
            return HTMLResponse(_login_page())
        fields = parse_qs((await request.body()).decode("utf-8", "replace"))
        if not self._is_token(fields.get("token", [""])[0].strip()):
            return HTMLResponse(_login_page("That token is wrong."), 401)
        response = RedirectResponse("/", 303)
        response.set_cookie(COOKIE, self._cookie(), httponly=True, samesite="strict", path="/")
        return response


def _is_trustworthy(scope: Scope, headers: Headers) -> bool:
    """Whether browsers trust the address (HTTPS, or this machine); elsewhere they warn and ignore an opener policy."""
    is_encrypted = "https" in (scope["scheme"], headers.get("x-forwarded-proto"))
    return is_encrypted or _host_name(headers.get("host", "")) in LOCAL_NAMES


def _limited(receive: Receive, limit: int) -> Receive:
    """Receive the body of a request up to a limit [bytes]; a longer one looks like a lost connection."""
    size = 0

    async def receive_on() -> Message:
        nonlocal size
        message = await receive()
        if message["type"] == "http.request":
            size += len(message.get("body", b""))
            if size > limit:
                return {"type": "http.disconnect"}
        return message

    return receive_on


def _host_name(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _refusal(status: int, text: str, *, bearer: bool = False) -> Response:
    headers = {"www-authenticate": "Bearer"} if bearer else None
    return JSONResponse({"detail": text}, status, headers)


def _login_page(problem: str = "") -> str:
    alert = f'<p role="alert">{html.escape(problem)}</p>' if problem else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>unmet</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        "<style>body{font:16px/1.5 Inter,Arial,sans-serif;max-width:26em;margin:15vh auto;padding:0 1em;color:#1f2933}"
        "input,button{font:inherit;padding:.4em .6em}</style></head><body><main><h1>unmet</h1>"
        f'{alert}<form method="post" action="{LOGIN}"><p><label for="token">Token</label><br>'
        '<input name="username" autocomplete="username" value="visitor" hidden>'
        '<input id="token" name="token" type="password" autocomplete="current-password" autofocus required> '
        "<button>Open</button></p></form></main></body></html>"
    )
