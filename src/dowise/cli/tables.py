"""Tables for people: plain, aligned, cut where nobody would read on."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["count", "plain_console", "print_indented", "print_table"]

# Nobody reads more rows than this on a terminal; --json has them all.
_MOST_ROWS = 40


def plain_console() -> Console:
    """Text as it is: names that look like markup stay names."""
    return Console(highlight=False, markup=False, emoji=False)


def print_table(
    console: Console,
    columns: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    right: tuple[str, ...] = (),
) -> None:
    """Rows of texts under a header; the columns named in `right` are aligned there."""
    table = Table(box=None, padding=(0, 0, 0, 2), header_style="dim", pad_edge=True)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows[:_MOST_ROWS]:
        table.add_row(*map(Text, row))
    console.print(table)
    if len(rows) > _MOST_ROWS:
        console.print(f"  … and {len(rows) - _MOST_ROWS:,} more; --json lists them all")


def print_indented(console: Console, line: str, style: str | None = None) -> None:
    """A line that stays indented where it is broken: by two more than it is itself."""
    depth = 2 + len(line) - len(line.lstrip())
    width = max(console.width - depth, 20)
    for part in Text(line.lstrip(), style or "").wrap(console, width):
        part.rstrip()
        console.print(Text(" " * depth) + part, soft_wrap=True)


def count(number: int, thing: str) -> str:
    """ "1 arm", "2 arms"."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
