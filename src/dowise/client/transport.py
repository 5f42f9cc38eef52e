"""HTTP transport to a server: requests, repeated if that is safe, and readable errors.

The token is sent in a header and never shown. Redirects are not followed, and plain HTTP uses no
proxy: either might lead to another machine.
"""

from __future__ import annotations

import json
import os
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from dowise._core.hosts import is_loopback
from dowise.errors import ConflictError, DowiseError, NotFoundError, UnavailableError, import_extra

if TYPE_CHECKING:
    import httpx2


CONNECT_TIMEOUT, READ_TIMEOUT = 5.0, 120.0  # seconds
LONG_TIMEOUT = 900.0  # for requests that go through a whole journal
RETRY_STATUSES = (429, 503)  # refusals that are temporary
MAX_MESSAGE = 2000  # characters of an error

_MIDDLE = "/experiments/"
_PAGES = ("now", "known", "graph", "history")
_PAUSES = (0.3, 1.5)  # seconds before a request is repeated
_LONGEST_PAUSE = 5.0
_ERRORS: Mapping[int, type[DowiseError]] = {
    404: NotFoundError,
    409: ConflictError,
    429: UnavailableError,
    500: UnavailableError,
    502: UnavailableError,
    503: UnavailableError,
    504: UnavailableError,
}


@dataclass(frozen=True)
class Address:
    """A server, and the experiment that its URL names, if any."""

    base: str
    """URL of the server, without a slash at the end."""
    name: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Possible names of the experiment: in a browser's URL a page follows the name."""
        if self.name is None:
            return ()
        start, _, page = self.name.rpartition("/")
        return (self.name, start) if start and page in _PAGES else (self.name,)


def is_url(store: object) -> bool:
    """Return True if a store is a server.

    >>> is_url("http://127.0.0.1:8000"), is_url("ward.db")
    (True, False)
    """
    return isinstance(store, str) and store.lower().startswith(("http://", "https://"))


def parse_address(url: object) -> Address:
    """Parse the URL of a server, or of an experiment on it.

    >>> parse_address("http://127.0.0.1:8000/experiments/ward%207")
    Address(base='http://127.0.0.1:8000', name='ward 7')
    """
    if not is_url(url):
        raise DowiseError(
            f"not a server URL: {url!r:.80} (expected http://127.0.0.1:8000 or https://…)",
            code="invalid-url",
        )
    try:
        parts = urlsplit(str(url).strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not str(url).strip().isprintable():
        raise DowiseError(
            "the URL can't be parsed (expected http://127.0.0.1:8000, with the port if any)",
            code="invalid-url",
        )
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise DowiseError(  # and nothing of it is shown: it may be a secret
            f"the URL of {host} contains more than an address: remove what is before @ and after "
            "? or #; a token goes into the environment variable DOWISE_TOKEN",
            code="invalid-url",
        )
    before, middle, name = parts.path.partition(_MIDDLE)
    before = (before if middle else parts.path.removesuffix(_MIDDLE[:-1])).rstrip("/")
    shown = f"[{host}]" if ":" in host else host
    where = shown if port is None else f"{shown}:{port}"
    base = f"{parts.scheme.lower()}://{where}{before.removesuffix('/api')}"
    return Address(base, unquote(name).strip("/") or None)


def check_encrypted(base: str) -> None:
    """Raise `DowiseError` if others on the network could read what is sent."""
    parts = urlsplit(base)
    if parts.scheme == "https" or is_loopback(parts.hostname or ""):
        return
    raise DowiseError(
        f"the token would be sent to {parts.hostname} unencrypted: use https://, or insecure=True "
        "(DOWISE_INSECURE=1) on a network that you trust",
        code="insecure-connection",
    )


@contextmanager
def unreadable_document(base: str) -> Iterator[None]:
    """Translate errors in a server's document into a `DowiseError`."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, DowiseError) as error:
        if isinstance(error, DowiseError) and error.code != "malformed-data":
            raise
        raise DowiseError(
            f"the response of {base} can't be read: the server or this dowise may be newer "
            "(dowise --version)",
            code="unreadable-response",
        ) from error


def error_from_response(
    base: str, status: int, headers: Mapping[str, str], content: bytes, has_token: bool
) -> DowiseError:
    """Return the error that a response reports."""
    if 300 <= status < 400:
        return DowiseError(
            f"{base} redirects to another address ({status}), which is not followed: use that "
            "address",
            code="redirected",
        )
    if status == 401:
        remedy = (
            f"{base} does not accept this token, which may have expired or been revoked; use "
            "another one (token=, DOWISE_TOKEN)"
            if has_token
            else f"pass a token for {base} (token=, DOWISE_TOKEN)"
        )
        return DowiseError(f"authentication required: {remedy}", code="authentication-required")
    data, kind = _parse_object(content) or {}, _ERRORS.get(status, DowiseError)
    detail, code = data.get("detail"), data.get("code")
    if not isinstance(detail, str) or not detail.strip():
        return kind(f"{base} answered {status} without a reason: is it a dowise server?")
    message = " ".join(detail[:MAX_MESSAGE].split())
    wait = retry_after(headers)
    if status in RETRY_STATUSES and wait is not None:
        message = f"{message} (in {wait} s)"
    return kind(message, code=code if isinstance(code, str) else None)


def retry_after(headers: Mapping[str, str]) -> int | None:
    """Return the seconds that a server asks to wait; None if it does not say."""
    wait = headers.get("retry-after", "")
    return int(wait) if wait.isascii() and wait.isdigit() and len(wait) < 10 else None


def _parse_object(content: bytes) -> dict[str, Any] | None:
    try:
        data = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


class Transport:
    """Connection to one server, opened when it is needed."""

    def __init__(self, base: str, token: str | None = None, insecure: bool = False) -> None:
        import_extra("httpx2", "client", "an experiment on a server")
        token = token if token is not None else os.environ.get("DOWISE_TOKEN")
        self.base, self._token = base, _validate_token(token)
        self._http: httpx2.Client | None = None
        if self._token is not None and not insecure:
            check_encrypted(base)

    def get(self, path: str, timeout: float = READ_TIMEOUT, **query: Any) -> dict[str, Any]:
        """Send a GET request; a query parameter that is None is left out."""
        query = {name: value for name, value in query.items() if value is not None}
        return self._send("GET", path, query=query, timeout=timeout)

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        key: str | None = None,
        is_repeatable: bool = False,
        timeout: float = READ_TIMEOUT,
    ) -> dict[str, Any]:
        """Send a POST request; the server recognizes a repeated one by its `key`."""
        is_repeatable = is_repeatable or key is not None
        return self._send(
            "POST", path, body=body, key=key, timeout=timeout, is_repeatable=is_repeatable
        )

    def close(self) -> None:
        """Close connections; later requests open them again."""
        if self._http is not None:
            self._http.close()
            self._http = None

    def _send(
        self,
        method: str,
        path: str,
        *,
        timeout: float,
        is_repeatable: bool = True,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
        key: str | None = None,
    ) -> dict[str, Any]:
        headers = {} if key is None else {"Idempotency-Key": key}
        content = None if body is None else _encode(body)
        if content is not None:
            headers["Content-Type"] = "application/json"
        for pause in (*_PAUSES, None):
            try:
                response = self._send_once(method, path, query, content, headers, timeout)
            except UnavailableError:
                if pause is None or not is_repeatable:
                    raise
                time.sleep(pause)
                continue
            if response.is_success:
                data = _parse_object(response.content)
                if data is None:
                    raise DowiseError(
                        f"the response of {self.base} is not JSON, or cut short: is it a dowise "
                        "server?",
                        code="unreadable-response",
                    )
                return data
            if response.status_code not in RETRY_STATUSES or pause is None or not is_repeatable:
                break
            wait = retry_after(response.headers)
            time.sleep(pause if wait is None else min(wait, _LONGEST_PAUSE))
        raise error_from_response(
            self.base,
            response.status_code,
            response.headers,
            response.content,
            has_token=self._token is not None,
        )

    def _send_once(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        content: bytes | None,
        headers: Mapping[str, str],
        timeout: float,
    ) -> httpx2.Response:
        import httpx2

        try:
            return self._client().request(
                method,
                f"{self.base}{path}",
                params=query,
                content=content,
                headers=headers,
                timeout=httpx2.Timeout(timeout, connect=CONNECT_TIMEOUT),
            )
        except httpx2.ConnectTimeout:
            raise UnavailableError(
                f"no connection to {self.base} within {CONNECT_TIMEOUT:g} s"
            ) from None
        except httpx2.TimeoutException:
            raise DowiseError(
                f"no response from {self.base} within {timeout:g} s; the request may still be "
                "carried out, so check before you repeat it",
                code="timeout",
            ) from None
        except httpx2.ConnectError as error:
            raise UnavailableError(
                f"can't connect to {self.base} ({_reason(error)}): check that the server is "
                "running and that this is its address"
            ) from None
        except httpx2.TransportError as error:
            raise UnavailableError(
                f"the connection to {self.base} broke ({_reason(error)}); the request may have "
                "been carried out, so check before you repeat it"
            ) from None
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            raise DowiseError(
                f"can't send a request to {self.base} ({_reason(error)})", code="invalid-url"
            ) from None

    def _client(self) -> httpx2.Client:
        if self._http is None:
            import httpx2

            import dowise

            headers = {"Accept": "application/json", "User-Agent": f"dowise/{dowise.__version__}"}
            if self._token is not None:
                headers["Authorization"] = f"Bearer {self._token}"
            is_encrypted = self.base.startswith("https:")
            self._http = httpx2.Client(headers=headers, trust_env=is_encrypted)
            weakref.finalize(self, self._http.close)
        return self._http

    def __repr__(self) -> str:
        return f"<Transport to {self.base}>"


def quote_segment(text: str) -> str:
    """Quote a name for use in a path."""
    return quote(text, safe="")


def _validate_token(token: object) -> str | None:
    if token is None or token == "":  # a variable of a script that is not set
        return None
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or " " in token:
        raise DowiseError(
            "the token has characters that no token has: copy it again", code="invalid-token"
        )
    return token


def _encode(body: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError):  # UnicodeEncodeError is one too
        raise DowiseError(
            "the arguments can't be sent as JSON: use texts, numbers, lists and mappings",
            code="invalid-type",
        ) from None


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
