"""What can go wrong in the workshop."""

from __future__ import annotations

from dowise.errors import DowiseError, InputSyntaxError, UnavailableError

__all__ = ["BadInputError", "OutOfBoundsError", "WorkshopBusyError", "WorkshopFailedError"]


class BadInputError(InputSyntaxError):
    """Something is wrong with what was sent; `field` says with which part of it.

    In the field "problem" line and column, both from 1, say where in the text, if that is known.
    """

    def __init__(
        self,
        message: str,
        field: str = "problem",
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        super().__init__(message, line, column)
        self.field = field


class OutOfBoundsError(DowiseError):
    """A job would take more time or memory than there is for it, or answer too much."""


class WorkshopBusyError(UnavailableError):
    """Others are at work: the same may be asked again in a moment."""


class WorkshopFailedError(UnavailableError):
    """A job ended in a way that it should not, for no fault of what was sent."""
