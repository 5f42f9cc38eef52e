"""The line to a server: requests, repeated where that does no harm, and what goes wrong in words.

A token is sent in a header and shown nowhere. Redirects are not followed, and what goes over plain
HTTP goes to no proxy: either might lead to another machine.
"""

from __future__ import annotations

import json
import os
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from dowise.errors import ConflictError, DowiseError, NotFoundError, UnavailableError, import_extra

if TYPE_CHECKING:
    import httpx2


_MIDDLE = "/experiments/"
_PAGES = ("now", "known", "graph", "history")


@dataclass(frozen=True)
class Address:
    """A server, and the experiment that its URL names, if it does."""

    base: str
    """Without a slash at its end."""
    name: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What the experiment may be called: a URL from a browser has a page behind the name."""
        if self.name is None:
            return ()
        start, _, page = self.name.rpartition("/")
        return (self.name, start) if start and page in _PAGES else (self.name,)


def is_url(store: object) -> bool:
    """Whether a store is a server.

    >>> is_url("http://127.0.0.1:8000"), is_url("ward.db")
    (True, False)
    """
    return isinstance(store, str) and store.lower().startswith(("http://", "https://"))


def address_of(url: object) -> Address:
    """Read a URL, of the server or of an experiment in it.

    >>> address_of("http://127.0.0.1:8000/experiments/ward%207")
    Address(base='http://127.0.0.1:8000', name='ward 7')
    """
    if not is_url(url):
        raise DowiseError(
            f"{url!r:.80} is no URL of a server: write http://127.0.0.1:8000 or https://…"
        )
    try:
        parts = urlsplit(str(url).strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not str(url).strip().isprintable():
        raise DowiseError(
            "this URL can't be read: write http://127.0.0.1:8000, with the port if there is one"
        )
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise DowiseError(  # and nothing of it is shown: it may be a secret
            f"this URL of {host} has more in it than an address: leave out what is before @ and "
            "behind ? or #; a token goes into the variable DOWISE_TOKEN"
        )
    before, middle, name = parts.path.partition(_MIDDLE)
    before = (before if middle else parts.path.removesuffix(_MIDDLE[:-1])).rstrip("/")
    shown = f"[{host}]" if ":" in host else host
    where = shown if port is None else f"{shown}:{port}"
    base = f"{parts.scheme.lower()}://{where}{before.removesuffix('/api')}"
    return Address(base, unquote(name).strip("/") or None)


def check_secrecy(base: str) -> None:
    """Raise where others could read what is sent there."""
    parts = urlsplit(base)
    if parts.scheme == "https" or _is_loopback(parts.hostname or ""):
        return
    raise DowiseError(
        f"the token would cross the network to {parts.hostname} unencrypted: use https://; or, if "
        "nobody else is on that network, say insecure=True (DOWISE_INSECURE=1)"
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


LATER = (429, 503)
"""Refusals for now alone."""

_KINDS: Mapping[int, type[DowiseError]] = {
    404: NotFoundError, 409: ConflictError, 429: UnavailableError, 500: UnavailableError,
    502: UnavailableError, 503: UnavailableError, 504: UnavailableError,
}  # fmt: skip
_LONGEST = 2000  # characters of an error
_DIGITS = 9  # of a time to wait


def checked_document(base: str, content: bytes) -> dict[str, Any]:
    """The document of an answer that went well."""
    page = _page(content)
    if page is None:
        raise DowiseError(
            f"{base} answered with something that is no JSON, or cut short: is it a dowise server?"
        )
    return page


def unreadable(base: str) -> DowiseError:
    """What to say of a document that is none of ours."""
    return DowiseError(
        f"{base} answered with a document that this dowise can't read: one of both is perhaps "
        "newer (dowise --version)"
    )


def error_of(
    base: str, status: int, headers: Mapping[str, str], content: bytes, has_token: bool
) -> DowiseError:
    """What an answer that did not go well means."""
    page = _page(content)
    kind = _KINDS.get(status, DowiseError)
    if 300 <= status < 400:
        return DowiseError(
            f"{base} sends requests on to another address ({status}), which is not followed: give "
            "that address itself"
        )
    if status == 401:
        return DowiseError(
            f"the server wants a token: {base} does not know this one, or it has ended or was "
            "revoked; give another (token=, DOWISE_TOKEN)"
            if has_token
            else f"the server wants a token: give it one (token=), or set DOWISE_TOKEN for {base}"
        )
    detail = page.get("detail") if page is not None else None
    if not isinstance(detail, str) or not detail.strip():
        return kind(f"{base} answered {status} without saying why: is it a dowise server?")
    said = " ".join(detail[:_LONGEST].split())
    wait = seconds_to_wait(headers)
    if status in LATER and wait is not None:
        said = f"{said} (in {wait} s)"
    return kind(said)


def seconds_to_wait(headers: Mapping[str, str]) -> int | None:
    """For how long a server wants to be left alone, where it says so in seconds."""
    wait = headers.get("retry-after", "")
    is_number = wait.isascii() and wait.isdigit() and len(wait) <= _DIGITS
    return int(wait) if is_number else None


def _page(content: bytes) -> dict[str, Any] | None:
    try:
        page = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return page if isinstance(page, dict) else None


CONNECT, READ = 5.0, 120.0  # seconds
LONG = 900.0  # for what goes through a whole journal
_PAUSES = (0.3, 1.5)  # seconds before a request is repeated
_LONGEST_PAUSE = 5.0


class Transport:
    """To one server; a connection is opened when it is needed."""

    def __init__(self, base: str, token: str | None = None, insecure: bool = False) -> None:
        import_extra("httpx2", "client", "an experiment on a server")
        given = token if token is not None else os.environ.get("DOWISE_TOKEN")
        self.base, self._token = base, _checked_token(given)
        self._http: httpx2.Client | None = None
        if self._token is not None and not insecure:
            check_secrecy(base)

    def get(self, path: str, patience: float = READ, **query: Any) -> dict[str, Any]:
        """Look at something."""
        return self._send("GET", path, query={k: v for k, v in query.items() if v is not None},
                          patience=patience)  # fmt: skip

    def post(
        self,
        path: str,
        body: Mapping[str, Any],
        key: str | None = None,
        is_repeatable: bool = False,
        patience: float = READ,
    ) -> dict[str, Any]:
        """Say something; with a `key` the server knows it again."""
        return self._send("POST", path, body=body, key=key, patience=patience,
                          is_repeatable=is_repeatable or key is not None)  # fmt: skip

    def close(self) -> None:
        """Let go of connections; whatever is asked afterwards opens them anew."""
        if self._http is not None:
            self._http.close()
            self._http = None

    def _hold(self, http: httpx2.Client) -> httpx2.Client:
        """Keep a client, which is closed at the latest when nobody has this line any more."""
        self._http = http
        weakref.finalize(self, http.close)
        return http

    def _send(self, method: str, path: str, *, patience: float, is_repeatable: bool = True,
              query: Mapping[str, Any] | None = None, body: Mapping[str, Any] | None = None,
              key: str | None = None) -> dict[str, Any]:  # fmt: skip
        headers = {} if key is None else {"Idempotency-Key": key}
        content = None if body is None else _json(body)
        if content is not None:
            headers["Content-Type"] = "application/json"
        for pause in (*_PAUSES, None):
            try:
                answer = self._once(method, path, query, content, headers, patience)
            except UnavailableError:
                if pause is None or not is_repeatable:
                    raise
                time.sleep(pause)
                continue
            if answer.is_success:
                return checked_document(self.base, answer.content)
            if answer.status_code not in LATER or pause is None or not is_repeatable:
                break
            wait = seconds_to_wait(answer.headers)
            time.sleep(pause if wait is None else min(wait, _LONGEST_PAUSE))
        raise error_of(self.base, answer.status_code, answer.headers, answer.content,
                       self._token is not None)  # fmt: skip

    def _once(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        content: bytes | None,
        headers: Mapping[str, str],
        patience: float,
    ) -> httpx2.Response:
        """One try; a connection that breaks is an `UnavailableError`."""
        import httpx2

        try:
            return self._client().request(
                method, f"{self.base}{path}", params=query, content=content, headers=headers,
                timeout=httpx2.Timeout(patience, connect=CONNECT),
            )  # fmt: skip
        except httpx2.ConnectTimeout:
            raise UnavailableError(f"{self.base} can't be reached within {CONNECT:g} s") from None
        except httpx2.TimeoutException:
            raise DowiseError(
                f"{self.base} has not answered for {patience:g} s: what was asked for may happen "
                "all the same, so look before you ask again"
            ) from None
        except httpx2.ConnectError as error:
            raise UnavailableError(
                f"{self.base} can't be reached ({_reason(error)}): is the server running, and is "
                "this its address?"
            ) from None
        except httpx2.TransportError as error:
            raise UnavailableError(
                f"the connection to {self.base} broke ({_reason(error)}): what was asked for may "
                "have happened all the same, so look before you ask again"
            ) from None
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            raise DowiseError(f"{self.base} can't be asked ({_reason(error)})") from None

    def _client(self) -> httpx2.Client:
        if self._http is None:
            import httpx2

            import dowise

            headers = {"Accept": "application/json", "User-Agent": f"dowise/{dowise.__version__}"}
            if self._token is not None:
                headers["Authorization"] = f"Bearer {self._token}"
            is_encrypted = self.base.startswith("https:")
            return self._hold(httpx2.Client(headers=headers, trust_env=is_encrypted))
        return self._http

    def __repr__(self) -> str:
        return f"<Line to {self.base}>"


def segment(text: str) -> str:
    """A name as a part of a path."""
    return quote(text, safe="")


def _checked_token(token: object) -> str | None:
    if token is None or token == "":  # a variable of a script that is not set
        return None
    if not isinstance(token, str) or not token.isascii() or not token.isprintable() or " " in token:
        raise DowiseError("the token has signs in it that no token has: copy it once more")
    return token


def _json(body: Mapping[str, Any]) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError):  # UnicodeEncodeError is one too
        raise DowiseError(
            "this can't be sent as JSON: use texts, numbers, lists, mappings"
        ) from None


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
