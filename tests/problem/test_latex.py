"""Names in LaTeX, whatever is in them; and that ordinary ones are drawn by matplotlib too."""

import pytest
from matplotlib.mathtext import MathTextParser

from dowise import load_problem
from dowise.identification.identify import estimators
from dowise.problem.formulas import formulas, latex_label, latex_name


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("X", "X"),
        ("x12", "x_{12}"),
        ("Σ_3", r"\Sigma_{3}"),
        ("é", r"\mathrm{\text{é}}"),
        ("X1a", r"\mathrm{X1a}"),
        ("body mass", r"\mathrm{body\ mass}"),
        ("a_b%c&d#e$f{g}", r"\mathrm{a\_b\%c\&d\#e\$f\{g\}}"),
        ("a\\b^c~d", r"\mathrm{a\text{\textbackslash{}}b\text{\textasciicircum{}}c"
                    r"\text{\textasciitilde{}}d}"),
        ("a--b", r"\mathrm{a\text{-{}-{}}b}"),
        ("αβ cells", r"\mathrm{{\alpha}{\beta}\ cells}"),
        ("年齢", r"\mathrm{\text{年齢}}"),
        ("two\nlines\x07", r"\mathrm{two\ lines\ }"),
    ],
)  # fmt: skip
def test_names(name, written):
    assert latex_name(name) == written


def test_labels():
    assert [latex_label(label) for label in ("0", "-1.5", "low", "1e5", "x")] == [
        "0", "-1.5", r"\mathrm{low}", r"\mathrm{1e5}", r"\mathrm{x}",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["task1", "task3", "healthcare", "asia", "sachs"])
def test_matplotlib_draws_them(name):
    parser, problem = MathTextParser("path"), load_problem(name)
    ways = [way for found in estimators(problem).values() for way in found]
    for formula in (*formulas(problem), *ways):
        width, height, *_ = parser.parse(f"${formula.latex()}$")
        assert width > 0 and height > 0
