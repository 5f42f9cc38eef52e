"""SVG writer for web pages, without matplotlib.

The markup has no colours and no inline styles, so it can be part of a page whose
Content-Security-Policy forbids them. Shapes have style classes, and the style sheet of the page
defines their look in light and dark themes and in print. Every name is escaped.

>>> from dowise import load_problem
>>> from dowise.plotting import picture
>>> text = inline_svg(picture(load_problem("task1")), lambda name: {"href": f"#{name}"})
>>> text.splitlines()[-2]                       # doctest: +ELLIPSIS
'<a class="variable role-non_manipulable" aria-label="Z, non-manipulable" href="#Z">...</a>'
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape

from dowise._core.document import pluralize
from dowise.errors import DowiseError
from dowise.plotting.layout import Box, Point, text_width
from dowise.plotting.scene import (
    LABELS,
    SWATCH_HEIGHT,
    SWATCH_WIDTH,
    EdgeShape,
    GraphPicture,
    VariableShape,
    legend_sample,
    printable,
)

LinkOf = Callable[[str], Mapping[str, str]]
"""Returns the attributes of a variable's link: a link with `href`, a button without it."""

_NAMESPACE = "http://www.w3.org/2000/svg"
_EM = 16.0  # units of the viewBox per em of the layout
_POINT = _EM / 12  # units of the viewBox per point of a line's width
_MARGIN = 0.6
_OUTLINE_WIDTH = 1.5  # points
_HALF_CAPITAL = 0.36
_LABEL_SIZE, _LABEL_HEIGHT, _LABEL_PADDING = 0.75, 0.9, 0.15
_MIN_DASH_WIDTH = 1.2  # points; dashes of a thinner line would look continuous
_HIT_WIDTH = 0.9  # em; width of an edge for a pointer
_MIN_OPACITY = 0.45  # of an edge of probability 0, which must still be visible
# Wider pictures are not readable at the width of a phone, or of a screen.
_WIDE, _VAST = 48.0, 90.0
_VAST_EM = 10.0
_ATTRIBUTE = re.compile(r"[A-Za-z_][\w.:-]*", re.ASCII)
_RESERVED_ATTRIBUTES = ("class", "style")
_PATH_LETTERS = {"move": "M", "line": "L", "curve": "Q", "close": "Z"}
# Not allowed in XML, not even as references.
_INVALID_CHARACTER = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """Entry of a legend: a key in `LABELS`, its label, and a sample as SVG."""

    key: str
    label: str
    sample: str


def inline_svg(
    picture: GraphPicture, link_of: LinkOf | None = None, label: str | None = None
) -> str:
    """Return the picture as an <svg> element; equal pictures have equal texts.

    With `link_of` the element is a group of links, otherwise an image. `label` is its accessible
    name.
    """
    left, top, right, bottom = picture.layout.bounds
    width, height = right - left + 2 * _MARGIN, bottom - top + 2 * _MARGIN
    if label is None:
        title = f" of {picture.title}" if picture.title else ""
        variables = pluralize(len(picture.variables), "variable")
        label = f"Causal graph{title}: {variables}, {pluralize(len(picture.edges), 'edge')}"
    if width <= _WIDE:
        size_class = "graph"
    else:
        size_class = "graph graph-wide" if width <= _VAST else "graph graph-vast"
    em = _EM if width <= _VAST else _VAST_EM
    attributes = {
        "xmlns": _NAMESPACE,
        "class": size_class,
        "role": "img" if link_of is None else "group",
        "aria-label": printable(label),
        "viewBox": _numbers([left - _MARGIN, top - _MARGIN, width, height]),
        "width": _number(width, em),
        "height": _number(height, em),
        "font-size": _number(1.0),
        "text-anchor": "middle",
    }
    # Labels are above all lines. Screen readers use the titles of the edges instead.
    labels = _element("g", {"aria-hidden": "true"}, map(_edge_label, picture.edges))
    elements = [
        *map(_edge, picture.edges),
        labels,
        *(_variable(shape, link_of) for shape in picture.variables),
    ]
    return _element("svg", attributes, ["\n", *(f"{element}\n" for element in elements)])


def legend(picture: GraphPicture) -> tuple[LegendEntry, ...]:
    """Return the entries of a legend: the roles that occur, then the kinds of edges."""
    return tuple(LegendEntry(key, LABELS[key], _sample(key)) for key in picture.legend)


def _sample(key: str) -> str:
    width, height = SWATCH_WIDTH + 0.4, SWATCH_HEIGHT + 0.3
    shape = legend_sample(key, width / 2, height / 2)
    content = [_line_and_heads(shape)] if isinstance(shape, EdgeShape) else _outlines(shape)
    attributes = {
        "xmlns": _NAMESPACE,
        "class": "graph-sample",
        "aria-hidden": "true",
        "viewBox": _numbers((0.0, 0.0, width, height)),
        "width": _number(width),
        "height": _number(height),
    }
    return _element("svg", attributes, [_element("g", _classes(shape), content)])


def _variable(shape: VariableShape, link_of: LinkOf | None) -> str:
    box, title = shape.box, f"{printable(shape.name)}, {LABELS[shape.role]}"
    text = {"class": "variable-name", "x": _number(box.x), "y": _number(box.y + _HALF_CAPITAL)}
    content = [
        _element("title", {}, [_text(title)]),
        *_outlines(shape),
        _element("text", text, [_text(shape.name)]),
    ]
    attributes = _classes(shape)
    if link_of is None:
        return _element("g", attributes, content)
    link = link_of(shape.name)
    for name in link:
        if not _ATTRIBUTE.fullmatch(name) or name in _RESERVED_ATTRIBUTES:
            raise DowiseError(f"{name!r} can't be an attribute of a variable's link")
    if "href" in link:
        return _element("a", {**attributes, "aria-label": title, **link}, content)
    button = {"role": "button", "tabindex": "0", "aria-label": title}
    return _element("g", {**attributes, **button, **link}, content)


def _outlines(shape: VariableShape) -> Iterator[str]:
    line = {"stroke-width": _number(_OUTLINE_WIDTH, _POINT)}
    if shape.style.dashes:
        line["stroke-dasharray"] = _numbers(shape.style.dashes, _POINT * _OUTLINE_WIDTH)
    for part, outline in zip(("variable-box", "variable-inside"), shape.outlines, strict=False):
        path = " ".join(f"{_PATH_LETTERS[step]}{_points(points)}" for step, points in outline)
        yield _element("path", {"class": part, "d": path, **line})


def _edge(edge: EdgeShape) -> str:
    title = [printable(str(edge.name))]
    title += ["hidden common cause"] * edge.name.is_bidirected
    title += ["suspected: the graph lacks it"] * edge.is_suspected
    title += ["doubtful"] * edge.is_doubtful
    if edge.probability is not None:
        title.append(f"there with probability {edge.style.label}")
    hit = {"class": "edge-hit", "d": _path(edge.stroke), "stroke-width": _number(_HIT_WIDTH)}
    content = [
        _element("title", {}, [_text(", ".join(title))]),
        _element("path", hit),
        _line_and_heads(edge),
    ]
    return _element("g", {**_classes(edge), "role": "img"}, content)


def _line_and_heads(edge: EdgeShape) -> str:
    """Write the line and its heads in a group that fades as a whole, so that lines don't show."""
    (points, heads), style = edge.line_and_heads, edge.style
    line = {"class": "edge-line", "d": _path(points), "stroke-width": _number(style.width, _POINT)}
    if style.dashes:
        dash_width = max(style.width, _MIN_DASH_WIDTH)
        line["stroke-dasharray"] = _numbers(style.dashes, _POINT * dash_width)
    probability = 1.0 if edge.probability is None else edge.probability
    opacity = _MIN_OPACITY + (1 - _MIN_OPACITY) * probability
    triangles = " ".join(f"M{_points(head)} Z" for head in heads)
    return _element(
        "g",
        {} if opacity == 1 else {"opacity": _number(opacity, 1.0)},
        [_element("path", line), _element("path", {"class": "edge-head", "d": triangles})],
    )


def _edge_label(edge: EdgeShape) -> str:
    """Write the label of an edge, if it has one, on a background."""
    text = edge.style.label or "!" * edge.is_suspected
    if not text:
        return ""
    x, y = edge.middle
    width = max(_LABEL_SIZE * text_width(text) + _LABEL_PADDING, _LABEL_HEIGHT)
    paper = Box(x, y, width, _LABEL_HEIGHT)
    rectangle = {
        "class": "edge-paper",
        "x": _number(paper.left),
        "y": _number(paper.top),
        "width": _number(paper.width),
        "height": _number(paper.height),
        "rx": _number(0.2),
    }
    position = {
        "class": "edge-label",
        "x": _number(x),
        "y": _number(y + _LABEL_SIZE * _HALF_CAPITAL),
        "font-size": _number(_LABEL_SIZE),
    }
    content = [_element("rect", rectangle), _element("text", position, [_text(text)])]
    return _element("g", _classes(edge), content)


# -- markup -------------------------------------------------------------------------------------


def _classes(shape: VariableShape | EdgeShape) -> dict[str, str]:
    return {"class": " ".join(shape.classes)}


def _element(name: str, attributes: Mapping[str, str], content: Iterable[str] = ()) -> str:
    written = "".join(f' {key}="{_value(value)}"' for key, value in attributes.items())
    return f"<{name}{written}>{''.join(content)}</{name}>"


def _value(text: str) -> str:
    """Escape the value of an attribute; characters that XML forbids are replaced."""
    valid = _INVALID_CHARACTER.sub("\ufffd", text)
    return re.sub("[\t\n\r]", lambda match: f"&#{ord(match[0])};", escape(valid))


def _text(text: str) -> str:
    return escape(printable(text))


def _path(stroke: Iterable[Point]) -> str:
    start, *curves = stroke
    return f"M{_points([start])} C{_points(curves)}"


def _points(points: Iterable[Point]) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in points)


def _numbers(values: Iterable[float], unit: float = _EM) -> str:
    return " ".join(_number(value, unit) for value in values)


def _number(value: float, unit: float = _EM) -> str:
    """Format a length in units of the viewBox, to a hundredth."""
    written = f"{unit * value:.2f}".rstrip("0").rstrip(".")
    return "0" if written == "-0" else written
