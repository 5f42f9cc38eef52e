"""The picture of a problem: its causal graph, with the role of every variable in colour and shape.

The numbers come first (`picture`), the drawing second, as bytes (`render`) or as a file (`draw`),
so that what is drawn can be tested and drawn otherwise: `dowise.plotting.svg` does, for web pages.
`dowise.plotting.scene` says what differs by role.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import dist
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dowise._core.files import write_bytes
from dowise.errors import DowiseError
from dowise.graph.edges import EdgeName, prior_of
from dowise.plotting.figures import lettered, matplotlib_part, without_boxes_noticed
from dowise.plotting.layout import Box, Layout, Point, Stroke, flatten, layout, line, text_width

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dowise.problem.problem import Problem, Role


EDGE, HIDDEN, SUSPECTED = "#3b4252", "#7b4b94", "#d6006e"
DOUBTFUL = 0.72  # of the colour of a doubtful edge; the rest is the white of the paper
LABEL_SIZE = 8.0  # points
_DASHED, _DOTTED = (4.0, 2.4), (1.0, 2.0)
_WIDTH, _THIN, _THICK = 1.4, 0.7, 2.6
_FAINT = 0.3  # the colour of an edge that is hardly there
_HEAD_LENGTH, _HEAD_WIDTH = 0.68, 0.5


@dataclass(frozen=True, slots=True)
class Pen:
    """A line in a colour, dashed or not, with a head at its end or one at either end."""

    colour: str
    two_heads: bool = False
    dashes: tuple[float, ...] = ()
    width: float = _WIDTH
    label: str = ""
    probability: float | None = None
    """How likely the edge is to be there, where that is known."""

    def faded(self, strength: float) -> Pen:
        """The same in a paler colour, which has this share of its own; transparency would show
        where lines meet heads."""
        parts = (int(self.colour[i : i + 2], 16) for i in (1, 3, 5))
        mixed = (round(255 + strength * (part - 255)) for part in parts)
        return replace(self, colour="#" + "".join(f"{part:02x}" for part in mixed))


def pen_for(
    edge: EdgeName,
    doubtful: bool = False,
    suspected: bool = False,
    probability: float | None = None,
) -> Pen:
    """The pen of an edge; one with a probability is the thicker the likelier, and says it."""
    tied = edge.is_bidirected
    colour = SUSPECTED if suspected else HIDDEN if tied else EDGE
    pen = Pen(colour, tied, _DASHED if tied else ())
    if doubtful:
        pen = replace(pen, dashes=_DOTTED, label="?").faded(DOUBTFUL)
    if probability is None:
        return pen
    width = _THIN + probability * (_THICK - _THIN)
    percent = _percent(probability)
    pen = Pen(colour, tied, pen.dashes, width, percent, probability)
    return pen.faded(_FAINT + (1 - _FAINT) * probability)


def _percent(probability: float) -> str:
    """In whole per cent; what is not certain does not look so."""
    if 0 < probability < 0.005:
        return "<1 %"
    return ">99 %" if 0.995 < probability < 1 else f"{100 * probability:.0f} %"


def draw_edge(axes: Any, stroke: Stroke, pen: Pen) -> None:
    """Draw one edge, its label in the middle of its way."""
    patches = matplotlib_part("patches")
    paths = matplotlib_part("path")
    points = list(stroke)
    # The line stops inside the head: a line's blunt end would show beside the sharp tip.
    for tip, inner in ((-1, -4), (0, 3))[: 2 if pen.two_heads else 1]:
        head, points[tip] = head_of(stroke[tip], stroke[inner])
        axes.add_patch(patches.Polygon(head, facecolor=pen.colour, edgecolor="none", zorder=1.5))
    commands = [1] + [4] * (len(points) - 1)
    axes.add_patch(
        patches.PathPatch(
            paths.Path(points, commands),
            facecolor="none",
            edgecolor=pen.colour,
            linewidth=pen.width,
            linestyle=(0.0, pen.dashes) if pen.dashes else "solid",
            capstyle="butt",
            zorder=1.4,
        )
    )
    if pen.label:
        x, y = halfway(stroke)
        style = {"ha": "center", "va": "center", "fontsize": LABEL_SIZE, "color": pen.colour}
        paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
        axes.text(x, y, pen.label, weight="bold", bbox=paper, zorder=1.6, **style)


def head_of(tip: Point, towards: Point) -> tuple[list[Point], Point]:
    """The triangle of an arrowhead, and the point inside it where the line should stop."""
    dx, dy = towards[0] - tip[0], towards[1] - tip[1]
    length = (dx * dx + dy * dy) ** 0.5
    dx, dy = dx / length, dy / length
    x, y = tip[0] + _HEAD_LENGTH * dx, tip[1] + _HEAD_LENGTH * dy
    half = _HEAD_WIDTH / 2
    wings = [(x - half * dy, y + half * dx), (x + half * dy, y - half * dx)]
    return [tip, *wings], (tip[0] + 0.9 * (x - tip[0]), tip[1] + 0.9 * (y - tip[1]))


def halfway(stroke: Stroke) -> Point:
    """The point in the middle of the way."""
    points = flatten(stroke)
    lengths = [dist(a, b) for a, b in pairwise(points)]
    half = sum(lengths) / 2
    for (a, b), length, end in zip(pairwise(points), lengths, accumulate(lengths), strict=True):
        if end >= half and length:
            part = 1 - (end - half) / length
            return a[0] + part * (b[0] - a[0]), a[1] + part * (b[1] - a[1])
    return points[-1]


Command = Literal["move", "line", "curve", "close"]

INSET = 0.25
"""How far inside the outer outline the inner one of a double outline runs."""
_CORNER = 0.4
_JOINERS = "\u200c\u200d"


@dataclass(frozen=True, slots=True)
class Look:
    """How a role looks: colours on white paper, the shape of the corners, the outline."""

    line: str
    fill: str
    text: str
    corners: Literal["round", "square", "cut"]
    dashes: tuple[float, ...] = ()
    double: bool = False


# Red for what can't be set and orange for the context, as in the paper. The tints differ in
# brightness too. The legend has this order.
LOOKS: Mapping[str, Look] = {
    "manipulable": Look("#1f4e79", "#ffffff", "#16324f", "round"),
    "non_manipulable": Look("#c1121f", "#fdeaea", "#8a0d16", "square", dashes=(3.5, 1.6)),
    "context": Look("#d97706", "#ffe3ad", "#6b3a00", "cut"),
    "reward": Look("#1b263b", "#1b263b", "#ffffff", "round", double=True),
}
LABELS: Mapping[str, str] = {
    "manipulable": "manipulable",
    "non_manipulable": "non-manipulable",
    "context": "context",
    "reward": "reward",
    "hidden": "hidden common cause",
    "doubtful": "doubtful",
    "doubtful_hidden": "doubtful hidden cause",
    "suspected": "suspected",
}
"""What roles and kinds of edges are called in a legend."""
_ARROW, _TIE = EdgeName("A", "->", "B"), EdgeName("A", "<->", "B")
SAMPLES = {
    "hidden": pen_for(_TIE),
    "doubtful": pen_for(_ARROW, doubtful=True),
    "doubtful_hidden": pen_for(_TIE, doubtful=True),
    "suspected": pen_for(_ARROW, suspected=True),
}
"""The pens of the samples of edges in a legend."""


def outline(
    box: Box, corners: Literal["round", "square", "cut"], inset: float = 0.0
) -> list[tuple[Command, tuple[Point, ...]]]:
    """How to draw the outline of a box, step by step; a curve has one handle and its end."""
    left, right = box.left + inset, box.right - inset
    top, bottom = box.top + inset, box.bottom - inset
    r = max(_CORNER - inset, 0.1)
    # Corner by corner: where its rounding starts, the corner, where the rounding ends.
    turns = [
        ((left, top + r), (left, top), (left + r, top)),
        ((right - r, top), (right, top), (right, top + r)),
        ((right, bottom - r), (right, bottom), (right - r, bottom)),
        ((left + r, bottom), (left, bottom), (left, bottom - r)),
    ]
    steps: list[tuple[Command, tuple[Point, ...]]] = []
    for start, corner, end in turns:
        if corners == "square":
            steps.append(("line", (corner,)))
        elif corners == "cut":
            steps += [("line", (start,)), ("line", (end,))]
        else:
            steps += [("line", (start,)), ("curve", (corner, end))]
    return [("move", steps[0][1]), *steps[1:], ("close", ())]


def printable(text: str) -> str:
    """The text on one line; control characters, which SVG forbids, become spaces.

    Those that join letters or emoji, or keep letters apart, stay.
    """
    return " ".join("".join(c if c.isprintable() or c in _JOINERS else " " for c in text).split())


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
