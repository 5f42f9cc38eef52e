"""A report as a list of blocks, written as Markdown and as one HTML page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["Block", "Heading", "Image", "Paragraph", "Table", "as_html", "as_markdown"]


@dataclass(frozen=True)
class Heading:
    """A title; level 1 is the page's own."""

    level: int
    text: str


@dataclass(frozen=True)
class Paragraph:
    """Running text."""

    text: str


@dataclass(frozen=True)
class Table:
    """Rows of texts under a header; all columns but the first are numbers or short words."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Image:
    """A picture beside the page, and what it shows."""

    file: str
    caption: str


Block = Heading | Paragraph | Table | Image

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .25rem .8rem; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; }
img { max-width: 100%; }
figcaption { color: #555; font-size: .9rem; }
"""


def as_markdown(blocks: Sequence[Block]) -> str:
    """GitHub's Markdown."""
    parts = []
    for block in blocks:
        if isinstance(block, Heading):
            parts.append(f"{'#' * block.level} {block.text}")
        elif isinstance(block, Paragraph):
            parts.append(block.text)
        elif isinstance(block, Image):
            parts.append(f"![{block.caption}]({block.file})")
        else:
            lines = [_row(block.header), "|---|" + "---:|" * (len(block.header) - 1)]
            parts.append("\n".join([*lines, *map(_row, block.rows)]))
    return "\n\n".join(parts) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def as_html(blocks: Sequence[Block]) -> str:
    """One page that needs nothing but the pictures beside it."""
    title = next(block.text for block in blocks if isinstance(block, Heading))
    body = "\n".join(map(_html, blocks))
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{escape(title)}</title>'
        f"\n<style>{_STYLE}</style>\n{body}\n</html>\n"
    )


def _html(block: Block) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{escape(block.text)}</h{block.level}>"
    if isinstance(block, Paragraph):
        return "<p>" + re.sub("`([^`]+)`", r"<code>\1</code>", escape(block.text)) + "</p>"
    if isinstance(block, Image):
        caption = escape(block.caption)
        return (
            f'<figure><img src="{escape(block.file)}" alt="{caption}">'
            f"<figcaption>{caption}</figcaption></figure>"
        )
    head = "".join(f"<th>{escape(cell)}</th>" for cell in block.header)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n"
        for row in block.rows
    )
    return f"<table>\n<tr>{head}</tr>\n{rows}</table>"
