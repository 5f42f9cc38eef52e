"""Names in scripts that matplotlib's own font lacks: a fallback font, or one warning."""

import warnings

import matplotlib
import numpy as np
import pytest
from matplotlib import font_manager
from support.errors import raises_code

from dowise import CausalGraph, Problem
from dowise.errors import DowiseWarning
from dowise.plotting import draw, picture, render
from dowise.plotting.figures import figure_style
from dowise.simulation.analysis import RegretCurve
from dowise.simulation.plots import save_curves

CJK = Problem(CausalGraph.parse('"薬" -> "회복" <- "größe"'), "회복", name="患者")
WATCH = Problem(CausalGraph.parse('"⌚" -> Y'), "Y")  # matplotlib's STIXGeneral has it


@pytest.fixture
def own_fonts(monkeypatch):
    """As on a machine without fonts, except for those that come with matplotlib."""
    fonts = [
        entry
        for entry in font_manager.fontManager.ttflist
        if entry.fname.startswith(matplotlib.get_data_path())
    ]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", fonts)


def warnings_of(work):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
    return [(warning.category, str(warning.message)) for warning in caught]


@pytest.mark.usefixtures("own_fonts")
@pytest.mark.parametrize("ending", ["png", "pdf"])
def test_missing_characters_are_announced_once(tmp_path, ending):
    ((category, message),) = warnings_of(lambda: draw(picture(CJK), tmp_path / f"g.{ending}"))
    assert category is DowiseWarning and "Noto Sans CJK" in message
    assert (tmp_path / f"g.{ending}").stat().st_size > 1000


@pytest.mark.usefixtures("own_fonts")
def test_an_svg_has_letters_which_its_viewer_draws():
    content = []
    assert warnings_of(lambda: content.append(render(picture(CJK), "svg"))) == []
    assert "薬" in content[0].decode()


@pytest.mark.usefixtures("own_fonts")
def test_a_fallback_font_draws_what_the_first_lacks(tmp_path):
    assert warnings_of(lambda: render(picture(WATCH), "png")) == []
    curve = RegretCurve("ids ⌚", np.arange(1, 4), np.ones(3), np.zeros(3), 2)
    assert warnings_of(lambda: save_curves([curve], "⌚", [tmp_path / "race.png"])) == []


def test_only_installed_fonts_are_asked():
    installed = {entry.name for entry in font_manager.fontManager.ttflist}
    with figure_style():
        assert set(matplotlib.rcParams["font.family"]) <= installed
        assert matplotlib.rcParams["font.family"][0] == "DejaVu Sans"


def test_other_warnings_of_matplotlib_still_come_through(monkeypatch):
    from matplotlib.figure import Figure

    def savefig(_figure, _content, **_options):
        warnings.warn("something else", UserWarning, stacklevel=1)

    monkeypatch.setattr(Figure, "savefig", savefig)
    assert warnings_of(lambda: render(picture(WATCH), "png")) == [(UserWarning, "something else")]


def test_a_bad_ending_is_refused_before_anything_is_drawn(tmp_path):
    with raises_code("unsupported-format", "g.bmp"):
        draw(picture(CJK), tmp_path / "g.bmp")
