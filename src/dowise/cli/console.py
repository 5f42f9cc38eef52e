"""Tables for people: plain, aligned, cut where nobody would read on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import monotonic
from typing import Any

import click
from rich.cells import cell_len
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    track,
)
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

# Nobody reads more rows than this on a terminal; --json has them all.
MOST_ROWS = 40


def plain_console() -> Console:
    """Text as it is: names that look like markup stay names."""
    return Console(highlight=False, markup=False, emoji=False)


def print_table(
    console: Console,
    columns: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    right: tuple[str, ...] = (),
    alone: str | None = None,
) -> None:
    """Rows of texts under a header; the columns named in `right` are aligned there.

    Where rows would have to be broken, the column named by `alone` goes on a line of its own
    above the rest of each row.
    """
    shown = rows[:MOST_ROWS]
    lines = console.render_lines(_table(columns, shown, right), pad=False)
    if alone in columns and len(lines) > len(shown) + 1:
        place = columns.index(alone)
        others = [(*row[:place], *row[place + 1 :]) for row in (columns, *shown)]
        narrower = console.options.update_width(console.width - 2)
        under = console.render_lines(_table(others[0], others[1:], right), narrower, pad=False)
        if len(under) == len(shown) + 1:
            _print_under(console, [row[place] for row in shown], under)
            lines = []
    for line in lines:
        _print_line(console, line)
    _print_rest(console, len(rows))


def print_stripped(console: Console, table: Table) -> None:
    """A table without spaces at the ends of its lines."""
    for line in console.render_lines(table, pad=False):
        _print_line(console, line)


def print_numbered(console: Console, rows: Sequence[tuple[str, ...]]) -> None:
    """For rows that are too wide for a table: a number, then each of the other cells on a line."""
    shown = rows[:MOST_ROWS]
    width = max((cell_len(number) for number, *_ in shown), default=0)
    for number, *cells in shown:
        for i, cell in enumerate(cells):
            first = "" if i else number
            print_wrapped(console, cell, hanging=width + 4, first=f"  {first:>{width}}  ")
    _print_rest(console, len(rows))


def is_narrow_enough(
    console: Console, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]
) -> bool:
    """Whether no cell of the table would have to be broken."""
    widths = [max(map(cell_len, cells)) for cells in zip(columns, *rows, strict=True)]
    return sum(widths) + 2 * len(columns) <= console.width


def print_wrapped(
    console: Console, line: str, style: str | None = None, hanging: int = 0, first: str = ""
) -> None:
    """A line that is broken between words, with `first` before it and `hanging` spaces below."""
    room = max(console.width - max(hanging, cell_len(first)), 20)
    for i, part in enumerate(Text(line, style or "").wrap(console, room)):
        part.rstrip()
        before = first if i == 0 else " " * hanging
        console.print(Text(before if part.plain else "") + part, soft_wrap=True)


def print_indented(console: Console, line: str, style: str | None = None) -> None:
    """A line that stays indented where it is broken: by two more than it is itself."""
    depth = 2 + len(line) - len(line.lstrip())
    print_wrapped(console, line.lstrip(), style, hanging=depth, first=" " * depth)


def _table(
    columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], right: tuple[str, ...]
) -> Table:
    table = Table(box=None, padding=(0, 0, 0, 2), header_style="dim", pad_edge=True)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _print_under(console: Console, texts: Sequence[str], lines: list[list[Segment]]) -> None:
    """The header, then each text above the line of its row."""
    header, *rest = lines
    _print_line(console, [Segment("  "), *header])
    for text, line in zip(texts, rest, strict=True):
        print_wrapped(console, text, hanging=2, first="  ")
        _print_line(console, [Segment("  "), *line])


def _print_line(console: Console, line: list[Segment]) -> None:
    """Without the spaces that fill the last column."""
    parts = list(line)
    while parts and not parts[-1].text.strip():
        parts.pop()
    if parts:
        parts[-1] = Segment(parts[-1].text.rstrip(), parts[-1].style)
    console.print(Segments([*parts, Segment.line()]), end="", soft_wrap=True)


def _print_rest(console: Console, rows: int) -> None:
    if rows > MOST_ROWS:
        console.print(f"  … and {rows - MOST_ROWS:,} more; --json lists them all")


def count(number: int, thing: str) -> str:
    """ "1 arm", "2 arms"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


_PAUSE = 20.0  # seconds between two lines of a plain log


@contextmanager
def shown_progress(unit: str = " jobs") -> Iterator[Callable[[str, int, int], None]]:
    """A function (what, done, total) that shows progress on stderr."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _plain(console, unit)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
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


def print_json(document: object) -> None:
    """Print one JSON document on stdout."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))
