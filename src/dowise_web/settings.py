"""How a store is served: where, under which names, and within which limits."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from dowise.errors import DowiseError

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_EVERYWHERE = ("0.0.0.0", "::")  # every address of the machine, loopback among them
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Settings:
    """Where a store is served, and what a request may take."""

    host: str = "127.0.0.1"
    port: int = 8000
    url: str | None = None
    """The address that people open, where a reverse proxy stands in front."""
    certificate: Path | None = None
    key: Path | None = None
    plain_http: bool = False
    """Whether secrets may go over a network unencrypted."""
    body_limit: int = 1 << 20
    """Bytes of a request."""
    upload_limit: int = 32 << 20
    """Bytes of a request that brings records in."""
    rate: float = 100.0
    """Requests a second of one visitor, over a while; three times as many may come at once."""
    guesses: float = 0.2
    """Wrong tokens a second from one address, over a while; ten may come at once."""

    def check(self) -> None:
        """Raise where this would be unsafe, or can't be."""
        if not self.host.strip():
            raise DowiseError("--host is empty: give an address, such as 127.0.0.1")
        if (self.certificate is None) != (self.key is None):
            raise DowiseError("a certificate and its key go together: give --certificate and --key")
        for file in (self.certificate, self.key):
            if file is not None and not file.is_file():
                raise DowiseError(f"there is no file {file}: give the path of a PEM file")
        if self.certificate is not None and self.key is not None:
            _check_certificate(self.certificate, self.key)
        if self.url is not None:
            _check_url(self.url)
        if is_loopback(self.host):
            return
        if self.certificate is None and not self.plain_http:
            raise DowiseError(
                f"on {self.host} tokens would cross the network unencrypted: give --certificate "
                "and --key, or stay on 127.0.0.1 behind a reverse proxy that has them (--url "
                "https://…), or say --plain-http if nobody else is on that network"
            )
        if self.url is None and self.host in _EVERYWHERE:
            raise DowiseError(
                f"{self.host} is every address of this machine: say by which name people open it, "
                "such as --url https://ward.example.org"
            )

    @property
    def scheme(self) -> str:
        """That of the server itself."""
        return "http" if self.certificate is None else "https"

    @property
    def address(self) -> str:
        """What people open, without a slash at its end."""
        if self.url is not None:
            return self.url.rstrip("/")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def is_secure(self) -> bool:
        """Whether people reach it over TLS, so that the cookie may demand that."""
        return self.address.startswith("https:")

    @property
    def hosts(self) -> frozenset[str]:
        """What a request may name as its host; any other is a name that was rebound to us."""
        return frozenset(origin.partition("://")[2] for origin in self.origins)

    @property
    def origins(self) -> frozenset[str]:
        """Where pages may be from that send us requests: ours, with or without the usual port."""
        found = {self.address.lower()}
        if is_loopback(self.host) or self.host in _EVERYWHERE:
            found |= {f"{self.scheme}://{name}:{self.port}" for name in _LOOPBACK}
        bare = {one.removesuffix(f":{_PORTS[urlsplit(one).scheme]}") for one in found}
        return frozenset(found | bare)

    @property
    def cookie(self) -> str:
        """The name of the session's cookie: cookies know no ports, so it names ours."""
        return f"__Host-dowise-{self.port}" if self.is_secure else f"dowise-{self.port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_certificate(certificate: Path, key: Path) -> None:
    """Raise where TLS could not begin with these; nobody is there to type a password in."""
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key, password=lambda: "")
    except OSError:  # which errors of TLS are too
        raise DowiseError(
            f"{certificate} and {key} are no certificate and its key: give PEM files that belong "
            "together and that this user may read, the key without a password"
        ) from None


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_fine = parts.scheme in _PORTS and parts.hostname and parts.path in ("", "/")
        is_fine = is_fine and not (parts.query or parts.fragment or parts.username)
        _ = parts.port
    except ValueError:
        is_fine = False
    if not is_fine:
        raise DowiseError(
            f"--url {url!r:.80} must be the address of the server's root, such as "
            "https://ward.example.org"
        )
