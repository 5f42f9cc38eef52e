"""What a kind of database has of its own: how it is opened, locked, and cleaned."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection

from dowise.experiment.storage.location import Location

__all__ = ["Database", "Row", "Values"]

Result = TypeVar("Result")
Row = tuple[Any, ...]
Values = Sequence[Any] | Mapping[str, Any]


class Database(Protocol):
    """A place for tables. Connections commit by themselves, but between `begin` and `commit`."""

    location: Location
    one_writer: bool
    """Whether it lets only one writer in, whatever the experiment."""
    most_idle: int
    """How many connections that are not in use are kept open."""

    def prepare(self, create: bool) -> int:
        """See that the tables are there, of whatever version; make them where that is asked for."""

    def catch_up(self, deadline: float) -> None:
        """Bring older tables up to date; TimeoutError if late."""

    def connect(self, identity: Hashable) -> Connection:
        """A connection to tables that are there, as `identity` found them."""

    def identity(self) -> Hashable:
        """What tells this place from another one of the same name, or from what it was before."""

    def patiently(self, call: Callable[[], Result]) -> Result:
        """Call, again and again where the database is busy with something short."""

    def run(self, connection: Connection, text: str, values: Values = ()) -> list[Row]:
        """Let the driver run a statement that is spelled its way; the rows that it gives."""

    def commit(self, connection: Connection, text: str = "", values: Values = ()) -> None:
        """Run a last statement, if there is one, and commit."""

    def close(self) -> None:
        """Let go of whatever is no connection."""

    def begin(
        self,
        connection: Connection,
        experiment: str,
        deadline: float,
        meanwhile: Callable[[], None] | None = None,
    ) -> None:
        """Begin a transaction that no other writer of the experiment is in; TimeoutError if late.

        `deadline` is by `time.monotonic`; `meanwhile` may be called while one waits.
        """

    def clean(self, connection: Connection, deadline: float) -> None:
        """After an erasure was committed: let go of old copies of what was erased."""
