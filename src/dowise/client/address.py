"""Where a server is, and whether a token may be sent there."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

from dowise.errors import DowiseError

__all__ = ["Address", "address_of", "check_secrecy", "is_url"]

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
