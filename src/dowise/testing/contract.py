"""The contract that a conformance suite checks."""

from __future__ import annotations

from typing import NamedTuple

from dowise.errors import DowiseError


class Contract(NamedTuple):
    """The promises of a custom class; `subject` names it in errors, such as "this policy"."""

    subject: str

    def broken(self, promise: str) -> DowiseError:
        """Return the error that a promise is broken."""
        return DowiseError(f"{self.subject} breaks the contract: {promise}", code="broken-contract")

    def require(self, is_kept: bool, promise: str) -> None:
        """Raise the error unless a promise is kept."""
        if not is_kept:
            raise self.broken(promise)
