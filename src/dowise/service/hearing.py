"""Warnings of ours, brought to the one whose request they are about."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import local
from typing import Any

from dowise.errors import DowiseWarning

__all__ = ["hear_warnings", "listening"]

_heard = local()
_usual = warnings.showwarning


def hear_warnings() -> None:
    """From now on let `listening` hear warnings, each time and not only the first."""
    warnings.simplefilter("always", DowiseWarning)
    warnings.showwarning = _hear


@contextmanager
def listening() -> Iterator[list[str]]:
    """What is warned of in this thread meanwhile."""
    notes: list[str] = []
    _heard.notes = notes
    try:
        yield notes
    finally:
        _heard.notes = None


def _hear(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    notes = getattr(_heard, "notes", None)
    if issubclass(category, DowiseWarning) and notes is not None:
        notes.append(str(message))
    else:
        _usual(message, category, filename, lineno, file, line)
