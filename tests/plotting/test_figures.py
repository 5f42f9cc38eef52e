"""Files with pictures: contents, bytes, fonts, and errors that leave older files intact."""

import os
import re
import struct
import subprocess
import sys
import warnings
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import font_manager
from matplotlib.figure import Figure
from support.errors import raises_code

from dowise import CausalGraph, Problem
from dowise.errors import DowiseWarning
from dowise.plotting import draw, picture, render
from dowise.plotting.figures import figure_style
from dowise.simulation.analysis import RegretCurve
from dowise.simulation.plots import save_curves

RED, ORANGE, VIOLET, PINK = "#c1121f", "#d97706", "#7b4b94", "#d6006e"
SIMPLE = Problem(CausalGraph.parse("X -> Y"), "Y")
CONFOUNDED = Problem(
    CausalGraph.parse("B -> C -> D -> Y; A -> E -> Y; C -> E; A <-> Y; B <-> Y"), "Y"
)
DOUBTFUL = Problem(CausalGraph.parse("Z ?-> X -> Y; X <-> Y; Z <?> Y"), "Y")
CJK = Problem(CausalGraph.parse('"薬" -> "회복" <- "größe"'), "회복", name="患者")
WATCH = Problem(CausalGraph.parse('"⌚" -> Y'), "Y")  # in matplotlib's STIXGeneral


def task_2(name="task2"):
    graph = CausalGraph.parse("C -> X1; C -> X2; X1 -> X2; Z -> X2; Z -> Y; X2 -> Y")
    return Problem(graph, "Y", context="C", non_manipulable="Z", name=name)


def svg_of(problem, **options):
    return render(picture(problem, **options)).decode()


def texts_of(svg):
    root = ElementTree.fromstring(svg)
    return [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]


# -- contents --------------------------------------------------------------------------------------


def test_svg_has_title_names_and_legend_as_text():
    legend = ["manipulable", "non-manipulable", "context", "reward"]
    variables = ["C", "X1", "X2", "Y", "Z"]
    assert sorted(texts_of(svg_of(task_2()))) == sorted(["task2", *variables, *legend])
    assert sorted(texts_of(svg_of(task_2(None)))) == sorted([*variables, *legend])
    last = ["manipulable", "reward", "hidden common cause"]
    assert texts_of(svg_of(CONFOUNDED))[-3:] == last


def test_roles_have_colours_and_outlines():
    simple, coloured = svg_of(SIMPLE), svg_of(task_2())
    for colour in (RED, ORANGE):
        assert colour not in simple
        assert len(re.findall(f"stroke: {colour}", coloured)) == 2  # in the graph and the legend
    assert "stroke-dasharray" not in simple
    dashed = re.findall(r'style="[^"]*stroke-dasharray[^"]*"', coloured)
    assert len(dashed) == 2 and all(RED in style for style in dashed)


def test_kinds_of_edges_have_colours_and_labels():
    confounded = svg_of(CONFOUNDED)  # two bidirected edges and the sample in the legend
    assert len(re.findall(rf"stroke-dasharray[^\"]*stroke: {VIOLET}", confounded)) == 3
    assert len(re.findall(f"fill: {VIOLET}", confounded)) == 6
    assert VIOLET not in svg_of(task_2())
    texts = texts_of(svg_of(DOUBTFUL))
    assert texts.count("?") == 4  # two edges and their samples
    assert {"doubtful", "doubtful hidden cause", "hidden common cause"} <= {*texts}
    suspected = svg_of(DOUBTFUL, suspected=["Z -> Y", "X <-> Z", "Y -> Z"])
    assert len(re.findall(f"fill: {PINK}", suspected)) == 5  # four heads and that of the sample
    assert texts_of(suspected)[-1] == "suspected"


def test_arrowheads_touch_boxes():
    svg = svg_of(SIMPLE)

    def xs(style):
        """Return the x of every vertex of the first shape with this style."""
        path = re.search(rf'<path d="([^"]*)"[^>]*style="{style}', svg)[1]
        return [float(x) for x in re.findall(r"([\d.]+) [\d.]+ *\n", path)]

    head, reward = xs("fill: #3b4252"), xs("fill: #ffffff; stroke: #1b263b")
    assert max(head) == pytest.approx(min(reward), abs=1e-3)
    assert min(head) < min(reward) - 5


def test_special_characters_are_drawn_without_warnings():
    names = ["cost in $ and $", "a<b & c", "x\x01y", "漢字", "y" * 80]
    graph = CausalGraph([(name, "Y") for name in names])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        texts = texts_of(svg_of(Problem(graph, "Y", arms=[{}])))
    assert {"cost in $ and $", "a<b & c", "x y", "漢字", "y" * 80} < set(texts)
    assert not caught


def test_figure_is_as_wide_as_a_long_title():
    svg = svg_of(Problem(CausalGraph.parse("Y"), "Y", name="a long name " * 10))
    assert float(re.search(r'width="([\d.]+)pt"', svg)[1]) > 10 * 12 * 7


# -- bytes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]
)
def test_equal_pictures_have_equal_bytes(tmp_path, kind, start):
    path = tmp_path / f"PICTURE.{kind.upper()}"
    draw(picture(task_2()), str(path))
    content = path.read_bytes()
    assert content.startswith(start) and content == render(picture(task_2()), kind)
    assert content != render(picture(task_2("other")), kind)


def test_user_settings_have_no_effect_and_do_not_change():
    expected = svg_of(task_2())
    with mpl.rc_context({"font.size": 30, "savefig.bbox": "tight", "path.sketch": (9, 9, 9)}):
        before = dict(mpl.rcParams)
        assert svg_of(task_2()) == expected
        assert dict(mpl.rcParams) == before


def test_pyplot_is_not_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    svg_of(task_2())
    assert "matplotlib.pyplot" not in sys.modules


def png_size(content):
    return struct.unpack(">II", content[16:24])


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["chain", "star"])
def test_large_png_has_at_most_6000_pixels_on_a_side(shape):
    names = [f"V{i:03}" for i in range(120)]
    edges = {"chain": pairwise(names), "star": ((v, "Y") for v in names)}[shape]
    problem = Problem(CausalGraph([*edges, (names[-1], "Y")]), "Y", arms=[{}])
    assert 5990 <= max(png_size(render(picture(problem), "png"))) <= 6000


def test_small_png_has_200_dots_per_inch():
    svg = svg_of(task_2())
    points = [float(re.search(rf'{side}="([\d.]+)pt"', svg)[1]) for side in ("width", "height")]
    expected = [point / 72 * 200 for point in points]
    assert png_size(render(picture(task_2()), "png")) == pytest.approx(expected, abs=1.0)


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("picture.jpg", "unsupported-format"),
        ("picture", "unsupported-format"),
        ("picture.svgz", "unsupported-format"),
        ("nowhere/picture.svg", "unwritable-file"),
        ("folder.png", "unwritable-file"),
    ],
)
def test_invalid_path_is_rejected(tmp_path, name, code):
    (tmp_path / "folder.png").mkdir()
    with raises_code(code, name):
        draw(picture(task_2()), tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.png"]


@pytest.mark.parametrize("kind", ["jpg", ".svg", "", None])
def test_invalid_format_is_rejected(kind):
    with raises_code("unsupported-format", "svg, png, pdf"):
        render(picture(task_2()), kind)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk to write to")
def test_full_disk_is_an_error(tmp_path):
    path = tmp_path / "picture.svg"
    path.symlink_to("/dev/full")
    with raises_code("unwritable-file", "picture.svg", "No space left"):
        draw(picture(task_2()), path)


def test_failed_write_leaves_the_old_file_intact(tmp_path):
    path = tmp_path / "picture.svg"
    draw(picture(task_2()), path)
    before = path.read_bytes()
    resource = pytest.importorskip("resource", reason="the size of a file can't be limited")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with raises_code("unwritable-file", "picture.svg", "File too large"):
            draw(picture(CONFOUNDED), path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
    draw(picture(CONFOUNDED), path)
    assert path.read_bytes() != before


def test_missing_matplotlib_is_an_error_with_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    with raises_code("missing-extra", "dowise[simulate]"):
        draw(picture(task_2()), tmp_path / "picture.svg")


# -- fonts -----------------------------------------------------------------------------------------


@pytest.fixture
def no_installed_fonts(monkeypatch):
    """Hide all fonts except for those that come with matplotlib."""
    fonts = [
        entry
        for entry in font_manager.fontManager.ttflist
        if entry.fname.startswith(mpl.get_data_path())
    ]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", fonts)


def warnings_of(function):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    return [(warning.category, str(warning.message)) for warning in caught]


@pytest.mark.usefixtures("no_installed_fonts")
def test_missing_characters_cause_one_warning(tmp_path):
    ((category, message),) = warnings_of(lambda: draw(picture(CJK), tmp_path / "g.png"))
    assert category is DowiseWarning and "Noto Sans CJK" in message
    assert (tmp_path / "g.png").stat().st_size > 1000
    content = []
    assert warnings_of(lambda: content.append(render(picture(CJK), "svg"))) == []
    assert "薬" in content[0].decode()  # drawn by the viewer


@pytest.mark.usefixtures("no_installed_fonts")
def test_fallback_font_has_characters_that_the_first_font_lacks(tmp_path):
    assert warnings_of(lambda: render(picture(WATCH), "png")) == []
    curve = RegretCurve("ids ⌚", np.arange(1, 4), np.ones(3), np.zeros(3), 2)
    assert warnings_of(lambda: save_curves([curve], "⌚", [tmp_path / "chart.png"])) == []


def test_only_installed_fonts_are_used():
    installed = {entry.name for entry in font_manager.fontManager.ttflist}
    with figure_style():
        assert set(mpl.rcParams["font.family"]) <= installed
        assert mpl.rcParams["font.family"][0] == "DejaVu Sans"


def test_other_warnings_of_matplotlib_are_passed_on(monkeypatch):
    def savefig(_figure, _content, **_options):
        warnings.warn("something else", UserWarning, stacklevel=1)

    monkeypatch.setattr(Figure, "savefig", savefig)
    assert warnings_of(lambda: render(picture(WATCH), "png")) == [(UserWarning, "something else")]


# -- matplotlib's folder ---------------------------------------------------------------------------

SAVE_FIGURE = """\
import os
from dowise.plotting.figures import matplotlib_part
matplotlib_part("figure").Figure().savefig(os.devnull, format="png")
print(os.environ.get("MPLCONFIGDIR", "default"))
"""


@pytest.mark.slow
def test_matplotlib_gets_a_folder_if_it_can_not_write_to_its_own(tmp_path):
    def run(**settings):
        prefixes = ("XDG_", "MPL", "NUMBA_")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(prefixes)}
        environment |= {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")} | settings
        command = [sys.executable, "-c", SAVE_FIGURE]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.strip(), done.stderr

    folder = tmp_path / "kernels" / "dowise" / "matplotlib"
    assert run(HOME=os.devnull) == (str(folder), "")  # without matplotlib's warnings
    assert [*folder.iterdir()]
    assert run(HOME=str(tmp_path))[0] == "default"
    configured = str(tmp_path / "configured")
    assert run(HOME=os.devnull, MPLCONFIGDIR=configured)[0] == configured
