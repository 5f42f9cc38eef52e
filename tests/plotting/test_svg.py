"""Pictures for web pages: well-formed for any names, without styles, and accessible."""

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


def shop_picture():
    edges = {"Weather -> Sales": 0.125, "Price <-> Sales": 1.0}
    return picture(SHOP, edges, ["Shelf -> Sales", "Season <-> Staff"])


def parsed(drawn, link_of=None):
    return ElementTree.fromstring(inline_svg(drawn, link_of))


def edges_of(root):
    """Return all edges by their titles."""
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


def test_hostile_names_are_only_text():
    drawn = picture(hostile_problem(HOSTILE))
    root = parsed(drawn, lambda name: {"href": "#", "data-variable": name})
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert tags == {"svg", "g", "a", "title", "path", "text"}
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert {*HOSTILE[:-1], "a b c d"} <= {*texts}
    attributes = [element.get("data-variable") for element in root.iter(f"{SVG}a")]
    # Characters that XML forbids are replaced.
    assert sorted(attributes) == sorted([*HOSTILE[:-1], "a\nb\tc\ufffdd\ufffd\ufffd\ufffd"])


names_strategy = st.lists(
    st.text(st.characters(codec=None), min_size=1, max_size=12).filter(str.strip),
    min_size=2,
    max_size=4,
    unique=True,
)


@examples(150)
@given(names_strategy)
def test_any_names_give_well_formed_xml(names):
    drawn = picture(hostile_problem(names))
    root = parsed(drawn, lambda name: {"href": f"?{name}", "data-variable": name})
    assert len(list(root.iter(f"{SVG}a"))) == len(names)
    assert len(edges_of(root)) >= 1 and "style" not in "".join(e.tag for e in root.iter())
    inline_svg(drawn, lambda name: {"href": f"?{name}"}).encode()


@examples(40)
@given(cases(marked=True))
def test_variables_and_edges_are_drawn_once(case):
    graph, reward, context, hidden = case
    drawn = picture(Problem(graph, reward, context, hidden))
    root = parsed(drawn)
    names = [e.text for e in root.iter(f"{SVG}text") if e.get("class") == "variable-name"]
    assert sorted(names) == sorted(graph.variables)
    assert len(edges_of(root)) == len(graph.edge_texts)


# -- markup -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["healthcare", "alarm", "task3"])
def test_markup_has_no_styles_scripts_or_ids(name):
    text = inline_svg(picture(load_problem(name)), lambda name: {"href": f"#{name}"})
    root = ElementTree.fromstring(text)
    attributes = {key for element in root.iter() for key in element.attrib}
    drawing = "d fill font-size height opacity rx stroke-dasharray stroke-width text-anchor"
    other = "aria-hidden aria-label class href role viewBox width x y"
    assert attributes <= {*drawing.split(), *other.split()}
    assert not re.search("#[0-9a-f]{6}|rgb", text)


def test_style_sheet_has_every_class():
    classes = set()
    for drawn in (shop_picture(), picture(load_problem("alarm"))):
        samples = [entry.sample for entry in legend(drawn)]
        text = " ".join([inline_svg(drawn, lambda _: {"href": "#"}), *samples])
        classes |= {c for value in re.findall('class="([^"]*)"', text) for c in value.split()}
    sheet = SHEET.read_text(encoding="utf-8")
    # These have the look of variables and edges in general.
    plain = {"role-manipulable", "edge-arrow", "edge-doubtful"}
    assert classes - plain <= set(re.findall(r"\.([a-z_-]+)", sheet))
    assert plain <= classes
    assert "@media print" in sheet


def themes():
    """Return the colours of the style sheet by name, in the light and the dark theme."""
    sheet = SHEET.read_text(encoding="utf-8")
    light, remainder = sheet.split("@media screen and (prefers-color-scheme: dark)")
    dark = remainder.partition("/* --")[0]
    return [
        dict(re.findall(r"--graph-([a-z-]+):[^;]*?#([0-9a-f]{6})", block))
        for block in (light, dark)
    ]


def contrast(first, second):
    """Return the contrast ratio of WCAG 2, which must be 4.5 for text and 3 for graphics."""

    def brightness(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (0, 2, 4)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((brightness(first), brightness(second)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_sufficient_in_both_themes():
    light, dark = themes()
    assert {*light} == {*dark}
    for theme in (light, dark):
        for role in ("settable", "fixed", "context", "reward"):
            assert contrast(theme[f"{role}-text"], theme[f"{role}-fill"]) >= 4.5
            assert contrast(theme[f"{role}-line"], theme["paper"]) >= 3
        for kind in ("edge", "hidden", "suspected"):
            assert contrast(theme[kind], theme["paper"]) >= 4.5
        assert contrast(theme["focus"], theme["paper"]) >= 3


def test_equal_pictures_have_equal_texts():
    assert inline_svg(shop_picture()) == inline_svg(shop_picture())
    assert inline_svg(shop_picture()) != inline_svg(picture(SHOP))


def test_matplotlib_is_not_required():
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
    """Return the path commands of each variable's outlines, and True for dashed ones."""
    return {
        group.find(f"{SVG}text").text: [
            (re.sub("[^A-Z]", "", path.get("d")), path.get("stroke-dasharray") is not None)
            for path in group.findall(f"{SVG}path")
        ]
        for group in root.iter()
        if "variable" in group.get("class", "").split()
    }


def test_roles_have_classes_and_outlines():
    root = parsed(shop_picture())
    by_name = outlines(root)
    assert by_name["Price"] == [("MQLQLQLQZ", False)]
    assert by_name["Weather"] == [("MLLLZ", True)]
    assert by_name["Season"] == [("MLLLLLLLZ", False)]
    assert by_name["Sales"] == [("MQLQLQLQZ", False)] * 2
    classes = {
        group.find(f"{SVG}text").text: group.get("class")
        for group in root.iter(f"{SVG}g")
        if group.get("class", "").startswith("variable")
    }
    roles = {"Sales": "reward", "Season": "context", "Weather": "non_manipulable"}
    assert classes == {
        name: f"variable role-{roles.get(name, 'manipulable')}" for name in SHOP.graph.variables
    }


def test_legend_has_a_sample_of_each_entry():
    entries = legend(shop_picture())
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


def test_picture_is_an_image_or_a_group_of_links():
    image, group = parsed(shop_picture()), parsed(shop_picture(), lambda _: {"href": "#"})
    assert image.get("role") == "img" and group.get("role") == "group"
    assert image.get("aria-label") == "Causal graph of shop: 6 variables, 11 edges"
    labelled = inline_svg(shop_picture(), label='Of "ward" & <7>')
    assert ElementTree.fromstring(labelled).get("aria-label") == 'Of "ward" & <7>'
    assert not list(image.iter(f"{SVG}a"))


def test_links_have_the_attributes_of_the_page():
    root = parsed(
        shop_picture(), lambda name: {"href": f"?variable={name}", "hx-get": f"/f/{name}&x"}
    )
    sales = next(a for a in root.iter(f"{SVG}a") if a.get("href") == "?variable=Sales")
    assert sales.get("hx-get") == "/f/Sales&x"
    assert sales.get("aria-label") == "Sales, reward"
    assert sales.get("tabindex") is None
    labelled = parsed(
        shop_picture(), lambda name: {"href": "#", "aria-label": f"the factor of {name}"}
    )
    assert "the factor of Shelf" in [a.get("aria-label") for a in labelled.iter(f"{SVG}a")]


def test_links_without_an_address_are_buttons():
    root = parsed(shop_picture(), lambda name: {"data-variable": name})
    buttons = [g for g in root.iter(f"{SVG}g") if g.get("role") == "button"]
    assert [b.get("tabindex") for b in buttons] == ["0"] * 6
    assert {b.get("data-variable") for b in buttons} == {*SHOP.graph.variables}


@pytest.mark.parametrize("name", ["style", "class", "on click", "x><script", ""])
def test_invalid_attributes_are_rejected(name):
    with raises_code("invalid-input", repr(name)):
        inline_svg(shop_picture(), lambda _: {name: "1"})


# -- edges --------------------------------------------------------------------------------------


def test_edges_have_titles_and_labels():
    assert {*edges_of(parsed(shop_picture()))} == {
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
    words = [
        e.text for e in parsed(shop_picture()).iter(f"{SVG}text") if e.get("class") == "edge-label"
    ]
    assert sorted(words) == ["!", "!", "100 %", "12 %", "?"]


@pytest.mark.parametrize(
    ("probability", "text"), [(0.0, "0 %"), (0.001, "<1 %"), (0.994, "99 %"), (0.999, ">99 %")]
)
def test_uncertain_edges_are_never_labelled_as_certain(probability, text):
    edges = edges_of(parsed(picture(SHOP, {"Weather -> Sales": probability})))
    assert f"Weather -> Sales, doubtful, there with probability {text}" in edges


def test_more_probable_edges_are_wider_and_more_opaque():
    widths, opacities = [], []
    for probability in (0.0, 0.3, 0.7, 1.0):
        edges = edges_of(parsed(picture(SHOP, {"Weather -> Sales": probability})))
        edge = next(edges[title] for title in edges if title.startswith("Weather -> Sales"))
        widths.append(float(line_of(edge).get("stroke-width")))
        opacities.append(float(edge.find(f"{SVG}g").get("opacity", 1)))
    assert widths == sorted(set(widths)) and widths[0] > 0.5
    assert opacities == sorted(set(opacities)) and opacities[0] > 0.4 and opacities[-1] == 1


def test_kinds_of_edges_have_dashes_heads_and_classes():
    edges = edges_of(parsed(shop_picture()))

    def look(start):
        edge = next(edges[title] for title in edges if title.startswith(start))
        head = next(p for p in edge.iter(f"{SVG}path") if p.get("class") == "edge-head")
        is_dashed = line_of(edge).get("stroke-dasharray") is not None
        return is_dashed, head.get("d").count("M"), edge.get("class").split()[1:]

    assert look("Price -> Sales") == (False, 1, ["edge-arrow"])
    assert look("Weather -> Sales") == (True, 1, ["edge-arrow", "edge-doubtful"])
    assert look("Price <-> Sales") == (True, 2, ["edge-hidden"])
    assert look("Price <-> Weather") == (True, 2, ["edge-hidden", "edge-doubtful"])
    assert look("Shelf -> Sales") == (False, 1, ["edge-arrow", "edge-suspected"])
    assert look("Season <-> Staff") == (True, 2, ["edge-hidden", "edge-suspected"])


def test_arrowheads_touch_boxes():
    root = parsed(picture(Problem(CausalGraph.parse("X -> Y"), "Y")))

    def xs(part):
        path = next(p for p in root.iter(f"{SVG}path") if p.get("class") == part)
        return [float(pair.split(",")[0]) for pair in re.findall(r"[-\d.]+,[-\d.]+", path.get("d"))]

    boxes = [p for p in root.iter(f"{SVG}path") if p.get("class") == "variable-box"]
    reward = [float(x) for x in re.findall(r"([-\d.]+),", boxes[1].get("d"))]
    assert max(xs("edge-head")) == pytest.approx(min(reward), abs=0.02)
    assert max(xs("edge-line")) < min(reward)


# -- size ---------------------------------------------------------------------------------------


def test_shapes_are_inside_of_the_view():
    for drawn in (shop_picture(), picture(load_problem("alarm"))):
        root = parsed(drawn)
        left, top, width, height = map(float, root.get("viewBox").split())
        for path in root.iter(f"{SVG}path"):
            # Handles of curves may be outside, ends may not.
            ends = [path.get("d").split()[0], path.get("d").split()[-1]]
            for x, y in re.findall(r"([-\d.]+),([-\d.]+)", " ".join(ends)):
                assert left <= float(x) <= left + width and top <= float(y) <= top + height


def test_wide_pictures_have_a_class():
    small, vast = parsed(shop_picture()), parsed(picture(load_problem("alarm")))
    assert small.get("class") == "graph" and vast.get("class") == "graph graph-vast"
    wide = Problem(CausalGraph.parse("A -> B -> C -> D -> E -> F -> G -> Y"), "Y")
    assert parsed(picture(wide)).get("class") == "graph graph-wide"
    for root, em in ((small, 16), (vast, 10)):
        _, _, width, height = map(float, root.get("viewBox").split())
        assert float(root.get("width")) == pytest.approx(width * em / 16, abs=0.02)
        assert float(root.get("height")) == pytest.approx(height * em / 16, abs=0.02)
