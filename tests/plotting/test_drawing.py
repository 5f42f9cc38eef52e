from __future__ import annotations

import re
import struct
import sys
import warnings
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from support.errors import raises_code

from dowise import CausalGraph, Problem
from dowise.errors import DowiseError, MissingExtraError
from dowise.plotting import draw, picture, render

RED, ORANGE, VIOLET = "#c1121f", "#d97706", "#7b4b94"


def task_2(name="task2"):
    graph = CausalGraph.parse("C -> X1; C -> X2; X1 -> X2; Z -> X2; Z -> Y; X2 -> Y")
    return Problem(graph, "Y", context="C", non_manipulable="Z", name=name)


def confounded():
    graph = CausalGraph.parse("B -> C -> D -> Y; A -> E -> Y; C -> E; A <-> Y; B <-> Y")
    return Problem(graph, "Y", name="confounded")


def svg(problem, tmp_path) -> str:
    path = tmp_path / "picture.svg"
    draw(picture(problem), path)
    return path.read_text(encoding="utf-8")


def texts(svg_text: str) -> list[str]:
    root = ElementTree.fromstring(svg_text)
    return [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]


def test_each_variable_has_its_role():
    drawn = picture(task_2())
    assert {shape.name: shape.role for shape in drawn.variables} == {
        "C": "context",
        "X1": "manipulable",
        "X2": "manipulable",
        "Y": "reward",
        "Z": "non_manipulable",
    }
    assert drawn.title == "task2"
    assert drawn.legend == ("manipulable", "non_manipulable", "context", "reward")


def test_the_legend_names_only_what_occurs(tmp_path):
    assert picture(confounded()).legend == ("manipulable", "reward", "hidden")
    assert texts(svg(confounded(), tmp_path))[-3:] == [
        "manipulable",
        "reward",
        "hidden common cause",
    ]
    assert picture(Problem(CausalGraph.parse("Y"), "Y")).legend == ("reward",)


def test_the_reward_stands_on_the_right():
    graph = CausalGraph.parse("A -> B -> C -> D; A -> Y")
    boxes = picture(Problem(graph, "Y")).layout.boxes
    assert boxes["Y"].x >= max(boxes[name].x for name in "ABC")
    assert boxes["Y"].x == boxes["D"].x


def test_svg_holds_the_title_the_labels_and_the_legend_as_text(tmp_path):
    written = texts(svg(task_2(), tmp_path))
    legend = ["manipulable", "non-manipulable", "context", "reward"]
    assert sorted(written) == sorted(["task2", "C", "X1", "X2", "Y", "Z", *legend])


def test_svg_has_the_roles_in_colour_and_in_outline(tmp_path):
    plain = svg(Problem(CausalGraph.parse("X -> Y"), "Y"), tmp_path)
    coloured = svg(task_2(), tmp_path)
    for colour in (RED, ORANGE):
        assert colour not in plain
        # Once in the graph, once in the legend.
        assert len(re.findall(f"stroke: {colour}", coloured)) == 2
    assert "stroke-dasharray" not in plain
    # Only what is non-manipulable has a dashed outline.
    dashed = re.findall(r'style="[^"]*stroke-dasharray[^"]*"', coloured)
    assert len(dashed) == 2
    assert all(RED in style for style in dashed)


def test_bidirected_edges_are_dashed_with_two_heads(tmp_path):
    text = svg(confounded(), tmp_path)
    # Two edges and the legend's sample.
    assert len(re.findall(rf"stroke-dasharray[^\"]*stroke: {VIOLET}", text)) == 3
    assert len(re.findall(f"fill: {VIOLET}", text)) == 6
    assert VIOLET not in svg(task_2(), tmp_path)


def test_arrowheads_touch_the_boxes(tmp_path):
    text = svg(Problem(CausalGraph.parse("X -> Y"), "Y"), tmp_path)

    def xs(style: str) -> list[float]:
        """The x of every vertex of the first shape in this style."""
        path = re.search(rf'<path d="([^"]*)"[^>]*style="{style}', text)[1]
        return [float(x) for x in re.findall(r"([\d.]+) [\d.]+ *\n", path)]

    head, reward = xs("fill: #3b4252"), xs("fill: #ffffff; stroke: #1b263b")
    assert max(head) == pytest.approx(min(reward), abs=1e-3)
    assert min(head) < min(reward) - 5


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_the_same_problem_gives_the_same_bytes(tmp_path, ending):
    for name in ("one", "two"):
        draw(picture(task_2()), tmp_path / f"{name}.{ending}")
    one = (tmp_path / f"one.{ending}").read_bytes()
    assert one == (tmp_path / f"two.{ending}").read_bytes()
    assert one.startswith({"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[ending])
    draw(picture(task_2("other")), tmp_path / f"two.{ending}")
    assert one != (tmp_path / f"two.{ending}").read_bytes()


def test_the_users_settings_neither_show_nor_change(tmp_path):
    expected = svg(task_2(), tmp_path)
    with mpl.rc_context({"font.size": 30, "savefig.bbox": "tight", "path.sketch": (9, 9, 9)}):
        before = dict(mpl.rcParams)
        assert svg(task_2(), tmp_path) == expected
        assert dict(mpl.rcParams) == before


def test_drawing_leaves_pyplot_alone(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    svg(task_2(), tmp_path)
    assert "matplotlib.pyplot" not in sys.modules


def test_strange_names_are_drawn_as_they_are(tmp_path):
    names = ["cost in $ and $", "a<b & c", "x\x01y", "漢字", "y" * 80]
    graph = CausalGraph([(name, "Y") for name in names])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        written = texts(svg(Problem(graph, "Y", arms=[{}]), tmp_path))
    assert {"cost in $ and $", "a<b & c", "x y", "漢字", "y" * 80} < set(written)
    assert not caught


def test_a_problem_without_a_name_has_no_title(tmp_path):
    assert picture(task_2(None)).title is None
    named, unnamed = svg(task_2(), tmp_path), svg(task_2(None), tmp_path)
    assert set(texts(named)) - set(texts(unnamed)) == {"task2"}


def test_a_long_title_fits(tmp_path):
    text = svg(Problem(CausalGraph.parse("Y"), "Y", name="a long name " * 10), tmp_path)
    width = float(re.search(r'width="([\d.]+)pt"', text)[1])
    assert width > 10 * 12 * 7


@pytest.mark.parametrize("name", ["picture.jpg", "picture", "picture.svgz"])
def test_an_unknown_ending_is_refused_with_the_known_ones(tmp_path, name):
    with raises_code("unsupported-format", name, ".svg, .png, .pdf"):
        draw(picture(task_2()), tmp_path / name)
    assert not (tmp_path / name).exists()


def test_the_ending_may_be_in_capitals(tmp_path):
    draw(picture(task_2()), str(tmp_path / "PICTURE.SVG"))
    assert (tmp_path / "PICTURE.SVG").read_bytes().startswith(b"<?xml")


def test_a_missing_folder_is_named(tmp_path):
    with raises_code("unwritable-file", "nowhere"):
        draw(picture(task_2()), tmp_path / "nowhere" / "picture.svg")


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    folder = tmp_path / "picture.png"
    folder.mkdir()
    with raises_code("unwritable-file", "picture.png", "folder"):
        draw(picture(task_2()), folder)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk to write to")
@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_a_full_disk_is_named(tmp_path, ending):
    path = tmp_path / f"picture.{ending}"
    path.symlink_to("/dev/full")
    with pytest.raises(DowiseError, match=r"picture\.\w+: .*No space left"):
        draw(picture(task_2()), path)


def test_a_failed_write_leaves_the_old_file_as_it_was(tmp_path):
    path = tmp_path / "picture.svg"
    draw(picture(task_2()), path)
    before = path.read_bytes()
    resource = pytest.importorskip("resource", reason="the size of a file can't be limited")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(DowiseError, match=r"picture\.svg: .*File too"):
            draw(picture(confounded()), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    draw(picture(confounded()), path)
    assert path.read_bytes() != before


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_a_file_holds_the_rendered_bytes(tmp_path, kind):
    path = tmp_path / f"picture.{kind}"
    draw(picture(task_2()), path)
    assert path.read_bytes() == render(picture(task_2()), kind)


def test_the_bytes_are_svg_unless_told_otherwise():
    assert render(picture(task_2())) == render(picture(task_2()), format="svg")


@pytest.mark.parametrize("kind", ["jpg", ".svg", "", None])
def test_an_unknown_format_is_refused_with_the_known_ones(kind):
    with raises_code("unsupported-format", "svg, png, pdf"):
        render(picture(task_2()), kind)


def size_of_png(path):
    return struct.unpack(">II", path.read_bytes()[16:24])


@pytest.mark.slow
@pytest.mark.parametrize("edges", ["chain", "star"])
def test_a_large_png_has_at_most_6000_pixels_along_its_longer_side(tmp_path, edges):
    names = [f"V{i:03}" for i in range(120)]
    chain = {"chain": pairwise(names), "star": ((v, "Y") for v in names)}
    graph = CausalGraph([*chain[edges], (names[-1], "Y")])
    path = tmp_path / "picture.png"
    draw(picture(Problem(graph, "Y", arms=[{}])), path)
    assert 5990 <= max(size_of_png(path)) <= 6000


def test_a_small_png_has_200_dots_per_inch(tmp_path):
    text = svg(task_2(), tmp_path)
    draw(picture(task_2()), tmp_path / "picture.png")
    points = [float(re.search(rf'{side}="([\d.]+)pt"', text)[1]) for side in ("width", "height")]
    assert size_of_png(tmp_path / "picture.png") == pytest.approx(
        [point / 72 * 200 for point in points], abs=1.0
    )


def test_without_matplotlib_the_extra_is_named(tmp_path, monkeypatch):
    drawn = picture(task_2())
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    with pytest.raises(MissingExtraError, match=r"dowise\[simulate\]"):
        draw(drawn, Path(tmp_path) / "picture.svg")


def in_doubt(**options):
    graph = CausalGraph.parse("Z ?-> X -> Y; X <-> Y; Z <?> Y")
    return Problem(graph, "Y", **options)


def doubtful(drawn):
    return {str(edge.name) for edge in drawn.edges if edge.is_doubtful}


def test_doubtful_edges_are_dotted_and_say_so(tmp_path):
    drawn = picture(in_doubt())
    assert doubtful(drawn) == {"Y <-> Z", "Z -> X"}
    labelled = [str(edge.name) for edge in drawn.edges if edge.style.label == "?"]
    assert labelled == ["Z -> X", "Y <-> Z"]
    written = texts(svg(in_doubt(), tmp_path))
    assert written.count("?") == 4  # two edges and the legend's samples
    assert {"doubtful", "doubtful hidden cause", "hidden common cause"} <= {*written}
    assert "doubtful" not in texts(svg(confounded(), tmp_path))


def test_the_priors_say_what_is_doubtful():
    sure = picture(in_doubt(edge_prior={"Z -> X": 1, "X -> Y": 0.8}))
    assert doubtful(sure) == {"X -> Y", "Y <-> Z"}
    assert doubtful(picture(in_doubt(edge_prior=0.6))) == {"X <-> Y", "Y <-> Z", "Z -> X"}


def test_likelier_edges_are_thicker_and_darker():
    drawn = picture(in_doubt(), edges={"X <- Z": 0.1, "X <-> Y": 0.97, "Y <-> X2": 0.5})
    styles = {str(edge.name): edge.style for edge in drawn.edges}
    unlikely, likely = styles["Z -> X"], styles["X <-> Y"]
    assert (unlikely.label, likely.label) == ("10 %", "97 %")
    assert unlikely.width < styles["X -> Y"].width < likely.width
    assert int(unlikely.colour[1:3], 16) > int(likely.colour[1:3], 16)
    assert set(styles) == set(in_doubt().graph.edge_texts)


def test_suspected_edges_are_drawn_in_their_own_colour(tmp_path):
    suspected = ["Z -> Y", "X <-> Z", "Y -> Z"]  # even in a circle
    drawn = picture(in_doubt(), suspected=suspected)
    assert list(drawn.layout.extra) == ["Z -> Y", "X <-> Z", "Y -> Z"]
    assert drawn.layout.boxes == picture(in_doubt()).layout.boxes
    boxes, stroke = drawn.layout.boxes, drawn.layout.extra["Y -> Z"]
    assert abs(stroke[-1][0] - boxes["Z"].x) < boxes["Z"].width / 2
    draw(drawn, tmp_path / "suspected.svg")
    text = (tmp_path / "suspected.svg").read_text("utf-8")
    assert len(re.findall("fill: #d6006e", text)) == 5  # four heads and the legend's
    assert texts(text)[-1] == "suspected"


def test_soft_edges_are_drawn_as_doubtful_unless_they_are_suspected():
    problem = Problem(CausalGraph.parse("Z -> X -> Y"), "Y", soft=0.1)
    chances = {"Z -> Y": 0.4, "X <-> Y": 0.05, "X <-> Z": 0.02}
    drawn = picture(problem, chances, ["Z -> Y"], soft=chances)
    assert doubtful(drawn) == {"X <-> Y", "X <-> Z"}
    assert {str(edge.name) for edge in drawn.edges if edge.is_suspected} == {"Z -> Y"}
    assert drawn.legend == ("manipulable", "reward", "doubtful_hidden", "suspected")
    assert {*drawn.layout.extra} == {*chances}
    edges = {str(edge.name): edge for edge in drawn.edges}
    soft, suspected = edges["X <-> Y"], edges["Z -> Y"]
    assert soft.style.dashes and soft.style.label == "5 %" and len(soft.line_and_heads[1]) == 2
    assert not suspected.style.dashes and suspected.style.label == "40 %"
    plain = picture(problem, chances).edges
    assert {str(edge.name) for edge in plain} == {"Z -> X", "X -> Y"}


@pytest.mark.parametrize(
    ("edge", "code", "mentioned"),
    [
        ("X -> Y", "duplicate-name", "X -> Y"),
        ("Q -> Y", "unknown-variable", "'Q'"),
        ("X", "syntax-error", "'X'"),
    ],
)
def test_a_suspected_edge_is_one_that_the_graph_lacks(edge, code, mentioned):
    with raises_code(code, mentioned):
        picture(in_doubt(), suspected=[edge])
