"""Security middleware: host, origin and body-size checks, response headers.

- The Host header must name this server. In a DNS rebinding attack it names the attacker's domain.
- Pages of other sites may not send requests: their Origin differs. Our plain forms send
  `Origin: null`, because our pages send no referrer; then Sec-Fetch-Site tells whose form it is.
- A body that is too large is refused before all of it is read, and so is one that arrives too
  slowly. Multipart bodies are not read at all, because none of our forms sends files.
- Responses may load nothing from other sites, run no inline scripts, and not be framed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import NamedTuple
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dowise_web.errors import INTERNAL_ERROR, problem_response
from dowise_web.settings import Settings

_LOG = logging.getLogger("dowise_web")
_CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _CONTENT_SECURITY_POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
METHODS_WITHOUT_ORIGIN = ("GET", "HEAD")
MAX_CONCURRENT_REQUESTS = 1000
BODY_TIMEOUT = 30.0  # seconds for a body, and more for a large one
MIN_BODY_RATE = 10_000.0  # bytes per second
UPLOAD_PATHS = ("/import", "/api/experiments")  # ends of the paths that receive records
_CROSS_SITE = "pages of other sites may not send requests to this server"


class Refusal(NamedTuple):
    """Status, detail and code of a refused request."""

    status: int
    detail: str
    code: str


class SecurityMiddleware:
    """ASGI middleware around the whole app."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings
        self._headers, self._running = dict(_HEADERS), 0
        if settings.is_secure:
            self._headers["Strict-Transport-Security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request and pass it on, or refuse it; add headers to the response, and log it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        started, status = time.monotonic(), 0

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._add_headers(scope, message)
            await send(message)

        path = quote(scope["path"])  # a line break in it would start another line of the log
        self._running += 1
        try:
            refusal = self._refusal(scope, Headers(scope=scope))
            if refusal is None:
                await self._app(scope, self._limit_body(scope, receive), send_with_headers)
            else:
                await problem_response(*refusal)(scope, receive, send_with_headers)
        except Exception as error:
            if not status:  # otherwise it was answered and logged
                _LOG.error("%s %s failed", scope["method"], path, exc_info=error)
                response = problem_response(500, INTERNAL_ERROR, "internal-error")
                await response(scope, receive, send_with_headers)
        finally:  # without the query, which may contain personal data
            self._running -= 1
            milliseconds = 1000 * (time.monotonic() - started)
            _LOG.info("%s %s %d %.0f ms", scope["method"], path, status, milliseconds)

    def _refusal(self, scope: Scope, headers: Headers) -> Refusal | None:
        settings = self._settings
        if self._running > MAX_CONCURRENT_REQUESTS:
            return Refusal(503, "too many requests: try again in a moment", "server-busy")
        if headers.get("host", "").lower() not in settings.hosts:
            return Refusal(421, f"this server's address is {settings.address}", "wrong-host")
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and origin.lower() not in settings.origins:
            is_our_form = origin == "null" and site == "same-origin"
            if not is_our_form:
                return Refusal(403, _CROSS_SITE, "cross-site-request")
        if scope["method"] not in METHODS_WITHOUT_ORIGIN:
            if site not in (None, "same-origin", "none"):
                return Refusal(403, _CROSS_SITE, "cross-site-request")
            if origin is None and site is None and "cookie" in headers:
                return Refusal(
                    403, "only pages of this server may use its session", "cross-site-request"
                )
        if headers.get("content-type", "").lower().startswith("multipart/"):
            return Refusal(
                415, "files are not accepted: send JSON or a plain form", "unsupported-media-type"
            )
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            return Refusal(400, "Content-Length must be a number", "bad-request")
        if len(length) > 15 or int(length) > self._max_body(scope):
            return Refusal(413, self._too_large(scope), "too-large")
        return None

    def _max_body(self, scope: Scope) -> int:
        settings = self._settings
        is_upload = scope["path"].endswith(UPLOAD_PATHS)
        return settings.upload_limit if is_upload else settings.body_limit

    def _too_large(self, scope: Scope) -> str:
        return f"the request is too large: at most {self._max_body(scope):,} bytes are accepted"

    def _limit_body(self, scope: Scope, receive: Receive) -> Receive:
        """Wrap `receive` to limit the size and the slowness of a body."""
        limit, received, is_complete = self._max_body(scope), 0, False
        deadline = time.monotonic() + BODY_TIMEOUT

        async def limited() -> Message:
            nonlocal received, is_complete
            if is_complete:  # the next message is the end of the connection, whenever that is
                return await receive()
            timeout = deadline + received / MIN_BODY_RATE - time.monotonic()
            try:
                message = await asyncio.wait_for(receive(), max(timeout, 0))
            except TimeoutError:
                raise HTTPException(408, "the request arrived too slowly") from None
            received += len(message.get("body", b""))
            is_complete = not message.get("more_body", False)
            if received > limit:
                raise HTTPException(413, self._too_large(scope))  # the app answers it
            return message

        return limited

    def _add_headers(self, scope: Scope, message: Message) -> None:
        headers = MutableHeaders(scope=message)
        for name, value in self._headers.items():
            headers[name] = value
        headers.setdefault("Cache-Control", cache_control(scope, message["status"]))


def cache_control(scope: Scope, status: int) -> str:
    """Return the Cache-Control header: only static files with a versioned URL are kept.

    An error response, such as that of a busy server, would otherwise be kept for a year.
    """
    if not scope["path"].startswith("/static/") or status not in (200, 206, 304):
        return "no-store"
    is_versioned = scope["query_string"].startswith(b"v=")
    return "max-age=31536000, immutable" if is_versioned else "no-cache"
