"""Documents: the readable form of a result, for terminals, notebooks and pages.

A document is a sequence of blocks of four kinds. `result.document()` returns it; `str(result)` is
its text, notebooks show its HTML, and the command line renders its blocks with rich.

>>> document = Document((
...     Heading("Status"),
...     Paragraph("Two arms were played."),
...     Table(("arm", "plays"), (("do(X=0)", "3"), ("do(X=1)", "12")), right=("plays",)),
... ))
>>> print(document.to_text())
Status
<BLANKLINE>
Two arms were played.
<BLANKLINE>
arm      plays
do(X=0)      3
do(X=1)     12
>>> document.to_html()[:15]
'<h3>Status</h3>'
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

_LARGEST_WRITTEN_OUT = 1e15


@dataclass(frozen=True)
class Heading:
    """The title of the blocks that follow."""

    text: str


@dataclass(frozen=True)
class Paragraph:
    """One or more sentences; `tone` is "plain", "strong", "warning" or "muted"."""

    text: str
    tone: str = "plain"


@dataclass(frozen=True)
class BulletList:
    """Short items of equal rank."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Rows of cells under named columns; the columns in `right` are aligned to the right.

    If all names are empty, the table has no header: rows are labels with texts.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[str, ...] = ()
    caption: str | None = None


Block = Heading | Paragraph | BulletList | Table


@dataclass(frozen=True)
class Document:
    """An immutable sequence of blocks."""

    blocks: tuple[Block, ...]

    def to_text(self) -> str:
        """Render as plain text, with a blank line between blocks."""
        return "\n\n".join(_block_text(block) for block in self.blocks)

    def to_html(self) -> str:
        """Render as an HTML fragment without styles."""
        return "\n".join(_block_html(block) for block in self.blocks)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_html()


class Documented:
    """Mixin of results with a document: it is their `str`, and their HTML in notebooks."""

    def document(self) -> Document:
        """Return the result as headings, paragraphs, lists and tables."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.document().to_text()

    def _repr_html_(self) -> str:
        return self.document().to_html()


def format_number(value: float) -> str:
    """Format with three significant digits; tiny and huge numbers in scientific notation.

    >>> format_number(2123.4), format_number(0.01234), format_number(0.00001234)
    ('2,120', '0.0123', '1.23e-05')
    """
    rounded = float(f"{value:.3g}")
    in_full = 1000 <= abs(rounded) < _LARGEST_WRITTEN_OUT
    return f"{rounded:,.0f}" if in_full else f"{rounded:.3g}"


def pluralize(number: int, noun: str) -> str:
    """Format a number of things.

    >>> pluralize(1, "arm"), pluralize(2000, "arm")
    ('1 arm', '2,000 arms')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _block_text(block: Block) -> str:
    match block:
        case Heading(text) | Paragraph(text):
            return text
        case BulletList(items):
            return "\n".join(f"- {item}" for item in items)
        case Table(columns, rows, right, caption):
            lines = [columns, *rows] if any(columns) else list(rows)
            widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
            is_right = [column in right for column in columns]
            text = "\n".join(_line(cells, widths, is_right) for cells in lines)
            return f"{caption}\n{text}" if caption else text


def _line(cells: Iterable[str], widths: list[int], is_right: list[bool]) -> str:
    padded = (
        cell.rjust(width) if right else cell.ljust(width)
        for cell, width, right in zip(cells, widths, is_right, strict=True)
    )
    return "  ".join(padded).rstrip()


def _block_html(block: Block) -> str:
    match block:
        case Heading(text):
            return f"<h3>{escape(text)}</h3>"
        case Paragraph(text, tone):
            attribute = "" if tone == "plain" else f' class="{tone}"'
            return f"<p{attribute}>{escape(text)}</p>"
        case BulletList(items):
            return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"
        case Table(columns, rows, right, caption):
            aligned = [' style="text-align: right"' if c in right else "" for c in columns]
            head = "".join(
                f"<th{style}>{escape(cell)}</th>"
                for cell, style in zip(columns, aligned, strict=True)
            )
            body = "".join(
                "<tr>"
                + "".join(
                    f"<td{style}>{escape(cell)}</td>"
                    for cell, style in zip(row, aligned, strict=True)
                )
                + "</tr>"
                for row in rows
            )
            title = f"<caption>{escape(caption)}</caption>" if caption else ""
            return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
