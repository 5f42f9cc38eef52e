"""Names in scripts that matplotlib's own font lacks: another font, or one warning that helps."""

import warnings
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.text import Text

from dowise import CausalGraph, DowiseError, Problem
from dowise.errors import DowiseWarning
from dowise.plotting import draw, picture, render
from dowise.plotting.figures import lettered, save_figure
from dowise.simulation.analysis import RegretCurve
from dowise.simulation.plots import save_curves

CJK = Problem(CausalGraph.parse('"薬" -> "회복" <- "größe"'), "회복", name="患者")
WATCH = Problem(CausalGraph.parse('"⌚" -> Y'), "Y")  # matplotlib's STIXGeneral has it


@pytest.fixture
def own_fonts(monkeypatch):
    """As on a machine without fonts, but for those that come with matplotlib."""
    fonts = [
        entry
        for entry in font_manager.fontManager.ttflist
        if Path(entry.fname).is_relative_to(matplotlib.get_data_path())
    ]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", fonts)


def warnings_of(work):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
    assert all(issubclass(one.category, DowiseWarning) for one in caught)
    return [str(one.message) for one in caught]


@pytest.mark.usefixtures("own_fonts")
@pytest.mark.parametrize("ending", ["png", "pdf"])
def test_what_no_font_has_is_said_once_with_the_remedy(tmp_path, ending):
    (said,) = warnings_of(lambda: draw(picture(CJK), tmp_path / f"g.{ending}"))
    assert said == (
        "no font of this machine has 患 者 薬 복 회, so boxes stand in the figure instead: install "
        "Noto Sans CJK (Debian, Ubuntu: fonts-noto-cjk)"
    )
    assert (tmp_path / f"g.{ending}").stat().st_size > 1000


@pytest.mark.usefixtures("own_fonts")
def test_an_svg_has_letters_which_its_viewer_draws():
    content = []
    assert warnings_of(lambda: content.append(render(picture(CJK), "svg"))) == []
    assert "薬" in content[0].decode()


@pytest.mark.usefixtures("own_fonts")
def test_a_font_that_has_the_character_is_used_and_only_there():
    content = []
    assert warnings_of(lambda: content.append(render(picture(WATCH), "svg"))) == []
    assert "STIXGeneral" in content[0].decode()
    assert warnings_of(lambda: render(picture(WATCH), "png")) == []
    assert "STIXGeneral" not in render(picture(Problem(CausalGraph.parse("É -> Ω"), "Ω"))).decode()


@pytest.mark.usefixtures("own_fonts")
def test_the_font_is_another_picture_than_the_box(monkeypatch):
    there = render(picture(WATCH), "png")
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [])
    with pytest.warns(DowiseWarning, match="has ⌚, .*install .*Symbola"):
        assert render(picture(WATCH), "png") != there


def test_the_last_resort_and_damaged_fonts_do_not_count(monkeypatch, tmp_path):
    (tmp_path / "broken.ttf").write_bytes(b"no font")
    entry = font_manager.FontEntry(
        fname=str(tmp_path / "broken.ttf"), name="Noto Sans CJK SC", style="normal",
        variant="normal", weight=400, stretch="normal", size="scalable",
    )  # fmt: skip
    last = [e for e in font_manager.fontManager.ttflist if e.name.startswith("Last Resort")]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", [entry, *last])
    with pytest.warns(DowiseWarning, match="no font of this machine has 患 者"):
        render(picture(CJK), "png")


@pytest.mark.usefixtures("own_fonts")
def test_titles_lines_and_ticks_of_other_figures(tmp_path):
    rounds = np.arange(1, 4)
    curve = RegretCurve("ids 薬", rounds, np.ones(3), np.zeros(3), 2)
    files = [tmp_path / "race.png", tmp_path / "race.pdf"]
    (said,) = warnings_of(lambda: save_curves([curve], "患者", files))
    assert said.startswith("no font of this machine has 患 者 薬, so boxes")
    figure = Figure()
    axes = figure.subplots()
    axes.set_yticks([0, 1], ["⌚", "plain"])
    assert warnings_of(lambda: save_figure(figure, tmp_path / "ticks.png")) == []
    assert "STIXGeneral" in axes.get_yticklabels()[0].get_fontfamily()


def test_plain_figures_keep_their_fonts():
    figure = Figure()
    figure.suptitle("α → größe")
    lettered(figure)
    (title,) = (text for text in figure.findobj(Text) if text.get_text())
    assert title.get_fontfamily() == matplotlib.rcParams["font.family"]


def test_a_bad_ending_is_refused_before_any_font_is_read(tmp_path):
    with pytest.raises(DowiseError, match="by its ending"):
        draw(picture(CJK), tmp_path / "g.bmp")
