"""Matplotlib writer: pictures of graphs, styles shared by all charts, and saving.

Matplotlib is imported when the first figure is drawn. Figures look the same whatever the user's
settings of matplotlib are, and the same figure gives the same bytes.
"""

from __future__ import annotations

import os
import re
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from dowise._core.files import write_bytes
from dowise._core.kernels import private_directory
from dowise.errors import DowiseError, DowiseWarning, import_extra
from dowise.plotting.layout import text_width
from dowise.plotting.scene import (
    EDGE_COLOUR,
    LABELS,
    SWATCH_WIDTH,
    EdgeShape,
    GraphPicture,
    VariableShape,
    legend_sample,
    printable,
)

INK, GREY, GRID = "#333333", "#777777", "#dddddd"
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
_MARKERS = "osD^"
# Fallbacks, in this order, for characters that the first font, matplotlib's own, lacks. The last
# one comes with matplotlib.
_FONTS = (
    "DejaVu Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans",
    "WenQuanYi Zen Hei",
    "Noto Emoji",
    "Symbola",
    "Unifont",
    "STIXGeneral",
)
_MISSING_GLYPH = "Glyph .* missing from"  # start of a warning of matplotlib
_FORMATS = ("svg", "png", "pdf")
# Matplotlib writes to these folders: the variable that names one, and its default below the home.
_MATPLOTLIB_FOLDERS = (("XDG_CONFIG_HOME", ".config"), ("XDG_CACHE_HOME", ".cache"))

_FONT_SIZE = 12.0  # points; one em of the layout
_DPI, _MAX_PIXELS = 200.0, 6000  # of a PNG, and of its longer side
_MARGIN = 2.0
_HALF_CAPITAL = 0.365  # of DejaVu Sans
_TITLE_SIZE, _LEGEND_SIZE, _EDGE_LABEL_SIZE = 1.3, 0.85, 2 / 3  # em
_LEGEND_GAP, _LEGEND_ROW = 0.6, 2.2
_MIN_LEGEND_WIDTH = 52.0
_PATH_CODES = {"move": 1, "line": 2, "curve": 3, "close": 79}  # of matplotlib's paths


def matplotlib_part(name: str) -> ModuleType:
    """Import a module of matplotlib, such as "figure"."""
    _prepare_matplotlib()
    return import_extra(f"matplotlib.{name}", "simulate", "drawing a picture")


@cache
def _prepare_matplotlib() -> None:
    """Set a folder for matplotlib beside the compiled kernels if it can't write to its own.

    Without a folder, as in an account without a home, it warns and rebuilds its caches every time.
    """
    if not os.environ.get("MPLCONFIGDIR") and not all(map(_is_writable, _MATPLOTLIB_FOLDERS)):
        folder = private_directory("matplotlib")
        if folder is not None:
            os.environ["MPLCONFIGDIR"] = str(folder)


def _is_writable(location: tuple[str, str]) -> bool:
    variable, default = location
    try:
        folder = Path(os.environ.get(variable) or Path.home() / default) / "matplotlib"
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except (OSError, RuntimeError):  # the latter: there is no home
        return False


# -- styles and saving --------------------------------------------------------------------------


@contextmanager
def figure_style() -> Iterator[None]:
    """Apply our settings of matplotlib while a figure is created or written.

    The user's settings have no effect on the figure and don't change.
    """
    installed = {font.name for font in matplotlib_part("font_manager").fontManager.ttflist}
    settings = {
        "font.family": [name for name in _FONTS if name in installed] or ["sans-serif"],
        "svg.hashsalt": "dowise",
        "svg.fonttype": "none",
    }
    with matplotlib_part("style").context(["default", settings]):
        yield


def new_figure(width: float, height: float) -> Any:
    """Create a figure of this size in inches, with a layout that leaves room for labels."""
    module = matplotlib_part("figure")
    figure = module.Figure(figsize=(width, height), dpi=160, layout="constrained")
    figure.get_layout_engine().set(h_pad=0.08, w_pad=0.08)
    return figure


def save_figure(figure: Any, path: Path, dpi: float | str = "figure") -> None:
    """Write a figure to a file; after an error the older file is intact."""
    write_bytes(path, _figure_bytes(figure, path.suffix[1:].lower(), dpi))


def _figure_bytes(figure: Any, format: str, dpi: float | str) -> bytes:  # noqa: A002 - as matplotlib
    date = {"svg": "Date", "pdf": "CreationDate"}.get(format)  # omitted, so that bytes are equal
    content = BytesIO()
    with figure_style(), warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", message=_MISSING_GLYPH)
        figure.savefig(content, format=format, dpi=dpi, metadata={date: None} if date else None)
    missing = [w for w in caught if re.match(_MISSING_GLYPH, str(w.message))]
    for warning in (w for w in caught if w not in missing):
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    if missing and format != "svg":  # the viewer of an SVG uses its own fonts
        warnings.warn(
            "no installed font has all characters of the figure, so some are drawn as boxes: "
            "install Noto Sans CJK (fonts-noto-cjk) or Symbola (fonts-symbola)",
            DowiseWarning,
            stacklevel=3,
        )
    return content.getvalue()


def check_path(path: str | Path, folder_to_be: Path | None = None) -> Path:
    """Validate the path of a picture before anything is computed for it.

    `folder_to_be` need not exist yet.
    """
    path = Path(path)
    endings = [f".{ending}" for ending in _FORMATS]
    if path.suffix.lower() not in endings:
        raise DowiseError(
            f"can't tell the format of the picture {str(path)!r} by its ending: "
            f"use one of {', '.join(endings)}",
            code="unsupported-format",
        )
    if path.is_dir():
        raise DowiseError(
            f"can't write the picture {str(path)!r}: it is a folder", code="unwritable-file"
        )
    if not path.parent.is_dir() and path.parent != folder_to_be:
        raise DowiseError(
            f"can't write the picture {str(path)!r}: there is no folder {str(path.parent)!r}",
            code="unwritable-file",
        )
    matplotlib_part("figure")
    return path


class SeriesStyle(NamedTuple):
    """Colour, dashes and marker of a line in a chart."""

    colour: str
    dashes: Any
    marker: str = "o"

    @classmethod
    def from_index(cls, index: int) -> SeriesStyle:
        """Return the style of the line with this index; the first 56 are different."""
        cycle, i = divmod(index, len(COLOURS))
        return cls(COLOURS[i], DASHES[cycle % len(DASHES)], _MARKERS[cycle % len(_MARKERS)])


def finish_axes(
    axes: Any, title: str, xlabel: str = "", grid: str = "y", size: float = 9.5
) -> None:
    """Set the title, the label and the frame that all charts share."""
    axes.set_title(title, fontsize=size, color=INK, loc="left", parse_math=False)
    axes.set_xlabel(xlabel, fontsize=size - 1, color=INK)
    axes.tick_params(labelsize=size - 1, colors=INK)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)


def label_ends(axes: Any, ends: Iterable[tuple[float, str, str]], distance: float) -> None:
    """Write names at the right ends of lines, (height, name, colour), without overlap."""
    ends, bottom = sorted(ends), axes.get_ylim()[0]
    heights = [max(end, bottom + i * distance) for i, (end, _, _) in enumerate(ends)]
    for height, (_, name, colour) in zip(separate(heights, distance), ends, strict=True):
        axes.annotate(
            name,
            (1.01, height),
            xycoords=("axes fraction", "data"),
            color=colour,
            va="center",
            fontsize=8.5,
            annotation_clip=False,
            parse_math=False,
        )


def separate(heights: Sequence[float], distance: float) -> list[float]:
    """Move sorted heights as little as possible so that neighbours have at least this distance.

    Neighbours that are too close are moved together, up and down by the same total.

    >>> separate([0.0, 1.0, 1.0, 5.0], 0.5)
    [0.0, 0.75, 1.25, 5.0]
    """
    groups: list[tuple[float, int]] = []  # mean of height - i * distance, and size
    for i, height in enumerate(heights):
        mean, size = height - i * distance, 1
        while groups and groups[-1][0] > mean:
            mean_below, size_below = groups.pop()
            total = size + size_below
            mean, size = (mean * size + mean_below * size_below) / total, total
        groups.append((mean, size))
    flat = [mean for mean, size in groups for _ in range(size)]
    return [mean + i * distance for i, mean in enumerate(flat)]


# -- pictures of graphs -------------------------------------------------------------------------


def render(picture: GraphPicture, format: str = "svg") -> bytes:  # noqa: A002 - as matplotlib
    """Return the picture as the bytes of a file; equal pictures have equal bytes.

    Parameters
    ----------
    picture : GraphPicture
    format : {"svg", "png", "pdf"}
        A PNG has 200 dots per inch, or fewer if it would have more than 6000 pixels on a side.

    Returns
    -------
    bytes

    Raises
    ------
    DowiseError
        If the format is unknown ("unsupported-format").
    MissingExtraError
        If matplotlib is not installed.

    Examples
    --------
    >>> from dowise import load_problem
    >>> from dowise.plotting import picture
    >>> render(picture(load_problem("healthcare")), "png")[1:4]
    b'PNG'
    """
    if format not in _FORMATS:
        raise DowiseError(
            f"unknown format {format!r} of a picture: use one of {', '.join(_FORMATS)}",
            code="unsupported-format",
        )
    with figure_style():
        figure = _graph_figure(picture)
    dpi = min(_DPI, _MAX_PIXELS / max(figure.get_size_inches()))
    return _figure_bytes(figure, format, dpi)


def draw(picture: GraphPicture, path: str | Path) -> None:
    """Write the picture as SVG, PNG or PDF, by the ending of the path.

    Parameters
    ----------
    picture : GraphPicture
    path : str or Path
        After an error an older file is intact.

    Raises
    ------
    DowiseError
        If the ending is unknown ("unsupported-format") or the file can't be written
        ("unwritable-file").
    MissingExtraError
        If matplotlib is not installed.

    Examples
    --------
    >>> from dowise import load_problem
    >>> from dowise.plotting import picture
    >>> draw(picture(load_problem("healthcare")), "graph.svg")  # doctest: +SKIP
    """
    path = check_path(path)
    write_bytes(path, render(picture, path.suffix[1:].lower()))


def _graph_figure(picture: GraphPicture) -> Any:
    """Draw the picture on axes that fill the figure; their unit is an em."""
    left, top, right, bottom = picture.layout.bounds
    title = printable(picture.title or "")
    rows = _legend_rows(picture.legend, max(right - left, _MIN_LEGEND_WIDTH))

    width = max([right - left, 1.4 * text_width(title), *(row[-1][2] for row in rows)])
    middle = (left + right) / 2
    x0, x1 = middle - width / 2 - _MARGIN, middle + width / 2 + _MARGIN
    y0 = top - _MARGIN - (3.0 if title else 0.0)
    y1 = bottom + _MARGIN + 1.2 + _LEGEND_ROW * len(rows)

    em = _FONT_SIZE / 72
    size = (x1 - x0) * em, (y1 - y0) * em
    figure = matplotlib_part("figure").Figure(figsize=size, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(x0, x1), ylim=(y1, y0))
    axes.set_axis_off()
    if title:
        _write(axes, middle, y0 + _MARGIN, title, _TITLE_SIZE, color="#1b263b")
    for edge in picture.edges:
        _draw_edge(axes, edge)
    for variable in picture.variables:
        _draw_variable(axes, variable)
    for i, row in enumerate(rows):
        y = bottom + _MARGIN + 1.9 + _LEGEND_ROW * i
        for key, start, _ in row:
            x = middle - row[-1][2] / 2 + start
            sample = legend_sample(key, x + SWATCH_WIDTH / 2, y)
            if isinstance(sample, EdgeShape):
                _draw_edge(axes, sample)
            else:
                _draw_variable(axes, sample)
            x += SWATCH_WIDTH + _LEGEND_GAP
            _write(axes, x, y, LABELS[key], _LEGEND_SIZE, ha="left", color=EDGE_COLOUR)
    return figure


def _legend_rows(keys: Iterable[str], width: float) -> list[list[tuple[str, float, float]]]:
    """Return rows of (key, start, end) that are no wider than `width` if possible."""
    rows: list[list[tuple[str, float, float]]] = []
    for key in keys:
        size = SWATCH_WIDTH + _LEGEND_GAP + _LEGEND_SIZE * text_width(LABELS[key])
        start = rows[-1][-1][2] + 1.2 if rows else 0.0
        if not rows or start + size > width:
            rows.append([(key, 0.0, size)])
        else:
            rows[-1].append((key, start, start + size))
    return rows


def _draw_variable(axes: Any, shape: VariableShape) -> None:
    box, style = shape.box, shape.style
    fills = ("#ffffff", style.fill) if style.is_double else (style.fill,)
    for outline, fill in zip(shape.outlines, fills, strict=True):
        # Closing requires a point too, which is ignored.
        steps = [(_PATH_CODES[step], p) for step, points in outline for p in points or [(0.0, 0.0)]]
        _add_path(axes, steps, fill, style.line, 1.5, style.dashes)
    if shape.name:
        _write(axes, box.x, box.y, shape.name, color=style.text)


def _draw_edge(axes: Any, edge: EdgeShape) -> None:
    (points, heads), style = edge.line_and_heads, edge.style
    for head in heads:
        triangle = matplotlib_part("patches").Polygon
        axes.add_patch(triangle(head, facecolor=style.colour, edgecolor="none", zorder=1.5))
    start, *curves = points
    steps = [(1, start), *((4, point) for point in curves)]
    _add_path(axes, steps, "none", style.colour, style.width, style.dashes, zorder=1.4)
    if style.label:
        axes.text(
            *edge.middle,
            style.label,
            ha="center",
            va="center",
            fontsize=_EDGE_LABEL_SIZE * _FONT_SIZE,
            color=style.colour,
            weight="bold",
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
            zorder=1.6,
        )


def _add_path(
    axes: Any,
    steps: Sequence[tuple[int, tuple[float, float]]],
    fill: str,
    colour: str,
    width: float,
    dashes: tuple[float, ...],
    zorder: float = 1.0,
) -> None:
    path = matplotlib_part("path").Path([point for _, point in steps], [code for code, _ in steps])
    patch = matplotlib_part("patches").PathPatch(
        path,
        facecolor=fill,
        edgecolor=colour,
        linewidth=width,
        linestyle=(0.0, dashes) if dashes else "solid",
        capstyle="butt",
        zorder=zorder,
    )
    axes.add_patch(patch)


def _write(axes: Any, x: float, y: float, text: str, size: float = 1.0, **style: Any) -> None:
    """Write text whose capitals are centred at y, whatever letters extend below the line."""
    style = {"ha": "center", "fontsize": size * _FONT_SIZE} | style
    # parse_math would read a name with two dollar signs as a formula.
    axes.text(x, y + _HALF_CAPITAL * size, printable(text), parse_math=False, **style)
