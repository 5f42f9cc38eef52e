"""Connections that are kept open between calls, safe for threads and for fork.

A connection is in one thread's hands at a time. A forked child leaves those of its parent alone,
not even closing them: closing a SQLite file there could take away what the parent relies on.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import NamedTuple

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

__all__ = ["Lines", "Loan"]

PATIENCE_BEFORE_FORK = 10.0  # seconds


class Loan(NamedTuple):
    """A connection in somebody's hands, and what held when it was taken."""

    connection: Connection
    identity: Hashable
    generation: object
    process: object


class Lines:
    """Idle connections to one place, and whose turn it is to write in this process.

    An `identity` tells the place from another one of the same name, such as a file that was put in
    its stead: connections to what it was are closed. Of idle ones at most so many are kept.
    """

    def __init__(self, connect: Callable[[Hashable], Connection], most_idle: int) -> None:
        self._connect = connect
        self._most_idle = most_idle
        self._start()
        _ALL.add(self)

    def _start(self) -> None:
        self.process = object()
        self.turn = threading.RLock()  # of which only its owner can let go
        self.holders: set[tuple[int, str]] = set()
        self._generation = object()
        self._guard = threading.Lock()
        self._idle: list[tuple[Connection, Hashable]] = []

    def abandon(self) -> None:
        """In a forked child: leave the parent's connections open, unused, and start over."""
        _ABANDONED.append(self._idle)
        self._start()

    def take(self, identity: Hashable) -> Loan:
        """A connection to the place as it is now, an idle one if there is one."""
        process, generation = self.process, self._generation
        connection = self._take(identity)
        if connection is None:
            connection = self._connect(identity)
        return Loan(connection, identity, generation, process)

    def give_back(self, loan: Loan, well: bool) -> None:
        """Keep the connection for the next one if it is well, and still of use."""
        if loan.process is not self.process:
            _ABANDONED.append(loan)
        elif not well:
            with suppress(SQLAlchemyError):
                loan.connection.invalidate()  # so that nothing more is said by it
            _close(loan.connection)
        elif not self._keep(loan):
            _close(loan.connection)

    def close(self) -> None:
        """Close what is idle now, and what is in use when it comes back."""
        with self._guard:
            idle, self._idle = self._idle, []
            self._generation = object()
        for connection, _ in idle:
            _close(connection)

    def _take(self, identity: Hashable) -> Connection | None:
        while True:
            with self._guard:
                if not self._idle:
                    return None
                connection, made_for = self._idle.pop()
            if made_for == identity:
                return connection
            _close(connection)

    def _keep(self, loan: Loan) -> bool:
        with self._guard:
            if loan.generation is not self._generation or len(self._idle) >= self._most_idle:
                return False
            self._idle.append((loan.connection, loan.identity))
            return True


_ABANDONED: list[object] = []  # what a forked child must neither use nor close
_ALL: weakref.WeakSet[Lines] = weakref.WeakSet()


def _close(connection: Connection) -> None:
    with suppress(SQLAlchemyError):
        connection.close()


_held: list[threading.RLock] = []


def _let_writers_end() -> None:
    """Before a fork: SQLite in the child would take for held what a thread holds at that moment."""
    turns = [lines.turn for lines in list(_ALL)]
    _held.extend(turn for turn in turns if turn.acquire(timeout=PATIENCE_BEFORE_FORK))


def _let_writers_begin() -> None:
    while _held:
        _held.pop().release()


def _abandon_all() -> None:
    _held.clear()
    for lines in list(_ALL):
        lines.abandon()


if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(
        before=_let_writers_end,
        after_in_parent=_let_writers_begin,
        after_in_child=_abandon_all,
    )
