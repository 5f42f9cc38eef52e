"""A picture as SVG for the inside of a web page, without matplotlib.

The text has no colours and no styles: what a thing is stands in its classes, and the page's style
sheet says how that looks, in light, in dark and in print. So it may stand in a page whose
Content-Security-Policy forbids inline styles. Every name is escaped. What happens where somebody
chooses a variable is the page's matter: `link_of` gives the attributes of its link.

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
from dowise.graph.edges import EdgeName
from dowise.plotting.layout import Box, Point, Stroke, line, text_width
from dowise.plotting.scene import (
    INSET,
    LABELS,
    LOOKS,
    SAMPLES,
    Pen,
    Picture,
    halfway,
    head_of,
    outline,
    printable,
)

LinkOf = Callable[[str], Mapping[str, str]]
"""The attributes of a variable's link: with `href` it is a link, without it a button."""

_NAMESPACE = "http://www.w3.org/2000/svg"
_EM = 16.0  # units of the viewBox; one em of the layout
_POINT = _EM / 12  # of a pen's width
_MARGIN = 0.6
_OUTLINE = 1.5  # points
_HALF_CAPITAL = 0.36
_LABEL_SIZE, _LABEL_HEIGHT, _LABEL_PADDING = 0.75, 0.9, 0.15
_LEAST_DASH = 1.2  # points
_HIT = 0.9  # how wide an edge is for a pointer
_FAINTEST = 0.45  # of the opacity of an edge that is hardly there: it must still be seen
# From here on a picture can't be read at the width of a telephone, nor at that of a screen.
_WIDE, _VAST = 48.0, 90.0
_SMALL_EM = 10.0
_SWATCH = Box(1.3, 0.8, 2.2, 1.3)
_ATTRIBUTE = re.compile(r"[A-Za-z_][\w.:-]*", re.ASCII)
_OWN = ("class", "style")
_SAMPLE_CLASSES = {"hidden": "edge-hidden", "doubtful_hidden": "edge-hidden edge-doubtful"}
# Not allowed in XML, not even as references.
_NO_CHARACTER = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """A line of the legend: what is explained, the words, and a sample of it as SVG."""

    key: str
    """A role, or a kind of edges as in `Picture.kinds`."""
    label: str
    sample: str


def inline_svg(picture: Picture, link_of: LinkOf | None = None, label: str | None = None) -> str:
    """The picture as the text of an <svg> element; the same picture gives the same text.

    Without `link_of` it is an image, with it a group of links. `label` is what a screen reader says
    of it as a whole.
    """
    left, top, right, bottom = picture.layout.bounds
    corner = (left - _MARGIN, top - _MARGIN)
    width, height = right - left + 2 * _MARGIN, bottom - top + 2 * _MARGIN
    strokes = list(picture.strokes)
    if label is None:
        title = f" of {picture.title}" if picture.title else ""
        sizes = f"{pluralize(len(picture.roles), 'variable')}, {pluralize(len(strokes), 'edge')}"
        label = f"Causal graph{title}: {sizes}"
    edges = [_edge(picture, text, stroke) for text, stroke in strokes]
    # Above all lines; a screen reader has them from the titles of the edges.
    labels = [_label(picture, text, stroke) for text, stroke in strokes]
    words = _element("g", {"aria-hidden": "true"}, labels)
    variables = (_variable(picture, name, link_of) for name in picture.layout.boxes)
    size, scale = _size(width)
    attributes = {
        "xmlns": _NAMESPACE,
        "class": f"graph {size}".strip(),
        "role": "img" if link_of is None else "group",
        "aria-label": printable(label),
        "viewBox": _numbers([*corner, width, height]),
        "width": _number(width, scale),
        "height": _number(height, scale),
        "font-size": _number(1.0),
        "text-anchor": "middle",
    }
    return _element("svg", attributes, ["\n", *_lines([*edges, words, *variables])])


def _size(width: float) -> tuple[str, float]:
    """The class of a picture so wide, and how large an em is unless the style sheet says else."""
    if width <= _WIDE:
        return "", _EM
    return ("graph-wide", _EM) if width <= _VAST else ("graph-vast", _SMALL_EM)


def legend(picture: Picture) -> tuple[LegendEntry, ...]:
    """What a legend must explain: the roles that occur, then the kinds of edges."""
    return tuple(
        LegendEntry(key, LABELS[key], _sample(key)) for key in (*picture.legend, *picture.kinds)
    )


# -- variables ----------------------------------------------------------------------------------


def _variable(picture: Picture, name: str, link_of: LinkOf | None) -> str:
    box, role = picture.layout.boxes[name], picture.roles[name]
    said = f"{printable(name)}, {LABELS[role]}"
    text = {"class": "variable-name", "x": _number(box.x), "y": _number(box.y + _HALF_CAPITAL)}
    content = [
        _element("title", {}, [_text(said)]),
        *_box(box, role),
        _element("text", text, [_text(name)]),
    ]
    own = {"class": f"variable role-{role}"}
    if link_of is None:
        return _element("g", own, content)
    given = _checked(link_of(name))
    if "href" in given:
        return _element("a", {**own, "aria-label": said, **given}, content)
    button = {"role": "button", "tabindex": "0"}
    return _element("g", {**own, **button, "aria-label": said, **given}, content)


def _box(box: Box, role: str) -> Iterator[str]:
    """The outline of a variable, and the one inside it where the role has two."""
    look = LOOKS[role]
    pen = {"stroke-width": _number(_OUTLINE, _POINT)}
    if look.dashes:
        pen["stroke-dasharray"] = _numbers(look.dashes, _POINT * _OUTLINE)
    for inset in (0.0, INSET)[: 1 + look.double]:
        letters = {"move": "M", "line": "L", "curve": "Q", "close": "Z"}
        steps = outline(box, look.corners, inset)
        path = " ".join(f"{letters[command]}{_points(own)}" for command, own in steps)
        part = "variable-inside" if inset else "variable-box"
        yield _element("path", {"class": part, "d": path, **pen})


def _checked(attributes: Mapping[str, str]) -> Mapping[str, str]:
    for name in attributes:
        if not _ATTRIBUTE.fullmatch(name) or name in _OWN:
            raise DowiseError(f"{name!r} can't be an attribute of a variable's link")
    return attributes


# -- edges --------------------------------------------------------------------------------------


def _edge(picture: Picture, text: str, stroke: Stroke) -> str:
    pen, classes = picture.pens[text], _classes(picture, text)
    says = [printable(text)]
    says += ["hidden common cause"] * ("edge-hidden" in classes)
    says += ["suspected: the graph lacks it"] * ("edge-suspected" in classes)
    says += ["doubtful"] * ("edge-doubtful" in classes)
    says += [] if pen.probability is None else [f"there with probability {pen.label}"]
    hit = {"class": "edge-hit", "d": _path(stroke), "stroke-width": _number(_HIT)}
    content = [
        _element("title", {}, [_text(", ".join(says))]),
        _element("path", hit),
        _drawn(stroke, pen),
    ]
    return _element("g", {"class": " ".join(classes), "role": "img"}, content)


def _classes(picture: Picture, text: str) -> list[str]:
    is_tie = EdgeName.parse(text).is_bidirected
    classes = ["edge", "edge-hidden" if is_tie else "edge-arrow"]
    classes += ["edge-doubtful"] * (text in picture.doubtful)
    return classes + ["edge-suspected"] * (text in picture.suspected)


def _drawn(stroke: Stroke, pen: Pen) -> str:
    """The line and its heads, which fade together: a head must not show the line below it."""
    points, heads = list(stroke), []
    for tip, inner in ((-1, -4), (0, 3))[: 2 if pen.two_heads else 1]:
        head, points[tip] = head_of(stroke[tip], stroke[inner])
        heads.append(f"M{_points(head)} Z")
    line_of = {"class": "edge-line", "d": _path(points), "stroke-width": _number(pen.width, _POINT)}
    if pen.dashes:
        # The dashes of a thin line would look like one line.
        line_of["stroke-dasharray"] = _numbers(pen.dashes, _POINT * max(pen.width, _LEAST_DASH))
    chance = 1.0 if pen.probability is None else pen.probability
    strength = _FAINTEST + (1 - _FAINTEST) * chance
    faded = {} if strength == 1 else {"opacity": _number(strength, 1.0)}
    head_attributes = {"class": "edge-head", "d": " ".join(heads)}
    return _element("g", faded, [_element("path", line_of), _element("path", head_attributes)])


def _label(picture: Picture, text: str, stroke: Stroke) -> str:
    """The word on an edge, if it has one, on a piece of paper of its own."""
    word = picture.pens[text].label or "!" * (text in picture.suspected)
    if not word:
        return ""
    x, y = halfway(stroke)
    width = max(_LABEL_SIZE * text_width(word) + _LABEL_PADDING, _LABEL_HEIGHT)
    paper = Box(x, y, width, _LABEL_HEIGHT)
    rectangle = {
        "class": "edge-paper", "x": _number(paper.left), "y": _number(paper.top),
        "width": _number(paper.width), "height": _number(paper.height), "rx": _number(0.2),
    }  # fmt: skip
    place = {
        "class": "edge-label", "x": _number(x), "y": _number(y + _LABEL_SIZE * _HALF_CAPITAL),
        "font-size": _number(_LABEL_SIZE),
    }  # fmt: skip
    content = [_element("rect", rectangle), _element("text", place, [_text(word)])]
    return _element("g", {"class": " ".join(_classes(picture, text))}, content)


def _sample(key: str) -> str:
    box = _SWATCH
    if key in SAMPLES:
        start, end = (box.left, box.y), (box.right, box.y)
        drawn = _drawn((start, *line(start, end)), SAMPLES[key])
        kind = _SAMPLE_CLASSES.get(key, f"edge-arrow edge-{key}")
        content = [_element("g", {"class": f"edge {kind}"}, [drawn])]
    else:
        content = [_element("g", {"class": f"variable role-{key}"}, _box(box, key))]
    size = {"width": _number(2 * box.x), "height": _number(2 * box.y)}
    attributes = {
        "xmlns": _NAMESPACE,
        "class": "graph-sample",
        "aria-hidden": "true",
        "viewBox": _numbers((0.0, 0.0, 2 * box.x, 2 * box.y)),
        **size,
    }
    return _element("svg", attributes, content)


# -- writing ------------------------------------------------------------------------------------


def _element(name: str, attributes: Mapping[str, str], content: Iterable[str] = ()) -> str:
    written = "".join(f' {key}="{_value(value)}"' for key, value in attributes.items())
    return f"<{name}{written}>{''.join(content)}</{name}>"


def _lines(elements: Iterable[str]) -> Iterator[str]:
    return (f"{element}\n" for element in elements)


def _value(text: str) -> str:
    """An attribute's value that reads back to the last character that XML allows."""
    known = _NO_CHARACTER.sub("\ufffd", text)
    return re.sub("[\t\n\r]", lambda found: f"&#{ord(found[0])};", escape(known))


def _text(text: str) -> str:
    return escape(printable(text))


def _path(stroke: Iterable[Point]) -> str:
    start, *rest = stroke
    return f"M{_points([start])} C{_points(rest)}"


def _points(points: Iterable[Point]) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in points)


def _numbers(values: Iterable[float], unit: float = _EM) -> str:
    return " ".join(_number(value, unit) for value in values)


def _number(value: float, unit: float = _EM) -> str:
    """A length in units of the viewBox, to a hundredth."""
    written = f"{unit * value:.2f}".rstrip("0").rstrip(".")
    return "0" if written == "-0" else written
