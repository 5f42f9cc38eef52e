"""What stands before the app: who may knock under which name, how much may come in, what goes out.

- The Host must be one of ours: a page elsewhere can point a name of its own at this machine (DNS
  rebinding), and then its Host is that name.
- A page elsewhere may not send us requests: its Origin is another. Ours send `Origin: null` from
  plain forms, because no page of ours tells where it was (no-referrer); there the browser's
  Sec-Fetch-Site says whose form it is.
- A body that is too large is refused before it is read whole, one that is too slow when it is. One
  of several parts, which may be files, is not read at all: none of our forms sends them.
- Answers may load nothing from elsewhere, run nothing inline, and be shown in no frame.
"""

from __future__ import annotations

import asyncio
import logging
import time
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dowise_web.errors import problem_response
from dowise_web.settings import Settings

_LOG = logging.getLogger("dowise_web")
_POLICY = "; ".join(
    (
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:",
        "connect-src 'self'", "font-src 'self'", "form-action 'self'", "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)  # fmt: skip
_ALWAYS = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_SAFE = ("GET", "HEAD")
_MOST = 1000  # requests at once
_PATIENCE = 30.0  # seconds for a body, and more where much of it came
_SLOWEST = 10_000.0  # bytes a second
_UPLOADS = ("/import", "/api/experiments")  # what brings records in


class SecurityMiddleware:
    """ASGI middleware around everything."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings
        self._always, self._under_way = dict(_ALWAYS), 0
        if settings.is_secure:
            self._always["Strict-Transport-Security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        began, seen = time.monotonic(), {"status": 0}

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                seen["status"] = message["status"]
                self._dress(scope, message)
            await send(message)

        path = quote(scope["path"])  # of which a line break would begin another line of the log
        self._under_way += 1
        try:
            await self._through(scope, receive, guarded)
        except Exception as error:
            if not seen["status"]:  # else it was answered and written to the log
                _LOG.error("%s %s failed", scope["method"], path, exc_info=error)
                said = "something went wrong in the server; its log says what"
                await problem_response(500, said)(scope, receive, guarded)
        finally:  # the path alone: what is asked for may hold what nobody else should read
            self._under_way -= 1
            took = 1000 * (time.monotonic() - began)
            _LOG.info("%s %s %d %.0f ms", scope["method"], path, seen["status"], took)

    async def _through(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(scope, Headers(scope=scope))
        if refusal is not None:
            await problem_response(*refusal)(scope, receive, send)
            return
        await self._app(scope, self._measured(scope, receive), send)

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        """Why a request is not let in: a status and words."""
        settings = self._settings
        if self._under_way > _MOST:
            return 503, "too many requests at once: try again in a moment"
        if headers.get("host", "").lower() not in settings.hosts:
            return 421, f"this server is {settings.address}: open it by that name"
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in settings.origins:
            is_own_form = origin == "null" and headers.get("sec-fetch-site") == "same-origin"
            if not is_own_form:
                return 403, "pages of other sites may not send requests here"
        site = headers.get("sec-fetch-site")
        if scope["method"] not in _SAFE:
            if site not in (None, "same-origin", "none"):
                return 403, "pages of other sites may not send requests here"
            if origin is None and site is None and "cookie" in headers:
                return 403, "only pages of this server may use its session"
        if headers.get("content-type", "").lower().startswith("multipart/"):
            return 415, "files are not taken: send JSON, or a form as browsers send it without them"
        length = headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            return 400, "Content-Length must be a number"
        if len(length) > 15 or int(length) > self._limit(scope):
            return 413, self._too_large(scope)
        return None

    def _limit(self, scope: Scope) -> int:
        settings = self._settings
        is_upload = scope["path"].endswith(_UPLOADS)
        return settings.upload_limit if is_upload else settings.body_limit

    def _too_large(self, scope: Scope) -> str:
        return f"at most {self._limit(scope):,} bytes may be sent here at once"

    def _measured(self, scope: Scope, receive: Receive) -> Receive:
        """The body, up to the limit, and while it comes fast enough."""
        limit, came, is_whole = self._limit(scope), 0, False
        deadline = time.monotonic() + _PATIENCE

        async def measured() -> Message:
            nonlocal came, is_whole
            if is_whole:  # what comes now is the end of the connection, whenever that is
                return await receive()
            left = deadline + came / _SLOWEST - time.monotonic()
            try:
                message = await asyncio.wait_for(receive(), max(left, 0))
            except TimeoutError:
                raise HTTPException(408, "the request came too slowly") from None
            came += len(message.get("body", b""))
            is_whole = not message.get("more_body", False)
            if came > limit:
                raise HTTPException(413, self._too_large(scope))  # which the app answers
            return message

        return measured

    def _dress(self, scope: Scope, message: Message) -> None:
        headers = MutableHeaders(scope=message)
        for name, value in self._always.items():
            headers[name] = value
        headers.setdefault("Cache-Control", _kept(scope, message["status"]))


def _kept(scope: Scope, status: int) -> str:
    """For how long browsers may keep an answer: a static file whose address names its content.

    An error in its place, as of a server that is busy, would stay for a year.
    """
    if not scope["path"].startswith("/static/") or status not in (200, 206, 304):
        return "no-store"
    is_named = scope["query_string"].startswith(b"v=")
    return "max-age=31536000, immutable" if is_named else "no-cache"
