"""The kernels, loaded when first needed, with a word on the terminal if that takes a while.

Numba compiles them once for all problems, a matter of seconds, and keeps the result on disk; from
then on they load in a fraction of a second.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Timer
from types import ModuleType

import numpy as np

__all__ = ["announced", "kernels"]

_PATIENCE = 1.0  # seconds that need no explanation


@cache
def kernels() -> ModuleType:
    """`dowise.belief.kernels`, compiled for the types that a belief calls it with."""
    with announced():
        from dowise.belief import kernels

        # A program of one operation on one row of two entries, to make numba compile or load.
        one, two = np.ones(1, dtype=np.int64), np.array([0, 1])
        operations = np.array([3]), two, one, one
        kernels.count_record(np.ones(2), one - 1, one - 2, two, one.reshape(1, 1))
        kernels.run_program(np.ones((4, 1)), 1, *operations)
        kernels.draw_results(
            np.uint64(0), np.uint64(0), np.ones(2), two[:1], one, 2 * one, *operations,
            np.array([[3]]), 16, 4, np.empty((1, 1, 1), dtype=np.float32),
        )  # fmt: skip
    return kernels


@contextmanager
def announced() -> Iterator[None]:
    """Tell whoever sits at a terminal what takes so long, if it takes long."""
    notice = Timer(_PATIENCE, _say_compiling)
    notice.daemon = True
    notice.start()
    try:
        yield
    finally:
        notice.cancel()


def _say_compiling() -> None:
    if sys.stderr.isatty():
        sys.stderr.write("dowise: compiling its kernels; this happens once …\n")
