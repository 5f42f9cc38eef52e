"""Matplotlib, once it has a folder to write to."""

from __future__ import annotations

import os
import tempfile
import unicodedata
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any

from dowise._core.files import write_bytes
from dowise._core.kernels import private_directory
from dowise.errors import DowiseWarning, import_extra

_PLACES = (("XDG_CONFIG_HOME", ".config"), ("XDG_CACHE_HOME", ".cache"))


def matplotlib_part(name: str, purpose: str = "a picture") -> ModuleType:
    """A module of matplotlib, such as "figure", or an error that says how to install it.

    Where it could not write to its folders, those of an account without a home say, it would warn
    at length each time and begin anew: there it gets a folder beside our compiled kernels.
    """
    if not os.environ.get("MPLCONFIGDIR") and not all(map(_is_writable, _own_folders())):
        folder = private_directory("matplotlib")
        if folder is not None:
            os.environ["MPLCONFIGDIR"] = str(folder)
    return import_extra(f"matplotlib.{name}", "simulate", purpose)


def _own_folders() -> list[Path | None]:
    """Where matplotlib keeps its settings and what it works out; None where there is no home."""
    return [_own_folder(variable, usual) for variable, usual in _PLACES]


def _own_folder(variable: str, usual: str) -> Path | None:
    given = os.environ.get(variable)
    try:
        return Path(given or Path.home() / usual) / "matplotlib"
    except RuntimeError:
        return None


def _is_writable(folder: Path | None) -> bool:
    if folder is None:
        return False
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


_USUAL = "DejaVu Sans"
# Fonts that are likely to have what is missing are asked first; reading all may take a while.
_LIKELY = (
    "noto sans cjk sc",
    "noto sans cjk",
    "noto sans",
    "noto emoji",
    "symbola",
    "emoji",
    "cjk",
    "unifont",
)
_MOST_ASKED = 60
_SHOWN = 12  # characters in a message


def lettered(figure: Any, drawn_by_viewer: bool = False) -> None:
    """Give the texts of a figure fonts that have their characters, and say which none has.

    Where the viewer of the figure draws the letters, it may have fonts that this machine has not.
    A figure that is written to several files is looked at once.
    """
    if getattr(figure, "is_lettered", False):
        return
    figure.is_lettered = True
    needed = {c for text in _texts(figure) for c in text if not c.isspace() and _is_drawn(c)}
    missing = needed - _characters(_path_of_usual())
    if not missing:
        return
    families, lacking = _families(missing)
    if families:
        _use([_USUAL, *families], figure)
    if lacking and not drawn_by_viewer:
        shown = " ".join(sorted(lacking)[:_SHOWN]) + (" …" if len(lacking) > _SHOWN else "")
        warnings.warn(
            f"no font of this machine has {shown}, so boxes stand in the figure instead: install "
            f"{_remedy(lacking)}",
            DowiseWarning,
            stacklevel=4,
        )


@contextmanager
def without_boxes_noticed() -> Iterator[None]:
    """Without matplotlib's own warnings of missing characters, one for each of them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def _texts(figure: Any) -> Iterator[str]:
    for axes in figure.axes:  # asked for, so that they are there before anything is drawn
        yield from (
            label.get_text() for label in (*axes.get_xticklabels(), *axes.get_yticklabels())
        )
    yield from (text.get_text() for text in figure.findobj(matplotlib_part("text").Text))


def _use(families: list[str], figure: Any) -> None:
    for text in figure.findobj(matplotlib_part("text").Text):
        text.set_fontfamily(families)
    for axes in figure.axes:
        axes.tick_params(labelfontfamily=families)


def _families(missing: Iterable[str]) -> tuple[list[str], set[str]]:
    """The fonts that have these characters, and the characters that none has."""
    lacking, families = set(missing), []
    for name, path in _candidates()[:_MOST_ASKED]:
        found = lacking & _characters(path)
        if found:
            families.append(name)
            lacking -= found
        if not lacking:
            break
    return families, lacking


def _candidates() -> list[tuple[str, str]]:
    """The upright fonts of this machine with their files, the likeliest first."""
    entries = matplotlib_part("font_manager").fontManager.ttflist
    fonts = {
        entry.name: entry.fname
        for entry in entries
        if entry.style == "normal" and entry.weight in (400, "normal", "regular", "book")
    }
    # The last resort has a box for everything.
    names = [name for name in fonts if name != _USUAL and not name.startswith("Last Resort")]

    def rank(name: str) -> int:
        return next((i for i, part in enumerate(_LIKELY) if part in name.lower()), len(_LIKELY))

    return [(name, fonts[name]) for name in sorted(names, key=lambda name: (rank(name), name))]


@cache
def _path_of_usual() -> str:
    return str(matplotlib_part("font_manager").findfont(_USUAL))


@cache
def _characters(path: str) -> frozenset[str]:
    """What a font has; nothing, where it can't be read or scaled, as colour emoji can't."""
    try:
        font = matplotlib_part("ft2font").FT2Font(path)
        return frozenset(map(chr, font.get_charmap())) if font.scalable else frozenset()
    except (OSError, RuntimeError, AttributeError):
        return frozenset()


def _is_drawn(character: str) -> bool:
    """Whether it is more than a hint on how to draw its neighbours."""
    return unicodedata.category(character) not in ("Cc", "Cf", "Mn")


def _remedy(characters: Iterable[str]) -> str:
    east = any(unicodedata.east_asian_width(c) in "WF" and c.isalpha() for c in characters)
    emoji = any(unicodedata.category(c) == "So" for c in characters)
    fonts = ["Noto Sans CJK (Debian, Ubuntu: fonts-noto-cjk)"] if east else []
    fonts += ["Noto Emoji or Symbola (fonts-symbola)"] if emoji else []
    return " and ".join(fonts) or "a font that has them, such as one of the Noto fonts"


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
