"""Settings of the server: address, TLS, and limits on requests."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from dowise._core.hosts import is_loopback
from dowise.errors import DowiseError

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
ALL_INTERFACES = ("0.0.0.0", "::")
DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Settings:
    """Address, TLS and limits of a server."""

    host: str = "127.0.0.1"
    port: int = 8000
    url: str | None = None
    """Address that users open, if there is a reverse proxy in front."""
    certificate: Path | None = None
    key: Path | None = None
    plain_http: bool = False
    """True if secrets may cross a network unencrypted."""
    body_limit: int = 1 << 20
    """Maximum size of a request in bytes."""
    upload_limit: int = 32 << 20
    """Maximum size of a request with records in bytes."""
    rate: float = 100.0
    """Requests per second and principal on average; bursts may be three times as large."""
    failures: float = 0.2
    """Failed sign-ins per second and address on average; bursts of ten are accepted."""

    def check(self) -> None:
        """Raise `DowiseError` if the settings are inconsistent or unsafe."""
        if not self.host.strip():
            raise DowiseError(
                "the host is empty (expected an address such as 127.0.0.1)", code="missing-value"
            )
        if (self.certificate is None) != (self.key is None):
            raise DowiseError(
                "a certificate and its key go together: specify both", code="missing-value"
            )
        for file in (self.certificate, self.key):
            if file is not None and not file.is_file():
                raise DowiseError(
                    f"no such file: {file} (expected a PEM file)", code="file-not-found"
                )
        if self.certificate is not None and self.key is not None:
            _check_certificate(self.certificate, self.key)
        if self.url is not None:
            _check_url(self.url)
        if is_loopback(self.host):
            return
        if self.certificate is None and not self.plain_http:
            raise DowiseError(
                f"on {self.host} tokens would cross the network unencrypted: specify --certificate "
                "and --key, or stay on 127.0.0.1 behind a reverse proxy with TLS (--url "
                "https://…), or allow it with --plain-http on a network that only you use",
                code="unencrypted",
            )
        if self.url is None and self.host in ALL_INTERFACES:
            raise DowiseError(
                f"{self.host} means every address of this machine: specify the one that users "
                "open, such as --url https://ward.example.org",
                code="missing-value",
            )

    @cached_property
    def scheme(self) -> str:
        """URL scheme of the server itself."""
        return "http" if self.certificate is None else "https"

    @cached_property
    def address(self) -> str:
        """Address that users open, without a trailing slash."""
        if self.url is not None:
            return self.url.rstrip("/")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @cached_property
    def is_secure(self) -> bool:
        """True if users reach the server over TLS, so that the cookie may require it."""
        return self.address.startswith("https:")

    @cached_property
    def hosts(self) -> frozenset[str]:
        """Accepted Host headers; any other points to DNS rebinding."""
        return frozenset(origin.partition("://")[2] for origin in self.origins)

    @cached_property
    def origins(self) -> frozenset[str]:
        """Accepted Origin headers: our own, with or without the default port."""
        origins = {self.address.lower()}
        if is_loopback(self.host) or self.host in ALL_INTERFACES:
            origins |= {f"{self.scheme}://{name}:{self.port}" for name in LOOPBACK_NAMES}
        without_port = {
            origin.removesuffix(f":{DEFAULT_PORTS[urlsplit(origin).scheme]}") for origin in origins
        }
        return frozenset(origins | without_port)

    @cached_property
    def cookie(self) -> str:
        """Name of the session cookie; it contains the port, because cookies are shared by ports."""
        return f"__Host-dowise-{self.port}" if self.is_secure else f"dowise-{self.port}"


def _check_certificate(certificate: Path, key: Path) -> None:
    """Raise `DowiseError` if TLS can't use these files; there is no one to enter a password."""
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key, password=lambda: "")
    except OSError:  # the base of TLS errors
        raise DowiseError(
            f"{certificate} and {key} can't be used for TLS: they must be readable PEM files that "
            "belong together, the key without a password",
            code="invalid-certificate",
        ) from None


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_root = parts.scheme in DEFAULT_PORTS and parts.hostname and parts.path in ("", "/")
        is_valid = is_root and not (parts.query or parts.fragment or parts.username)
        _ = parts.port  # raises if it is not a number
    except ValueError:
        is_valid = False
    if not is_valid:
        raise DowiseError(
            f"not a URL of a server's root: {url!r:.80} (expected https://ward.example.org)",
            code="invalid-url",
        )
