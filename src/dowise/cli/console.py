"""Output of commands: documents rendered with rich, JSON, and progress on stderr.

Rich is imported inside functions, so that `dowise --help` does not load it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from dowise._core.document import Block, BulletList, Document, Heading, Paragraph, Table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.segment import Segment

    from dowise._core.types import ShowProgress

MAX_ROWS = 40
"""Rows of a table on a terminal; --json has them all."""
_MIN_WIDTH = 20
_STYLES = {"plain": "", "strong": "bold", "warning": "bold red", "muted": "dim"}
_LOG_INTERVAL = 20.0  # seconds between two lines of progress in a log
_MIN_SHARE = 0.05  # of the work must be done before the remaining time is estimated


def print_json(data: object) -> None:
    """Print one JSON document on stdout."""
    click.echo(json.dumps(data, indent=2, ensure_ascii=False))


def print_document(document: Document) -> None:
    """Print the document of a result."""
    print_blocks(*document.blocks)


def print_blocks(*blocks: Block) -> None:
    """Print blocks, with a blank line between them except after headings."""
    console = make_console()
    previous: Block | None = None
    for block in blocks:
        if previous is not None and not isinstance(previous, Heading):
            console.print()
        match block:
            case Heading(text):
                print_wrapped(console, text, "bold")
            case Paragraph(text, tone):
                for line in text.splitlines():
                    print_wrapped(console, line, _STYLES[tone])
            case BulletList(items):
                for item in items:
                    print_wrapped(console, item, indent=2)
            case Table():
                print_table(console, block)
        previous = block


def make_console() -> Console:
    """Return a console that prints text as it is: names that look like markup stay names."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def make_error_console() -> Console:
    """Return a console on stderr, for progress."""
    from rich.console import Console

    return Console(stderr=True)


def print_wrapped(console: Console, line: str, style: str = "", indent: int = 0) -> None:
    """Print a line broken between words; further lines are indented by as much as the first."""
    from rich.text import Text

    depth = indent + len(line) - len(line.lstrip())
    margin = Text(" " * depth)
    for part in Text(line.strip(), style).wrap(console, max(console.width - depth, _MIN_WIDTH)):
        part.rstrip()
        console.print(margin + part if part.plain else part, soft_wrap=True)


def print_table(console: Console, table: Table) -> None:
    """Print a table, at most `MAX_ROWS` rows of it.

    If a row does not fit on one line, its widest text gets a separate line: above the others if it
    is the first cell, else below. If that does not help, or if all columns are numbers, the columns
    are spread over several tables, each with the first column. A table without column names is a
    list of labels and texts; its texts are wrapped.
    """
    rows = table.rows[:MAX_ROWS]
    if table.caption:
        print_wrapped(console, table.caption, indent=2)
    lines = _render(console, table.columns, rows, table.right)
    if any(table.columns) and len(lines) > len(rows) + 1:
        widths = _column_widths(table.columns, rows)
        lines = (
            _stack(console, table, rows, widths)
            or _split_columns(console, table, rows, widths)
            or lines
        )
    for line in lines:
        _print_line(console, line)
    if len(table.rows) > MAX_ROWS:
        console.print(f"  … and {len(table.rows) - MAX_ROWS:,} more; --json lists them all")


def _render(
    console: Console,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[str],
    width: int | None = None,
) -> list[list[Segment]]:
    from rich.table import Table as RichTable
    from rich.text import Text

    has_header = any(columns)
    table = RichTable(
        box=None, padding=(0, 0, 0, 2), header_style="dim", pad_edge=True, show_header=has_header
    )
    for i, column in enumerate(columns):
        table.add_column(
            column,
            justify="right" if column in right else "left",
            overflow="fold",
            no_wrap=not has_header and i == 0,
        )
    for row in rows:
        table.add_row(*map(Text, row))
    options = console.options if width is None else console.options.update_width(width)
    return console.render_lines(table, options, pad=False)


def _column_widths(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    from rich.cells import cell_len

    return [max(map(cell_len, cells)) for cells in zip(columns, *rows, strict=True)]


def _stack(
    console: Console, table: Table, rows: Sequence[tuple[str, ...]], widths: Sequence[int]
) -> list[list[Segment]] | None:
    """Render each row with its widest text on a separate line; None if that is too wide."""
    from rich.segment import Segment
    from rich.text import Text

    texts = [i for i, column in enumerate(table.columns) if column not in table.right]
    if not texts:
        return None
    widest = max(texts, key=lambda i: widths[i])
    cells = [(*row[:widest], *row[widest + 1 :]) for row in (table.columns, *rows)]
    below = _render(console, cells[0], cells[1:], table.right, console.width - 2)
    if len(below) != len(cells):
        return None
    margin = Segment("  ")
    lines = [[margin, *below[0]]]
    for row, line in zip(rows, below[1:], strict=True):
        wrapped = Text(row[widest]).wrap(console, max(console.width - 2, _MIN_WIDTH))
        text = [[margin, Segment(part.plain.rstrip())] for part in wrapped]
        other_cells = [margin, *line]
        lines += [*text, other_cells] if widest == 0 else [other_cells, *text]
    return lines


def _split_columns(
    console: Console, table: Table, rows: Sequence[tuple[str, ...]], widths: Sequence[int]
) -> list[list[Segment]] | None:
    """Render several tables, each with the first column; None if two columns do not fit."""
    parts: list[list[int]] = [[0]]
    for i in range(1, len(widths)):
        if sum(widths[j] + 2 for j in (*parts[-1], i)) > console.width:
            parts.append([0])
        parts[-1].append(i)
    lines: list[list[Segment]] = []
    for part in parts:
        cells = [tuple(row[i] for i in part) for row in (table.columns, *rows)]
        rendered = _render(console, cells[0], cells[1:], table.right)
        if len(rendered) != len(cells):
            return None
        lines += [*([[]] if lines else []), *rendered]
    return lines


def _print_line(console: Console, line: list[Segment]) -> None:
    """Print a line without the spaces that fill the last column."""
    from rich.segment import Segment, Segments

    parts = list(line)
    while parts and not parts[-1].text.strip():
        parts.pop()
    if parts:
        parts[-1] = Segment(parts[-1].text.rstrip(), parts[-1].style)
    console.print(Segments([*parts, Segment.line()]), end="", soft_wrap=True)


@contextmanager
def progress_bars(unit: str = " jobs") -> Iterator[ShowProgress]:
    """Show progress on stderr: a bar per label on a terminal, else a line now and then."""
    console = make_error_console()
    if not console.is_terminal:
        yield _progress_log(console, unit)
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bars:
        tasks = {}

        def show(label: str, completed: int, total: int) -> None:
            if label not in tasks:
                tasks[label] = bars.add_task(label, total=total)
            bars.update(tasks[label], completed=completed)

        yield show


@contextmanager
def progress_bar(off_terminal: bool = False) -> Iterator[ShowProgress | None]:
    """Show one bar on stderr while the block runs.

    Off a terminal, lines are logged if `off_terminal` is True; otherwise None is yielded.
    """
    console = make_error_console()
    if not console.is_terminal:
        yield _progress_log(console, "") if off_terminal else None
        return
    from rich.progress import Progress

    with Progress(console=console, transient=True) as bars:
        task = bars.add_task("", total=None)
        yield lambda label, completed, total: bars.update(
            task, description=label, completed=completed, total=total
        )


def track(items: Iterable[Any], label: str, total: int | None = None) -> Iterable[Any]:
    """Iterate over items, with a progress bar if stderr is a terminal."""
    console = make_error_console()
    if not console.is_terminal:
        return items
    from rich.progress import track as track_with_bar

    return track_with_bar(items, label, total=total, console=console, transient=True)


def spinner(label: str) -> AbstractContextManager[object]:
    """Show a spinner while the block runs, if stderr is a terminal."""
    console = make_error_console()
    return console.status(label) if console.is_terminal else nullcontext()


def _progress_log(console: Console, unit: str = " jobs") -> ShowProgress:
    started: dict[str, tuple[float, int]] = {}
    last_line = monotonic()

    def show(label: str, completed: int, total: int) -> None:
        nonlocal last_line
        now = monotonic()
        start, completed_at_start = started.setdefault(label, (now, completed))
        if completed < total and now - last_line < _LOG_INTERVAL:
            return
        last_line = now
        estimate = ""
        if completed_at_start < completed < total and completed >= total * _MIN_SHARE:
            seconds_per_step = (now - start) / (completed - completed_at_start)
            estimate = f", about {seconds_per_step * (total - completed):.0f} s left"
        console.print(f"{label}: {completed:,} of {total:,}{unit} done{estimate}", highlight=False)

    return show
