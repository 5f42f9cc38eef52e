"""The contract of a store, as a check to run on a store of one's own."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from dowise.errors import DowiseError
from dowise.experiment.event import Event
from dowise.experiment.storage.check_tools import Trial, demand, next_events, refuses, start, write
from dowise.experiment.storage.concurrent_checks import CONCURRENT_CHECKS
from dowise.experiment.storage.contract import Snapshot, Storage

__all__ = ["check_storage"]


def check_storage(make: Callable[[], Storage]) -> None:
    """Try a store, and raise a `DowiseError` that names the first promise it breaks.

    `make` gives a Storage on one and the same place each time that it is called: another object
    where two of them can be open at once, else the same one. The check leaves a few experiments of
    random names there, so give it a place that can be thrown away. What it can't see: whether
    events outlive a crash of the machine, and whether nothing of an erased event is left in files.
    """
    one, other = make(), make()
    try:
        for check in (*_CHECKS, *CONCURRENT_CHECKS):
            check(Trial(one, other, f"check '{secrets.token_hex(6)}' ÿ☃"))
    except DowiseError:
        raise
    except Exception as error:
        raise DowiseError(
            f"this storage breaks the contract: it raises {type(error).__name__}: {error}"
        ) from error
    finally:
        one.close()
        other.close()


def _check_reading(trial: Trial) -> None:
    one, other, name = trial
    demand(
        one.read(name) == [] and one.last(name) is None and one.snapshot(name) is None,
        "of an experiment that is not there, read gives [], last and snapshot give None",
    )
    demand(name not in one.experiments(), "experiments names only what is there")
    words = ("", "quote ' \" % \\ :x ?", "☃𝄞\u0000\n", "long " * 200_000)
    events = write(one, name, *words[:2]) + write(one, name, *words[2:])
    for storage in (one, other):
        demand(storage.read(name) == events, "read gives what was appended, in order, unchanged")
        demand(storage.last(name) == events[-1], "last gives the last event")
        names = storage.experiments()
        demand(
            name in names and list(names) == sorted(set(names)),
            "experiments gives each name once, sorted",
        )
    for after in range(6):
        for upto in (None, 0, 1, 3, 9):
            found = one.read(name, after, upto)
            wanted = events[after:upto]
            demand(found == wanted, "read gives the numbers above `after` and up to `upto`")
    demand(
        one.read(name, kinds=["created"]) == events[:1]
        and one.read(name, 1, kinds={"created", "told"}) == events[1:]
        and one.read(name, kinds=()) == [],
        "read gives only events of these kinds",
    )


def _check_numbers(trial: Trial) -> None:
    one, _, name = trial
    promise = "an event whose number is not the next one is refused, with a DowiseError"
    first, second, third = next_events(None, name, "a", "b", "c")
    with one.writing(name) as block, refuses(promise):
        block.append([second])
    demand(name not in one.experiments(), "a refused event is not there")
    with one.writing(name) as block:
        block.append([first])
        with refuses(promise):
            block.append([second, second])
        with refuses(promise):
            block.append([third])
        block.append([second])
    with one.writing(name) as block, refuses(promise):
        block.append([first])
    with one.writing(name) as block, refuses("an event of another experiment is refused"):
        block.append(next_events(second, f"{name}, another", "c"))
    demand(one.read(name) == [first, second], "after a refused append all is as it was before it")


def _check_blocks(trial: Trial) -> None:
    one, other, name = trial
    first, second, third = next_events(None, name, "a", "b", "c")
    with one.writing(name) as block:
        block.append([first])
        demand(block.read() == [first], "inside a block, read gives what was appended in it")
        block.append(iter([second]))
        demand(block.read(1) == [second], "inside a block, read gives what was appended in it")
    ended = block
    try:
        with one.writing(name) as block:
            block.append([third])
            raise KeyError("an error of the caller's")
    except KeyError:
        pass
    else:
        demand(False, "a caller's error passes through the block as it is")
    for storage in (one, other):
        demand(storage.read(name) == [first, second], "a block that ends with an error adds none")
    with refuses("a block that has ended takes no more events"):
        ended.append([third])
    with other.writing(name) as block:
        demand(block.read() == [first, second], "a block reads all that was ever committed")
        block.append([third])
    one.close()
    demand(one.read(name) == [first, second, third], "what is asked after close opens it anew")
    write(one, name, "d")
    demand(bool(str(one)), "str says where the store is")


def _check_nesting(trial: Trial) -> None:
    one, _, name = trial

    def inside() -> bool:
        with one.writing(name):
            try:
                with one.writing(name):
                    return False
            except DowiseError:
                return True

    promise = "a thread that holds an experiment and asks for it again is refused at once"
    demand(start(inside).result(promise), promise)
    write(one, name, "after it")


def _check_erasing(trial: Trial) -> None:
    one, other, name = trial
    beside = f"{name}, beside"
    events, others = write(one, name, "a", "b", "c"), write(one, beside, "a", "b", "c")
    last = events[-1]
    one.keep_snapshot(Snapshot(name, 3, last.hash, b"old"))
    one.keep_snapshot(Snapshot(beside, 3, others[-1].hash, b"beside"))
    kept = one.snapshot(beside)
    try:
        with one.writing(name) as block:
            block.erase([2])
            raise KeyError("an error of the caller's")
    except KeyError:
        demand(one.read(name) == events, "a block that ends with an error erases nothing")
    with one.writing(name) as block, refuses("what is not there can't be erased"):
        block.erase([2, 9])
    demand(one.read(name) == events, "a refused erasure erases nothing")
    said = Event.after(last, name, "erased", last.at, last.actor, {"numbers": [2]})
    with one.writing(name) as block:
        block.append([said])
        block.erase([2])
        blank = [events[0], events[1].erased(), events[2], said]
        demand(block.read() == blank, "inside a block, read gives erased events as erased")
    with one.writing(name) as block:
        block.erase({2})
    for storage in (one, other):
        demand(storage.read(name) == blank, "erase puts Event.erased() in the place of an event")
        demand(storage.snapshot(name) is None, "erase drops the experiment's snapshots")
        demand(storage.read(beside) == others, "erase leaves other experiments alone")
        demand(storage.snapshot(beside) == kept, "erase leaves other experiments' snapshots alone")
    one.keep_snapshot(Snapshot(name, 3, last.hash, b"old"))
    demand(other.snapshot(name) is None, "a snapshot from before an erasure is not kept after it")


def _check_snapshots(trial: Trial) -> None:
    one, other, name = trial
    events = write(one, name, "a", "b", "c")
    one.keep_snapshot(Snapshot(name, 1, "0" * 64, b"of another journal"))
    demand(one.snapshot(name) is None, "a snapshot that is none of this journal's is not kept")
    body = bytes(range(256)) * 100
    older, newer = (Snapshot(name, n, events[n - 1].hash, body + bytes([n])) for n in (1, 3))
    for given, allowed in ((older, [older]), (newer, [newer]), (older, [newer])):
        one.keep_snapshot(given)
        for storage in (one, other):
            promise = "snapshot gives the newest that was kept, or None"
            demand(storage.snapshot(name) in [None, *allowed], promise)
    demand(one.read(name) == events, "snapshots leave the journal alone")


_CHECKS = (
    _check_reading,
    _check_numbers,
    _check_blocks,
    _check_nesting,
    _check_erasing,
    _check_snapshots,
)
