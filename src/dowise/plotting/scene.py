"""The picture of a problem: its causal graph, with the role of every variable in colour and shape.

`picture` computes a shape for every variable and every edge, with its style and its style classes.
`dowise.plotting.svg` writes the shapes for web pages, `dowise.plotting.figures` with matplotlib to
files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import dist
from typing import Literal, cast

from dowise.errors import DowiseError
from dowise.graph.edges import EdgeName, prior_of
from dowise.plotting.layout import Box, Layout, Point, Stroke, flatten, layout, line
from dowise.problem.problem import Problem, Role

EDGE_COLOUR, HIDDEN_COLOUR, SUSPECTED_COLOUR = "#3b4252", "#7b4b94", "#d6006e"
SWATCH_WIDTH, SWATCH_HEIGHT = 2.2, 1.3  # em; a sample in the legend
_DOUBTFUL_STRENGTH = 0.72  # share of the colour of a doubtful edge when mixed with white
_MIN_STRENGTH = 0.3  # that share for an edge of probability 0
_DASHED, _DOTTED = (4.0, 2.4), (1.0, 2.0)
_EDGE_WIDTH, _MIN_EDGE_WIDTH, _MAX_EDGE_WIDTH = 1.4, 0.7, 2.6  # points
_HEAD_LENGTH, _HEAD_WIDTH = 0.68, 0.5
_CORNER = 0.4
_INSET = 0.25  # distance between the two lines of a double outline
_JOINERS = "\u200c\u200d"

Command = Literal["move", "line", "curve", "close"]
Outline = Sequence[tuple[Command, tuple[Point, ...]]]
"""Steps that draw an outline; a curve has one handle and its end."""

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
"""Names of roles and kinds of edges in a legend, in its order."""


@dataclass(frozen=True, slots=True)
class VariableStyle:
    """Style of a role: colours on white paper, shape of the corners, outline."""

    line: str
    fill: str
    text: str
    corners: Literal["round", "square", "cut"]
    dashes: tuple[float, ...] = ()
    is_double: bool = False


# Red for what can't be set and orange for the context, as in the paper. The tints differ in
# brightness too.
VARIABLE_STYLES: Mapping[str, VariableStyle] = {
    "manipulable": VariableStyle("#1f4e79", "#ffffff", "#16324f", "round"),
    "non_manipulable": VariableStyle("#c1121f", "#fdeaea", "#8a0d16", "square", (3.5, 1.6)),
    "context": VariableStyle("#d97706", "#ffe3ad", "#6b3a00", "cut"),
    "reward": VariableStyle("#1b263b", "#1b263b", "#ffffff", "round", is_double=True),
}


@dataclass(frozen=True, slots=True)
class VariableShape:
    """Box with the role of its variable."""

    name: str
    role: Role
    box: Box

    @property
    def style(self) -> VariableStyle:
        """Colours and outline of the role."""
        return VARIABLE_STYLES[self.role]

    @property
    def classes(self) -> tuple[str, ...]:
        """Style classes for the page."""
        return "variable", f"role-{self.role}"

    @property
    def outlines(self) -> list[Outline]:
        """The outline, and a second one inside it if the role has a double outline."""
        insets = (0.0, _INSET) if self.style.is_double else (0.0,)
        return [_outline(self.box, self.style.corners, inset) for inset in insets]


@dataclass(frozen=True, slots=True)
class EdgeStyle:
    """Colour on white paper, dashes, width in points, and the label of an edge."""

    colour: str
    dashes: tuple[float, ...] = ()
    width: float = _EDGE_WIDTH
    label: str = ""

    def faded(self, strength: float) -> EdgeStyle:
        """Mix the colour with white; transparency would show where lines meet heads."""
        parts = (int(self.colour[i : i + 2], 16) for i in (1, 3, 5))
        mixed = (round(255 + strength * (part - 255)) for part in parts)
        return replace(self, colour="#" + "".join(f"{part:02x}" for part in mixed))


@dataclass(frozen=True, slots=True)
class EdgeShape:
    """Stroke with one arrowhead or two.

    `probability` is that of the edge, if known. A suspected edge is not in the graph and not drawn
    as doubtful.
    """

    name: EdgeName
    stroke: Stroke
    is_doubtful: bool = False
    is_suspected: bool = False
    probability: float | None = None

    @property
    def style(self) -> EdgeStyle:
        """Style by kind; an edge with a higher probability is thicker and darker."""
        is_bidirected = self.name.is_bidirected
        colour = HIDDEN_COLOUR if is_bidirected else EDGE_COLOUR
        style = EdgeStyle(
            SUSPECTED_COLOUR if self.is_suspected else colour, _DASHED if is_bidirected else ()
        )
        if self.is_doubtful:
            style = replace(style, dashes=_DOTTED, label="?")
        if self.probability is None:
            return style.faded(_DOUBTFUL_STRENGTH) if self.is_doubtful else style
        width = _MIN_EDGE_WIDTH + self.probability * (_MAX_EDGE_WIDTH - _MIN_EDGE_WIDTH)
        style = replace(style, width=width, label=_percent(self.probability))
        return style.faded(_MIN_STRENGTH + (1 - _MIN_STRENGTH) * self.probability)

    @property
    def classes(self) -> tuple[str, ...]:
        """Style classes for the page."""
        classes = ["edge", "edge-hidden" if self.name.is_bidirected else "edge-arrow"]
        classes += ["edge-doubtful"] * self.is_doubtful
        return (*classes, *["edge-suspected"] * self.is_suspected)

    @property
    def kind(self) -> str | None:
        """Key in `LABELS`; None for a plain arrow, which needs no explanation."""
        if self.is_suspected:
            return "suspected"
        if self.is_doubtful:
            return "doubtful_hidden" if self.name.is_bidirected else "doubtful"
        return "hidden" if self.name.is_bidirected else None

    @property
    def line_and_heads(self) -> tuple[Stroke, list[list[Point]]]:
        """The line and the triangles of the heads.

        The line ends inside the heads, or its blunt end would show beside the sharp tip of a head.
        """
        points, heads = list(self.stroke), []
        for tip, inner in ((-1, -4), (0, 3))[: 2 if self.name.is_bidirected else 1]:
            head, points[tip] = _arrowhead(self.stroke[tip], self.stroke[inner])
            heads.append(head)
        return tuple(points), heads

    @property
    def middle(self) -> Point:
        """The point halfway along the stroke, where the label is placed."""
        points = flatten(self.stroke)
        lengths = [dist(a, b) for a, b in pairwise(points)]
        half = sum(lengths) / 2
        for (a, b), length, end in zip(pairwise(points), lengths, accumulate(lengths), strict=True):
            if end >= half and length:
                part = 1 - (end - half) / length
                return a[0] + part * (b[0] - a[0]), a[1] + part * (b[1] - a[1])
        return points[-1]


@dataclass(frozen=True, slots=True)
class GraphPicture:
    """Shapes of all variables and edges of a problem, and its name as the title.

    Attributes
    ----------
    layout : Layout
        Boxes and strokes in em.
    variables : tuple of VariableShape
    edges : tuple of EdgeShape
        Arrows first, then bidirected edges, then edges that the graph lacks.
    title : str or None
    """

    layout: Layout
    variables: tuple[VariableShape, ...]
    edges: tuple[EdgeShape, ...]
    title: str | None

    @property
    def legend(self) -> tuple[str, ...]:
        """Keys in `LABELS` of the roles and kinds of edges that occur, in that order."""
        present = {shape.role for shape in self.variables} | {edge.kind for edge in self.edges}
        return tuple(key for key in LABELS if key in present)


def picture(
    problem: Problem,
    edges: Mapping[str, float] | None = None,
    suspected: Iterable[str] = (),
    soft: Iterable[str] = (),
) -> GraphPicture:
    """Lay out the graph of a problem: causes on the left, the reward on the right.

    Parameters
    ----------
    problem : Problem
    edges : mapping of str to float, optional
        Probabilities of edges such as "X <-> Y". The likelier an edge, the thicker it is drawn.
        Edges that the graph lacks are ignored.
    suspected : iterable of str, optional
        Edges that the graph lacks, drawn in a colour of their own.
    soft : iterable of str, optional
        Edges that the graph lacks, drawn as doubtful unless they are suspected.

    Returns
    -------
    GraphPicture

    Raises
    ------
    DowiseError
        If an edge names an unknown variable ("unknown-variable"), or a suspected or soft edge is
        in the graph ("duplicate-name").

    Examples
    --------
    >>> from dowise import load_problem
    >>> drawn = picture(load_problem("healthcare"))
    >>> drawn.layout.boxes["Diet"].right < drawn.layout.boxes["Recovery"].left
    True
    """
    graph = problem.graph
    probabilities = {str(EdgeName.parse(text)): share for text, share in (edges or {}).items()}
    suspected_edges = [_missing_edge(problem, text) for text in dict.fromkeys(suspected)]
    soft_edges = [_missing_edge(problem, text) for text in dict.fromkeys(soft)]
    extra = [*suspected_edges, *(edge for edge in soft_edges if edge not in suspected_edges)]
    placed = layout(graph, problem.reward, extra)

    def shape(edge: EdgeName, stroke: Stroke) -> EdgeShape:
        text, is_suspected = str(edge), edge in suspected_edges
        # An edge is doubtful if it is less likely than edges of its kind are by default.
        is_doubtful = problem.edge_priors.get(text, 1.0) < prior_of(text)
        return EdgeShape(
            edge,
            stroke,
            is_doubtful=not is_suspected if edge in extra else is_doubtful,
            is_suspected=is_suspected,
            probability=probabilities.get(text),
        )

    return GraphPicture(
        layout=placed,
        variables=tuple(
            VariableShape(name, problem.role(name), box) for name, box in placed.boxes.items()
        ),
        edges=(
            *(shape(EdgeName(a, "->", b), stroke) for (a, b), stroke in placed.directed.items()),
            *(shape(EdgeName(a, "<->", b), stroke) for (a, b), stroke in placed.bidirected.items()),
            *(shape(EdgeName.parse(text), stroke) for text, stroke in placed.extra.items()),
        ),
        title=problem.name,
    )


def legend_sample(key: str, x: float, y: float) -> VariableShape | EdgeShape:
    """Return the sample of a legend's entry, centred at a point."""
    if key in VARIABLE_STYLES:
        return VariableShape("", cast("Role", key), Box(x, y, SWATCH_WIDTH, SWATCH_HEIGHT))
    start, end = (x - SWATCH_WIDTH / 2, y), (x + SWATCH_WIDTH / 2, y)
    return EdgeShape(
        EdgeName("A", "<->" if key in ("hidden", "doubtful_hidden") else "->", "B"),
        (start, *line(start, end)),
        is_doubtful=key in ("doubtful", "doubtful_hidden"),
        is_suspected=key == "suspected",
    )


def printable(text: str) -> str:
    """Return the text on one line; control characters, which SVG forbids, become spaces.

    Characters that join letters or emoji, or keep letters apart, stay.
    """
    return " ".join("".join(c if c.isprintable() or c in _JOINERS else " " for c in text).split())


def _missing_edge(problem: Problem, text: str) -> EdgeName:
    edge = EdgeName.parse(text)
    problem.graph.mask((edge.left, edge.right))
    if str(edge) in problem.graph.edge_texts:
        raise DowiseError(
            f"the graph already has {edge}: remove it from the suspected and soft edges",
            code="duplicate-name",
        )
    return edge


def _percent(probability: float) -> str:
    """Round to whole per cent, but never an uncertain probability to 0 or 100."""
    if 0 < probability < 0.005:
        return "<1 %"
    return ">99 %" if 0.995 < probability < 1 else f"{100 * probability:.0f} %"


def _arrowhead(tip: Point, towards: Point) -> tuple[list[Point], Point]:
    """Return the triangle of an arrowhead, and the point inside it where the line stops."""
    dx, dy = towards[0] - tip[0], towards[1] - tip[1]
    length = (dx * dx + dy * dy) ** 0.5
    dx, dy = dx / length, dy / length
    x, y = tip[0] + _HEAD_LENGTH * dx, tip[1] + _HEAD_LENGTH * dy
    half = _HEAD_WIDTH / 2
    wings = [(x - half * dy, y + half * dx), (x + half * dy, y - half * dx)]
    return [tip, *wings], (tip[0] + 0.9 * (x - tip[0]), tip[1] + 0.9 * (y - tip[1]))


def _outline(box: Box, corners: Literal["round", "square", "cut"], inset: float) -> Outline:
    left, right = box.left + inset, box.right - inset
    top, bottom = box.top + inset, box.bottom - inset
    r = max(_CORNER - inset, 0.1)
    # Start of the rounding, corner, and end of the rounding.
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
