"""How far a long command is: a bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import monotonic
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    track,
)

__all__ = ["bar", "shown_progress", "tracked", "working"]

_PAUSE = 20.0  # seconds between two lines of a plain log


@contextmanager
def shown_progress(unit: str = " jobs") -> Iterator[Callable[[str, int, int], None]]:
    """A function (what, done, total) that shows progress on stderr."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _plain(console, unit)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
               TimeRemainingColumn())  # fmt: skip
    with Progress(*columns, console=console) as bars:
        tasks = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done)

        yield show


@contextmanager
def bar(off_terminal: bool = False) -> Iterator[Callable[[str, int, int], None] | None]:
    """A function (what, done, total) that shows one bar while it lasts.

    Off a terminal it writes a line now and then, if `off_terminal` says so, else it is None.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _plain(console, "") if off_terminal else None
        return
    with Progress(console=console, transient=True) as bars:
        task = bars.add_task("", total=None)
        yield lambda what, done, total: bars.update(
            task, description=what, completed=done, total=total
        )


def tracked(items: Iterable[Any], what: str, total: int | None = None) -> Iterable[Any]:
    """Go through the items with a progress bar on the terminal, if there is one."""
    console = Console(stderr=True)
    if not console.is_terminal:
        return items
    return track(items, what, total=total, console=console, transient=True)


def working(what: str) -> AbstractContextManager[object]:
    """Says on the terminal, if there is one, that something is under way."""
    console = Console(stderr=True)
    return console.status(what) if console.is_terminal else nullcontext()


def _plain(console: Console, unit: str = " jobs") -> Callable[[str, int, int], None]:
    started: dict[str, tuple[float, int]] = {}
    last = {"said": monotonic()}

    def show(what: str, done: int, total: int) -> None:
        now = monotonic()
        began, first = started.setdefault(what, (now, done))
        if done < total and now - last["said"] < _PAUSE:
            return
        last["said"] = now
        left = ""
        if first < done < total:
            left = f", about {(now - began) / (done - first) * (total - done):.0f} s left"
        console.print(f"{what}: {done:,} of {total:,}{unit} done{left}", highlight=False)

    return show
