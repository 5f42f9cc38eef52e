"""The picture for web pages: well-formed whatever the names are, without styles, and readable."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_code
from support.strategies import cases, examples

import dowise
from dowise import CausalGraph, Problem, load_problem
from dowise.plotting import picture
from dowise.plotting.svg import inline_svg, legend

SVG = "{http://www.w3.org/2000/svg}"
SHEET = Path(dowise.__file__).parents[1] / "dowise_web" / "static" / "graph.css"
HOSTILE = (
    "<script>alert(1)</script>",
    "</title></svg><img src=x onerror=alert(1)>",
    '"\' onload="alert(1)',
    "]]>&amp;&#60;",
    "因果関係",
    "👩‍👩‍👧",
    "n" * 200,
    "a\nb\tc\x00d\x1b\ud800\uffff",
)
SHOP = Problem(
    CausalGraph.parse(
        "Season -> Price -> Sales; Season -> Sales; Price <-> Sales; Weather ?-> Sales; "
        "Weather <?> Price; Weather -> Staff -> Sales; Shelf -> Price"
    ),
    "Sales",
    context="Season",
    non_manipulable="Weather",
    name="shop",
)


def shop():
    edges = {"Weather -> Sales": 0.125, "Price <-> Sales": 1.0}
    return picture(SHOP, edges, ["Shelf -> Sales", "Season <-> Staff"])


def parsed(drawn, link_of=None):
    return ElementTree.fromstring(inline_svg(drawn, link_of))


def edges_of(root):
    """Every edge by its title."""
    return {
        group.find(f"{SVG}title").text: group
        for group in root.iter(f"{SVG}g")
        if "edge" in group.get("class", "").split() and group.get("role") == "img"
    }


def line_of(edge):
    return next(path for path in edge.iter(f"{SVG}path") if path.get("class") == "edge-line")


# -- names --------------------------------------------------------------------------------------


def hostile_problem(names):
    effect, *causes = names
    graph = CausalGraph([(cause, effect) for cause in causes], variables=names)
    return Problem(graph, effect, name=names[-1])


def test_hostile_names_are_text_and_nothing_else():
    drawn = picture(hostile_problem(HOSTILE))
    root = parsed(drawn, lambda name: {"href": "#", "data-variable": name})
    assert {element.tag.removeprefix(SVG) for element in root.iter()} == {
        "svg", "g", "a", "title", "path", "text",
    }  # fmt: skip
    written = [element.text for element in root.iter(f"{SVG}text")]
    for name in HOSTILE[:-1]:
        assert name in written
    assert "a b c d" in written
    kept = [element.get("data-variable") for element in root.iter(f"{SVG}a")]
    # What XML has no way to say is replaced, the rest reads back as it was.
    assert sorted(kept) == sorted([*HOSTILE[:-1], "a\nb\tc\ufffdd\ufffd\ufffd\ufffd"])


names_strategy = st.lists(
    st.text(st.characters(codec=None), min_size=1, max_size=12).filter(str.strip),
    min_size=2, max_size=4, unique=True,
)  # fmt: skip


@examples(150)
@given(names_strategy)
def test_any_name_gives_a_well_formed_text(names):
    drawn = picture(hostile_problem(names))
    root = parsed(drawn, lambda name: {"href": f"?{name}", "data-variable": name})
    assert len(list(root.iter(f"{SVG}a"))) == len(names)
    assert len(edges_of(root)) >= 1 and "style" not in "".join(e.tag for e in root.iter())
    inline_svg(drawn, lambda name: {"href": f"?{name}"}).encode()


@examples(40)
@given(cases(marked=True))
def test_every_variable_and_every_edge_is_drawn_once(case):
    graph, reward, context, hidden = case
    drawn = picture(Problem(graph, reward, context, hidden))
    root = parsed(drawn)
    names = [e.text for e in root.iter(f"{SVG}text") if e.get("class") == "variable-name"]
    assert sorted(names) == sorted(graph.variables)
    assert len(edges_of(root)) == len(graph.edge_texts)


# -- what may stand in it -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["healthcare", "alarm", "task3"])
def test_nothing_in_it_is_a_style_a_script_or_an_id(name):
    text = inline_svg(picture(load_problem(name)), lambda name: {"href": f"#{name}"})
    root = ElementTree.fromstring(text)
    attributes = {key for element in root.iter() for key in element.attrib}
    assert attributes <= {
        "aria-hidden", "aria-label", "class", "d", "fill", "font-size", "height", "href", "opacity",
        "role", "rx", "stroke-dasharray", "stroke-width", "text-anchor", "viewBox", "width", "x",
        "y",
    }  # fmt: skip
    assert not re.search("#[0-9a-f]{6}|rgb", text)


def test_the_style_sheet_knows_every_class():
    classes = set()
    for drawn in (shop(), picture(load_problem("alarm"))):
        texts = [inline_svg(drawn, lambda _: {"href": "#"}), *(one.sample for one in legend(drawn))]
        classes |= {c for text in texts for own in re.findall('class="([^"]*)"', text)
                    for c in own.split()}  # fmt: skip
    sheet = SHEET.read_text(encoding="utf-8")
    # What is manipulable, a plain arrow and a doubtful one look as variables and edges do.
    plain = {"role-manipulable", "edge-arrow", "edge-doubtful"}
    assert classes - plain <= set(re.findall(r"\.([a-z_-]+)", sheet))
    assert plain <= classes
    assert "@media print" in sheet


def themes():
    """The colours of the style sheet by name, in light and in dark."""
    sheet = SHEET.read_text(encoding="utf-8")
    light, rest = sheet.split("@media screen and (prefers-color-scheme: dark)")
    dark = rest.partition("/* --")[0]
    return [
        dict(re.findall(r"--graph-([a-z-]+):[^;]*?#([0-9a-f]{6})", block))
        for block in (light, dark)
    ]


def contrast(one, other):
    """The ratio of WCAG 2: 4.5 for text, 3 for what is drawn."""

    def brightness(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((brightness(one), brightness(other)))
    return (high + 0.05) / (low + 0.05)


def test_in_both_themes_everything_stands_out():
    """Checkers of pages do not see the colours of what is drawn."""
    light, dark = themes()
    assert {*light} == {*dark}
    for theme in (light, dark):
        for role in ("settable", "fixed", "context", "reward"):
            assert contrast(theme[f"{role}-text"], theme[f"{role}-fill"]) >= 4.5
            assert contrast(theme[f"{role}-line"], theme["paper"]) >= 3
        for kind in ("edge", "hidden", "suspected"):
            assert contrast(theme[kind], theme["paper"]) >= 4.5
        assert contrast(theme["focus"], theme["paper"]) >= 3


def test_the_same_picture_gives_the_same_text():
    assert inline_svg(shop()) == inline_svg(shop())
    assert inline_svg(shop()) != inline_svg(picture(SHOP))


def test_it_needs_no_drawing_library():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from dowise import load_problem\n"
        "from dowise.plotting.scene import picture\n"
        "from dowise.plotting.svg import inline_svg, legend\n"
        "drawn = picture(load_problem('task1'))\n"
        "assert inline_svg(drawn) and legend(drawn)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# -- roles --------------------------------------------------------------------------------------


def outlines(root):
    """What each variable's outline is made of."""
    return {
        group.find(f"{SVG}text").text: [
            (re.sub("[^A-Z]", "", path.get("d")), path.get("stroke-dasharray") is not None)
            for path in group.findall(f"{SVG}path")
        ]
        for group in root.iter()
        if "variable" in group.get("class", "").split()
    }


def test_roles_differ_in_class_and_in_outline():
    root = parsed(shop())
    found = outlines(root)
    assert found["Price"] == [("MQLQLQLQZ", False)]
    assert found["Weather"] == [("MLLLZ", True)]
    assert found["Season"] == [("MLLLLLLLZ", False)]
    assert found["Sales"] == [("MQLQLQLQZ", False)] * 2
    classes = {g.find(f"{SVG}text").text: g.get("class") for g in root.iter(f"{SVG}g")
               if g.get("class", "").startswith("variable")}  # fmt: skip
    assert classes == {
        "Price": "variable role-manipulable", "Sales": "variable role-reward",
        "Season": "variable role-context", "Shelf": "variable role-manipulable",
        "Staff": "variable role-manipulable", "Weather": "variable role-non_manipulable",
    }  # fmt: skip


def test_the_legend_has_what_occurs_with_a_sample_of_each():
    entries = legend(shop())
    assert [(entry.key, entry.label) for entry in entries] == [
        ("manipulable", "manipulable"),
        ("non_manipulable", "non-manipulable"),
        ("context", "context"),
        ("reward", "reward"),
        ("hidden", "hidden common cause"),
        ("doubtful", "doubtful"),
        ("doubtful_hidden", "doubtful hidden cause"),
        ("suspected", "suspected"),
    ]
    for entry in entries:
        root = ElementTree.fromstring(entry.sample)
        assert root.get("aria-hidden") == "true"
        assert len(list(root.iter(f"{SVG}path"))) == (
            1 if entry.key in {"manipulable", "non_manipulable", "context"} else 2
        )
    plain = Problem(CausalGraph.parse("X -> Y"), "Y")
    assert [entry.key for entry in legend(picture(plain))] == ["manipulable", "reward"]


# -- links --------------------------------------------------------------------------------------


def test_without_links_it_is_an_image_and_with_them_a_group():
    image, group = parsed(shop()), parsed(shop(), lambda _: {"href": "#"})
    assert image.get("role") == "img" and group.get("role") == "group"
    assert image.get("aria-label") == "Causal graph of shop: 6 variables, 11 edges"
    labelled = inline_svg(shop(), label='Of "ward" & <7>')
    assert ElementTree.fromstring(labelled).get("aria-label") == 'Of "ward" & <7>'
    assert not list(image.iter(f"{SVG}a"))


def test_a_variable_is_a_link_with_the_attributes_that_the_page_gives():
    root = parsed(shop(), lambda name: {"href": f"?variable={name}", "hx-get": f"/f/{name}&x"})
    sales = next(a for a in root.iter(f"{SVG}a") if a.get("href") == "?variable=Sales")
    assert sales.get("hx-get") == "/f/Sales&x"
    assert sales.get("aria-label") == "Sales, reward"
    assert sales.get("tabindex") is None  # a link needs none
    own = parsed(shop(), lambda name: {"href": "#", "aria-label": f"the factor of {name}"})
    assert "the factor of Shelf" in [a.get("aria-label") for a in own.iter(f"{SVG}a")]


def test_without_an_address_it_is_a_button_that_the_keyboard_reaches():
    root = parsed(shop(), lambda name: {"data-variable": name})
    buttons = [g for g in root.iter(f"{SVG}g") if g.get("role") == "button"]
    assert [b.get("tabindex") for b in buttons] == ["0"] * 6
    assert {b.get("data-variable") for b in buttons} == {*SHOP.graph.variables}


@pytest.mark.parametrize("name", ["style", "class", "on click", "x><script", ""])
def test_attributes_that_would_break_it_are_refused(name):
    with raises_code("invalid-input", repr(name)):
        inline_svg(shop(), lambda _: {name: "1"})


# -- edges --------------------------------------------------------------------------------------


def test_edges_say_what_they_are_and_how_likely():
    assert {*edges_of(parsed(shop()))} == {
        "Price -> Sales",
        "Season -> Price",
        "Season -> Sales",
        "Shelf -> Price",
        "Staff -> Sales",
        "Weather -> Staff",
        "Weather -> Sales, doubtful, there with probability 12 %",
        "Price <-> Sales, hidden common cause, there with probability 100 %",
        "Price <-> Weather, hidden common cause, doubtful",
        "Shelf -> Sales, suspected: the graph lacks it",
        "Season <-> Staff, hidden common cause, suspected: the graph lacks it",
    }
    words = [e.text for e in parsed(shop()).iter(f"{SVG}text") if e.get("class") == "edge-label"]
    assert sorted(words) == ["!", "!", "100 %", "12 %", "?"]


@pytest.mark.parametrize(
    ("chance", "words"), [(0.0, "0 %"), (0.001, "<1 %"), (0.994, "99 %"), (0.999, ">99 %")]
)
def test_what_is_not_certain_does_not_look_so(chance, words):
    edges = edges_of(parsed(picture(SHOP, {"Weather -> Sales": chance})))
    assert f"Weather -> Sales, doubtful, there with probability {words}" in edges


def test_the_likelier_the_wider_and_the_stronger():
    chances, widths, strengths = (0.0, 0.3, 0.7, 1.0), [], []
    for chance in chances:
        edges = edges_of(parsed(picture(SHOP, {"Weather -> Sales": chance})))
        edge = next(edges[title] for title in edges if title.startswith("Weather -> Sales"))
        widths.append(float(line_of(edge).get("stroke-width")))
        strengths.append(float(edge.find(f"{SVG}g").get("opacity", 1)))
    assert widths == sorted(set(widths)) and widths[0] > 0.5
    assert strengths == sorted(set(strengths)) and strengths[0] > 0.4 and strengths[-1] == 1


def test_doubtful_edges_are_dashed_and_hidden_causes_have_two_heads():
    edges = edges_of(parsed(shop()))

    def looks(start):
        edge = next(edges[title] for title in edges if title.startswith(start))
        head = next(p for p in edge.iter(f"{SVG}path") if p.get("class") == "edge-head")
        is_dashed = line_of(edge).get("stroke-dasharray") is not None
        return is_dashed, head.get("d").count("M"), edge.get("class").split()[1:]

    assert looks("Price -> Sales") == (False, 1, ["edge-arrow"])
    assert looks("Weather -> Sales") == (True, 1, ["edge-arrow", "edge-doubtful"])
    assert looks("Price <-> Sales") == (True, 2, ["edge-hidden"])
    assert looks("Price <-> Weather") == (True, 2, ["edge-hidden", "edge-doubtful"])
    assert looks("Shelf -> Sales") == (False, 1, ["edge-arrow", "edge-suspected"])
    assert looks("Season <-> Staff") == (True, 2, ["edge-hidden", "edge-suspected"])


def test_arrowheads_touch_the_boxes():
    root = parsed(picture(Problem(CausalGraph.parse("X -> Y"), "Y")))

    def xs(part):
        path = next(p for p in root.iter(f"{SVG}path") if p.get("class") == part)
        return [float(pair.split(",")[0]) for pair in re.findall(r"[-\d.]+,[-\d.]+", path.get("d"))]

    boxes = [p for p in root.iter(f"{SVG}path") if p.get("class") == "variable-box"]
    reward = [float(x) for x in re.findall(r"([-\d.]+),", boxes[1].get("d"))]
    assert max(xs("edge-head")) == pytest.approx(min(reward), abs=0.02)
    assert max(xs("edge-line")) < min(reward)


# -- size ---------------------------------------------------------------------------------------


def test_everything_lies_within_the_view():
    for drawn in (shop(), picture(load_problem("alarm"))):
        root = parsed(drawn)
        left, top, width, height = map(float, root.get("viewBox").split())
        for path in root.iter(f"{SVG}path"):
            # The handles of curves may lie outside; ends do not.
            ends = [path.get("d").split()[0], path.get("d").split()[-1]]
            for x, y in re.findall(r"([-\d.]+),([-\d.]+)", " ".join(ends)):
                assert left <= float(x) <= left + width and top <= float(y) <= top + height


def test_wide_pictures_are_marked_so_that_they_are_not_shrunk_beyond_reading():
    small, vast = parsed(shop()), parsed(picture(load_problem("alarm")))
    assert small.get("class") == "graph" and vast.get("class") == "graph graph-vast"
    wide = Problem(CausalGraph.parse("A -> B -> C -> D -> E -> F -> G -> Y"), "Y")
    assert parsed(picture(wide)).get("class") == "graph graph-wide"
    for root, em in ((small, 16), (vast, 10)):
        _, _, width, height = map(float, root.get("viewBox").split())
        assert float(root.get("width")) == pytest.approx(width * em / 16, abs=0.02)
        assert float(root.get("height")) == pytest.approx(height * em / 16, abs=0.02)
