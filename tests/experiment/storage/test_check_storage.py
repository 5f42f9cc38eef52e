"""`check_storage` accepts the stores of the package and names each broken promise."""

import re
import threading
import time
from contextlib import contextmanager

import pytest

from dowise import DowiseError
from dowise.experiment.storage import MemoryStorage, open_storage
from dowise.experiment.storage.base import check_not_nested
from dowise.experiment.storage.memory import MemoryTransaction
from dowise.testing import check_storage

pytestmark = pytest.mark.slow  # processes and timeouts


def test_a_store_in_memory_passes():
    storage = MemoryStorage()
    check_storage(lambda: storage)


def test_stores_in_tables_pass(place):
    open_storage(place, create=True).close()
    check_storage(lambda: open_storage(place))


class Broken(MemoryStorage):
    """Store whose transactions are of the class `Block`, to be broken."""

    Block = MemoryTransaction

    @contextmanager
    def transaction(self, experiment):
        with super().transaction(experiment) as block:
            block.__class__ = self.Block
            yield block


def breaking(name, **methods):
    """Return a store with some methods replaced."""
    return type(name, (Broken,), methods)


def breaking_block(name, **methods):
    """Return a store with some methods of its transactions replaced."""
    return breaking(name, Block=type("Block", (MemoryTransaction,), methods))


@contextmanager
def without_lock(self, experiment):
    thread = threading.get_ident()
    check_not_nested(experiment, thread in self._holders)
    self._holders.add(thread)
    block = MemoryTransaction(experiment, list(self._journals.get(experiment, [])))
    try:
        yield block
        self._commit(block)
    finally:
        block.ended = True
        self._holders.discard(thread)


@contextmanager
def without_rollback(self, experiment):
    error = None
    with MemoryStorage.transaction(self, experiment) as block:
        try:
            yield block
        except Exception as raised:
            error = raised
    if error:
        raise error


@contextmanager
def without_errors(self, experiment):
    try:
        with MemoryStorage.transaction(self, experiment) as block:
            yield block
    except Exception:
        pass


@contextmanager
def uncommitted_reads(self, experiment):
    class Visible(MemoryTransaction):
        def append(block, events):  # noqa: N805
            MemoryTransaction.append(block, events)
            journal = self._journals.setdefault(experiment, [])
            self._journals[experiment] = journal + block.added
            block.committed, block.added = self._journals[experiment], []

    with MemoryStorage.transaction(self, experiment) as block:
        block.__class__ = Visible
        yield block


@contextmanager
def readers_wait(self, experiment):
    with MemoryStorage.transaction(self, experiment) as block:
        self.busy = True
        try:
            yield block
        finally:
            self.busy = False


def wait_and_read(self, *arguments, **options):
    while getattr(self, "busy", False):
        time.sleep(0.01)
    return MemoryStorage.read(self, *arguments, **options)


@contextmanager
def waits_for_itself(self, experiment):
    while experiment in getattr(self, "held", ()):
        time.sleep(0.01)
    self.held = {experiment}
    self._holders.clear()
    try:
        with MemoryStorage.transaction(self, experiment) as block:
            yield block
    finally:
        self.held = set()


def partial_append(self, events):
    for event in events:
        MemoryTransaction.append(self, [event])


def unchecked_append(self, events):
    self.added += events


def append_after_the_end(self, events):
    self.ended, ended = False, self.ended
    MemoryTransaction.append(self, events)
    self.ended = ended


def foreign_append(self, events):
    MemoryTransaction.append(
        self, [event for event in events if event.experiment == self.experiment]
    )


def erase_nothing(self, numbers):
    MemoryTransaction.erase(self, numbers)
    self.blanked = {}


def keep_snapshots_of_the_erased(self, numbers):
    MemoryTransaction.erase(self, numbers)
    self.erases = False


def erase_what_is_not_there(self, numbers):
    MemoryTransaction.erase(self, [number for number in numbers if number <= len(self.read())])


def keep_any(self, snapshot):
    self._snapshots[snapshot.experiment] = snapshot


def keep_old(self, snapshot):
    journal = self._journals[snapshot.experiment]
    if len(journal) >= snapshot.number and journal[snapshot.number - 1].hash == snapshot.hash:
        self._snapshots[snapshot.experiment] = snapshot


def skip_an_event(self, *arguments, **options):
    events = MemoryStorage.read(self, *arguments, **options)
    return events[:5] + events[6:] if len(events) > 6 else events


def forget_all(self):
    self._journals = {}


def drop_all_snapshots(self, block):
    MemoryStorage._commit(self, block)
    if block.erases:
        self._snapshots.clear()


def ignore_kinds(self, experiment, after=0, upto=None, kinds=None):  # noqa: ARG001
    return MemoryStorage.read(self, experiment, after, upto)


def exclude_upto(self, experiment, after=0, upto=None, kinds=None):
    return MemoryStorage.read(self, experiment, after, upto and upto - 1, kinds)


def fail(self, experiment):  # noqa: ARG001
    raise RuntimeError("out of order")


@pytest.mark.parametrize(
    ("broken", "promise"),
    [
        (breaking("Unsorted", experiments=lambda self: tuple(self._journals) * 2), "once, sorted"),
        (breaking("NoKinds", read=ignore_kinds), "only events of these kinds"),
        (breaking("NoUpto", read=exclude_upto), "above `after` and up to `upto`"),
        (breaking("First", last=lambda self, name: (self.read(name) or [None])[0]), "last returns"),
        (breaking("Fails", last=fail), "it raises RuntimeError: out of order"),
        (breaking_block("Unchecked", append=unchecked_append), "not the next one is refused"),
        (breaking_block("Foreign", append=foreign_append), "of another experiment is refused"),
        (breaking_block("Partial", append=partial_append), "not the next one is refused|refused"),
        (breaking_block("Blind", read=lambda self, after=0: self.committed[after:]), "inside a"),
        (breaking("NoRollback", transaction=without_rollback), "ends with an error adds none"),
        (breaking("Swallows", transaction=without_errors), "passes through the transaction"),
        (breaking_block("Late", append=append_after_the_end), "has ended takes no more"),
        (breaking("Forgets", close=forget_all), "after close reopens"),
        (breaking("Nameless", __str__=lambda _: ""), "str returns where"),
        (breaking("SelfWaits", transaction=waits_for_itself), "refused immediately"),
        (breaking_block("ErasesNot", erase=erase_nothing), "read returns erased events as erased"),
        (breaking_block("ErasesMore", erase=erase_what_is_not_there), "unknown event is refused"),
        (breaking_block("OldCopies", erase=keep_snapshots_of_the_erased), "drops the snapshots"),
        (breaking("DropsAll", _commit=drop_all_snapshots), "snapshots of other experiments alone"),
        (breaking("KeepsOld", save_snapshot=keep_old), "before an erasure is not stored"),
        (breaking("KeepsAny", save_snapshot=keep_any), "before an erasure is not stored"),
        (
            breaking("Dirty", transaction=uncommitted_reads),
            "error adds none|only what is committed",
        ),
        (breaking("Waits", transaction=readers_wait, read=wait_and_read), "never wait for writers"),
        (breaking("NoTurns", transaction=without_lock), "at most one transaction"),
        (breaking("Gaps", read=skip_an_event), "without a gap|is stored once"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_each_broken_promise_is_reported(broken, promise, monkeypatch):
    monkeypatch.setattr("dowise.testing.storage.CALL_TIMEOUT", 0.3)
    storage = broken()
    with pytest.raises(DowiseError, match="breaks the contract") as error:
        check_storage(lambda: storage)
    assert re.search(promise, str(error.value))
