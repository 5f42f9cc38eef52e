"""What a server answers: a document, or an error in its own words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dowise.errors import ConflictError, DowiseError, NotFoundError, UnavailableError

__all__ = ["LATER", "checked_document", "error_of", "seconds_to_wait", "unreadable"]

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
