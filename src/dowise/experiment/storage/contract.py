"""What a store of journals promises; whoever writes another one tests it with `check_storage`.

**What is durable when a call returns.** When a `writing` block ends without an error, all events
that were appended in it are there together and stay there, whatever happens to the process or the
machine from then on. When it ends with an error, or the process dies inside it, none of them is
there. A snapshot may be lost at any time.

**What callers at the same time may see.** Of one experiment at most one `writing` block is open at
a time, over all threads, processes and machines; others wait for it, and give up with a
`DowiseError` that says so after a minute. A thread that holds a block and asks for the same
experiment again would wait for itself, and is refused at once; a store may refuse it any other
experiment too. A block belongs to its process: in a forked child it is of no use. What
`Writing.read` gives is all that was ever committed, and nothing can be added by others before the
block ends: so number, fold and append are one step. `read`, `last` and `experiments` never wait for
writers and never make them wait. They see only what is committed, and all events up to some number
without a gap: once an event was seen, it and all before it are seen from then on, by the same
caller.

**What never changes.** Events are appended in the order of their numbers, 1, 2, …, and are never
changed or removed, but for `Writing.erase`, which puts `Event.erased()` in the place of events.
When that block ends, nobody can read what they said from the store any more, nothing of it is left
in files that are the store's own, and no snapshot of the experiment either. Whoever erases appends
an `erased` event in the same block; from then on no snapshot of an earlier event is kept, so that
who folded before can't bring back what is gone. Where old copies can't be removed at once, say
while somebody reads the file, the block ends with a `DowiseError` that says so: the erasure is
recorded all the same, and erasing the same events again finishes it. A database server gives up its
own old copies (dead rows, write-ahead log, backups) by its own rules.

**What a store does not know.** It neither folds events nor verifies their hashes; it refuses an
event whose number is not the next one, or that is of another experiment, and then the block is as
it was before the call. An experiment that is not there has no events. It never imports code and
never opens a file that an event names. What it can't do it says by a `DowiseError` in plain English
that shows no password, and then it is unharmed. Where a connection is lost while a block ends, the
events are there all or not at all, and the error says that one has to look; who is stopped by
Ctrl-C there has to look as well. All methods may be called by several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from dowise.experiment.event import Event

__all__ = ["Snapshot", "Storage", "Writing"]


class Snapshot(NamedTuple):
    """What the events up to a number amount to; nothing but a way to read fewer of them."""

    experiment: str
    number: int
    hash: str
    """That of the event with this number."""
    body: bytes


class Writing(Protocol):
    """An experiment while nobody else can write to it."""

    def read(self, after: int = 0) -> list[Event]:
        """All events with a larger number, in order."""

    def append(self, events: Iterable[Event]) -> None:
        """Add the next events; `created` with number 1 makes the experiment."""

    def erase(self, numbers: Collection[int]) -> None:
        """Blank what these events say (`Event.erased`), and drop the experiment's snapshots.

        A number that is not there is refused; one that is erased already is erased once more.
        """


class Storage(Protocol):
    """Where journals live: one store holds those of many experiments."""

    def experiments(self) -> tuple[str, ...]:
        """The names of all experiments, sorted."""

    def read(
        self,
        experiment: str,
        after: int = 0,
        upto: int | None = None,
        kinds: Collection[str] | None = None,
    ) -> list[Event]:
        """The events with a number above `after` and up to `upto`, of these kinds, in order."""

    def last(self, experiment: str) -> Event | None:
        """The last event, or None where there is no such experiment."""

    def writing(
        self, experiment: str, meanwhile: Callable[[], None] | None = None
    ) -> AbstractContextManager[Writing]:
        """Hold the experiment, which need not exist yet; commit at the end of the block.

        While one waits for others, `meanwhile` may be called, never or many times: to `read` what
        they wrote so far, so that less is left to read inside the block, where they wait for us.
        """

    def snapshot(self, experiment: str) -> Snapshot | None:
        """The newest snapshot, if there is one. Nobody vouches for it."""

    def keep_snapshot(self, snapshot: Snapshot) -> None:
        """Keep it in place of older ones; where that can't be done, nothing happens.

        Nothing happens either where it is older than the one that is kept, where no event of the
        journal has its number and hash, or where an `erased` event came after it.
        """

    def close(self) -> None:
        """Let go of files and connections; whatever is asked afterwards opens them anew."""

    def __str__(self) -> str:
        """Where the store is, without a password."""
