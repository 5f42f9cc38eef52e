"""A report in GitHub's Markdown, and the page that the same text makes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from dowise.errors import import_extra

__all__ = ["as_html", "heading", "image", "table"]

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem;
       color: #222; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .25rem .8rem; text-align: left; border-bottom: 1px solid #ddd; }
img { max-width: 100%; }
"""


def heading(level: int, text: str) -> str:
    """A title; level 1 is the page's own."""
    return f"{'#' * level} {text}"


def image(file: str, caption: str) -> str:
    """A picture beside the page, and what it shows."""
    return f"![{caption}]({file})"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows of texts under a header; all columns but the first are numbers or short words.

    >>> print(table(("policy", "regret"), [("ids", "1.0")]))
    | policy | regret |
    |---|---:|
    | ids | 1.0 |
    """
    rule = "|---|" + "---:|" * (len(header) - 1)
    return "\n".join([_row(header), rule, *map(_row, rows)])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def as_html(markdown: str) -> str:
    """One page that needs nothing but the pictures beside it; its title is the first heading."""
    renderer = import_extra("markdown_it", "simulate", "a report")
    body = renderer.MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    title = re.search(r"^# (.+)$", markdown, re.MULTILINE)
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f"<title>{escape(title[1]) if title else 'Report'}</title>\n"
        f"<style>{_STYLE}</style>\n{body}</html>\n"
    )
