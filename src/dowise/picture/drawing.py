"""The picture of a problem: its causal graph, with the role of every variable in colour and shape.

The numbers come first (`picture`), the drawing second, as bytes (`render`) or as a file (`draw`),
so that what is drawn can be tested and drawn otherwise: `dowise.picture.svg` does, for web pages.
`dowise.picture.looks` says what differs by role.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dowise.errors import DowiseError
from dowise.files import write_bytes
from dowise.graph.edges import EdgeName, prior_of
from dowise.picture.fonts import lettered, without_boxes_noticed
from dowise.picture.layout import Layout, layout, text_width
from dowise.picture.library import matplotlib_part
from dowise.picture.looks import INSET, LABELS, LOOKS, SAMPLES, Look, outline, printable
from dowise.picture.pen import EDGE, Pen, draw_edge, pen_for
from dowise.picture.shapes import Box, Stroke, line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dowise.problem.problem import Problem, Role

__all__ = ["Picture", "check_path", "draw", "picture", "render"]

_FORMATS = ("svg", "png", "pdf")
_FONT_SIZE = 12.0  # points; one em of the layout
# Of a PNG. Beyond so many pixels along its longer side a picture gets fewer dots per inch.
_DPI, _MAX_PIXELS = 200.0, 6000
_MARGIN = 2.0
_HALF_CAPITAL = 0.365  # of DejaVu Sans, matplotlib's own font
_SWATCH, _LEGEND_FONT = 2.2, 0.85
# The commands of matplotlib's paths.
_COMMANDS = {"move": 1, "line": 2, "curve": 3, "close": 79}


@dataclass(frozen=True, slots=True)
class Picture:
    """What is to be drawn: the layout, the role of every variable, and a title or none.

    `pens` says how each edge is drawn, by its text, those that are suspected included.
    """

    layout: Layout
    roles: Mapping[str, Role]
    title: str | None
    pens: Mapping[str, Pen]
    doubtful: frozenset[str] = frozenset()
    """The edges that are drawn as doubtful."""

    @property
    def suspected(self) -> frozenset[str]:
        """The edges that the graph lacks and that are not drawn as doubtful."""
        return frozenset(self.layout.extra) - self.doubtful

    @property
    def legend(self) -> tuple[str, ...]:
        """The roles that occur, in the order of the legend."""
        return tuple(role for role in LOOKS if role in self.roles.values())

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of edges that a legend must explain, in its order."""
        ties = {edge for edge in self.pens if EdgeName.parse(edge).is_bidirected}
        found = {
            "hidden": ties - self.doubtful - self.suspected,
            "doubtful": self.doubtful - ties,
            "doubtful_hidden": self.doubtful & ties,
            "suspected": self.suspected,
        }
        return tuple(kind for kind, edges in found.items() if edges)

    @property
    def strokes(self) -> Iterator[tuple[str, Stroke]]:
        """Every edge by its text, arrows first."""
        for (cause, effect), stroke in self.layout.directed.items():
            yield str(EdgeName(cause, "->", effect)), stroke
        for (one, other), stroke in self.layout.bidirected.items():
            yield str(EdgeName(one, "<->", other)), stroke
        yield from self.layout.extra.items()


def picture(
    problem: Problem,
    edges: Mapping[str, float] | None = None,
    suspected: Iterable[str] = (),
    soft: Iterable[str] = (),
) -> Picture:
    """The picture of a problem: causes on the left, the reward on the right.

    `edges` says how likely edges are to be there, by their texts; those are drawn the thicker the
    likelier, and of what the graph lacks nothing is drawn. `suspected` are edges that the graph
    lacks and that are drawn all the same, in a colour of their own; `soft` are such as well, drawn
    as doubtful where they are not suspected.
    """
    graph = problem.graph
    probable = {str(EdgeName.parse(text)): share for text, share in (edges or {}).items()}
    suspects = [_lacked(problem, text) for text in dict.fromkeys(suspected)]
    possible = [_lacked(problem, text) for text in dict.fromkeys(soft)]
    possible = [edge for edge in possible if edge not in suspects]
    doubtful = frozenset(edge for edge in graph.edge_texts if _is_doubtful(problem, edge))
    doubtful |= {*map(str, possible)}
    extra = [*suspects, *possible]
    pens = {
        str(edge): pen_for(
            edge, str(edge) in doubtful, edge in suspects, probability=probable.get(str(edge))
        )
        for edge in (*graph.edges, *extra)
    }
    return Picture(
        layout=layout(graph, problem.reward, extra),
        roles={name: problem.role(name) for name in graph.variables},
        title=problem.name,
        pens=pens,
        doubtful=doubtful,
    )


def _lacked(problem: Problem, text: str) -> EdgeName:
    edge = EdgeName.parse(text)
    problem.graph.mask((edge.one, edge.other))
    if str(edge) in problem.graph.edge_texts:
        raise DowiseError(f"the graph has {edge} already, so leave it out of what it lacks")
    return edge


def _is_doubtful(problem: Problem, edge: str) -> bool:
    """Whether it is less likely than its kind is unless told otherwise."""
    return problem.edge_priors.get(edge, 1.0) < prior_of(edge)


def render(picture: Picture, format: str = "svg") -> bytes:  # noqa: A002 - matplotlib's word
    """The picture as the bytes of an SVG, a PNG or a PDF; the same picture gives the same bytes.

    A PNG has 200 dots per inch, or fewer if it would be more than 6000 pixels wide or high.
    """
    if format not in _FORMATS:
        known = ", ".join(_FORMATS)
        raise DowiseError(f"unknown format {format!r} of a picture: use one of {known}")
    style = _matplotlib("style")
    # The user's own settings must not show in the picture, nor ours outlive it.
    settings = {"svg.hashsalt": "dowise", "svg.fonttype": "none", "font.size": _FONT_SIZE}
    with style.context(["default", settings]), without_boxes_noticed():
        figure = _figure(picture)
        lettered(figure, drawn_by_viewer=format == "svg")
        # A date would make the bytes differ.
        date = {"svg": "Date", "pdf": "CreationDate"}.get(format)
        metadata = {date: None} if date else None
        dpi = min(_DPI, _MAX_PIXELS / max(figure.get_size_inches()))
        content = io.BytesIO()
        figure.savefig(content, format=format, dpi=dpi, metadata=metadata)
    return content.getvalue()


def draw(picture: Picture, path: str | Path) -> None:
    """Write the picture as SVG, PNG or PDF, by the ending of the path; see `render`.

    The file is written whole or not at all: where that fails, an older one stays as it was.
    """
    path = check_path(path)
    content = render(picture, path.suffix[1:].lower())
    try:
        write_bytes(path, content)
    except DowiseError as error:
        # The same reason, but saying that it was the picture.
        reason = getattr(error.__cause__, "strerror", None) or error
        raise DowiseError(f"can't write the picture {str(path)!r}: {reason}") from error


def check_path(path: str | Path, folder_to_be: Path | None = None) -> Path:
    """The path of a picture that can be drawn there, as far as can be told beforehand.

    `folder_to_be` will be there by the time.
    """
    path = Path(path)
    endings = [f".{ending}" for ending in _FORMATS]
    if path.suffix.lower() not in endings:
        raise DowiseError(
            f"can't tell the format of the picture {str(path)!r} by its ending: "
            f"use one of {', '.join(endings)}"
        )
    if path.is_dir():
        raise DowiseError(f"can't write the picture {str(path)!r}: it is a folder")
    if not path.parent.is_dir() and path.parent != folder_to_be:
        raise DowiseError(
            f"can't write the picture {str(path)!r}: there is no folder {str(path.parent)!r}"
        )
    _matplotlib("figure")
    return path


def _matplotlib(module: str) -> Any:
    return matplotlib_part(module, "drawing a picture")


def _figure(picture: Picture) -> Any:
    """A figure without margins of its own, one unit of its axes being one em."""
    figures = _matplotlib("figure")
    left, top, right, bottom = picture.layout.bounds
    title = printable(picture.title or "")
    rows = _legend_rows((*picture.legend, *picture.kinds), max(right - left, 52.0))

    width = max([right - left, 1.4 * text_width(title), *(row[-1][2] for row in rows)])
    shift = (left + right - width) / 2
    x0, x1 = shift - _MARGIN, shift + width + _MARGIN
    y0 = top - _MARGIN - (3.0 if title else 0.0)
    y1 = bottom + _MARGIN + 1.2 + 2.2 * len(rows)

    em = _FONT_SIZE / 72
    figure = figures.Figure(figsize=((x1 - x0) * em, (y1 - y0) * em), facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1), xlim=(x0, x1), ylim=(y1, y0))
    axes.set_axis_off()
    middle = (left + right) / 2
    if title:
        _write(axes, middle, y0 + _MARGIN, title, 1.3, color="#1b263b")
    for edge, stroke in picture.strokes:
        draw_edge(axes, stroke, picture.pens[edge])
    for name, box in picture.layout.boxes.items():
        _draw_box(axes, box, LOOKS[picture.roles[name]])
        _write(axes, box.x, box.y, name, color=LOOKS[picture.roles[name]].text)
    for i, row in enumerate(rows):
        y = bottom + _MARGIN + 1.9 + 2.2 * i
        for entry, start, _ in row:
            _draw_entry(axes, entry, middle - row[-1][2] / 2 + start, y)
    return figure


def _draw_box(axes: Any, box: Box, look: Look) -> None:
    patches = _matplotlib("patches")
    paths = _matplotlib("path")

    def draw_outline(inset: float, fill: str) -> None:
        steps = outline(box, look.corners, inset)
        # Closing takes a point too, which is not looked at.
        pairs = [(command, point) for command, own in steps for point in own or [(0.0, 0.0)]]
        path = paths.Path([point for _, point in pairs], [_COMMANDS[c] for c, _ in pairs])
        dashes = (0.0, look.dashes) if look.dashes else "solid"
        axes.add_patch(
            patches.PathPatch(
                path, facecolor=fill, edgecolor=look.line, linewidth=1.5, linestyle=dashes
            )
        )

    draw_outline(0.0, "#ffffff" if look.double else look.fill)
    if look.double:
        draw_outline(INSET, look.fill)


def _legend_rows(entries: Iterable[str], width: float) -> list[list[tuple[str, float, float]]]:
    """Rows of (entry, start, end), each no wider than it must be."""
    rows: list[list[tuple[str, float, float]]] = []
    for entry in entries:
        size = _SWATCH + 0.6 + _LEGEND_FONT * text_width(LABELS[entry])
        start = rows[-1][-1][2] + 1.2 if rows else 0.0
        if not rows or start + size > width:
            rows.append([(entry, 0.0, size)])
        else:
            rows[-1].append((entry, start, start + size))
    return rows


def _draw_entry(axes: Any, entry: str, x: float, y: float) -> None:
    if entry in SAMPLES:
        end = (x + _SWATCH, y)
        draw_edge(axes, ((x, y), *line((x, y), end)), SAMPLES[entry])
    else:
        _draw_box(axes, Box(x + _SWATCH / 2, y, _SWATCH, 1.3), LOOKS[entry])
    _write(axes, x + _SWATCH + 0.6, y, LABELS[entry], _LEGEND_FONT, ha="left", color=EDGE)


def _write(axes: Any, x: float, y: float, text: str, size: float = 1.0, **style: Any) -> None:
    """Text whose capitals are centred on y, whether or not a letter reaches below the line."""
    style = {"ha": "center", "fontsize": size * _FONT_SIZE} | style
    # parse_math would read a name with two dollar signs as a formula.
    axes.text(x, y + _HALF_CAPITAL * size, printable(text), parse_math=False, **style)
