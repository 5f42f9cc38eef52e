"""Fonts for the names in a figure: matplotlib's own lacks Chinese, Japanese, Korean and emoji.

Where a figure has characters that the usual font lacks, other fonts of this machine are asked, and
its texts get as many of them as it takes. What none of them has is drawn as an empty box, and said
once, with what to install.
"""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from dowise.errors import DowiseWarning
from dowise.picture.library import matplotlib_part

__all__ = ["lettered", "without_boxes_noticed"]

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
