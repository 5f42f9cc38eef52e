"""What figures share: colours, dashes, labels that keep apart, and writing a figure to a file.

Legible in print and in colour-blind vision: the palette of Okabe & Ito (2008), with dashes that
tell apart what has the same colour.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

from dowise.files import write_bytes
from dowise.picture.fonts import lettered, without_boxes_noticed
from dowise.picture.library import matplotlib_part

INK, GRID = "#333333", "#dddddd"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#56B4E9", "#CC79A7", "#E69F00", "#000000", "#999999")
DASHES: tuple[Any, ...] = (
    "-",
    (0, (6, 2)),
    (0, (4, 1, 1, 1)),
    (0, (1, 1)),
    (0, (3, 1, 1, 1, 1, 1)),
    (0, (2, 2)),
    (0, (1, 2)),
)


def apart(heights: list[float], least: float) -> list[float]:
    """Rising heights moved, as little as may be, so that neighbours are this far apart.

    Neighbours that are too near are moved together, as far up as down; what is far away stays.

    >>> apart([0.0, 1.0, 1.0, 5.0], 0.5)
    [0.0, 0.75, 1.25, 5.0]
    """
    groups: list[tuple[float, int]] = []  # the mean of heights less i · least, and how many
    for i, height in enumerate(heights):
        mean, size = height - i * least, 1
        while groups and groups[-1][0] > mean:
            other, more = groups.pop()
            mean, size = (mean * size + other * more) / (size + more), size + more
        groups.append((mean, size))
    flat = [mean for mean, size in groups for _ in range(size)]
    return [mean + i * least for i, mean in enumerate(flat)]


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure of matplotlib whole, the same bytes for the same figure."""
    drawn, ending = BytesIO(), path.suffix[1:].lower()
    date = {"svg": "Date", "pdf": "CreationDate"}.get(ending)  # it would make the bytes differ
    settings = {"svg.hashsalt": "dowise", "savefig.bbox": None}
    with matplotlib_part("style").context(settings), without_boxes_noticed():
        lettered(figure)
        figure.savefig(drawn, format=ending, metadata={date: None} if date else None)
    write_bytes(path, drawn.getvalue())
