"""The workshop: where problems that somebody sends are read, tried and rehearsed.

A problem's text may ask for any amount of time and memory: a graph with millions of intervention
sets, tables of billions of entries. So the server never reads one by itself. It hands the text to a
process with limits (`__main__`), which does one job and ends, and reads its answer (`Workshop`).
Nothing that a text names is imported or opened there.
"""

from dowise.service.workshop.failures import (
    BadInputError,
    OutOfBoundsError,
    WorkshopBusyError,
    WorkshopFailedError,
)
from dowise.service.workshop.limits import Limits
from dowise.service.workshop.rehearsals import Rehearsal, Rehearsals
from dowise.service.workshop.workshop import Workshop

__all__ = [
    "BadInputError",
    "Limits",
    "OutOfBoundsError",
    "Rehearsal",
    "Rehearsals",
    "Workshop",
    "WorkshopBusyError",
    "WorkshopFailedError",
]  # fmt: skip
