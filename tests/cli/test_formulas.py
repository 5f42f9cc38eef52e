"""`dowise formulas`, as text and as LaTeX."""

import json
import re

import pytest
from click.testing import CliRunner

from dowise.cli.main import main

COMMANDS = {"mid", "mathrm", "mathbb", "sum", "text", "quad", "frac", "beta", "textasciicircum"}


def told(*arguments):
    return CliRunner().invoke(main, ["formulas", *arguments], catch_exceptions=False).stdout


def test_formulas():
    shown = told("task1")
    assert "P(Y=1 | do(X=0)) = Σ_{z} P(Y=1 | X=0, Z=z) P(Z=z)" in shown
    assert "P_{X=x}(Y=y) = Σ_{z} P(Y=y | X=x, Z=z) P(Z=z)" in shown
    assert "P(Y=y): only from its own data" in shown
    assert "A lower-case letter is any value of its variable: X=x." in shown
    assert "within each context value" in told("task3")
    document = json.loads(told("task1", "--json"))
    assert [entry["arm"] for entry in document["formulas"]] == [{}, {"X": "0"}, {"X": "1"}]
    assert [way["text"] for way in document["formulas"][1]["estimators"]] == [
        "P_{X=x}(Y=y)", "Σ_{z} P(Y=y | X=x, Z=z) P(Z=z)",
    ]  # fmt: skip
    assert document["symbols"] == {"X": "x", "Y": "y", "Z": "z"}


@pytest.mark.slow
def test_long_lists_of_formulas_stop_where_arms_do():
    """Insurance has 81 arms, and more ways than that to estimate them from others' data."""
    shown = told("insurance")
    assert shown.count("E[worth(PropCost)") == shown.count("(PropCost=p) =") == 40
    assert "… and 41 more; --all prints them all" in shown
    assert "\n… and more; --all prints them all" in shown
    everything = told("insurance", "--all")
    assert everything.count("E[worth(PropCost)") == 81 and "…" not in everything
    assert len(everything.splitlines()) > 300


def assert_compiles(formula):
    """Braces close, every command is one that LaTeX has, and signs with a meaning are escaped."""
    depth = 0
    for token in re.findall(r"\\(?:[A-Za-z]+|.)|.", formula):
        if token.startswith("\\"):
            assert token[1:] in COMMANDS or token[1:] in "[]{}_&% ", token
        else:
            depth += (token == "{") - (token == "}")
            assert depth >= 0 and token not in "%&#$~^\n"
    assert depth == 0


def test_latex_is_latex_and_nothing_else(tmp_path):
    path = tmp_path / "odd.toml"
    path.write_text(
        'graph = \'"blood sugar" -> "R&D"; "50%" -> "R&D"; "x_y^2" -> "R&D"; β -> "R&D"; '
        '"年齢" -> "R&D"; "R&D" <-> β\'\nreward = "R&D"\nmanipulable = ["β"]',
        encoding="utf-8",
    )
    for arguments in (["task1"], ["task3"], ["insurance"], [str(path)]):
        shown = told(*arguments, "--latex").splitlines()
        comments = [line for line in shown if line.startswith("% ")]
        displays = [line for line in shown if line not in comments]
        assert displays and all(line[:3] + line[-3:] == r"\[  \]" for line in displays)
        assert r"\usepackage{amsmath,amssymb}" in comments[0]
        for line in displays:
            assert_compiles(line[3:-3])
    assert (
        r"\mathrm{R\&D}=1" in displays[0]
        and r"\mathrm{x\_y\text{\textasciicircum{}}2}" in displays[0]
    )
    assert r"\mathrm{50\%}" in displays[0] and r"\mathrm{blood\ sugar}=b" in displays[0]
    assert r"\beta=\beta_{1}" in displays[0] and "XeLaTeX" in comments[0]


def test_formulas_take_doubtful_edges_for_granted(tmp_path):
    path = tmp_path / "bow.toml"
    path.write_text('graph = "Z ?-> X -> Y; X <-> Y"\nreward = "Y"\nsoft = 0.1')
    shown = " ".join(told(str(path)).split())
    assert "P(Y=1 | do(X=0)) = Σ_{z} P(Y=1 | do(X=0), Z=z) P(Z=z)" in shown
    assert "simpler. Doubtful: X <-> Y, X <-> Z, Y <-> Z, Z -> X, Z -> Y From" in shown
    assert "in the graph as drawn" in shown
    document = json.loads(told(str(path), "--json"))
    assert document["doubtful_edges"] == ["X <-> Y", "X <-> Z", "Y <-> Z", "Z -> X", "Z -> Y"]
    assert [entry["seen"] for entry in document["formulas"]][:2] == [True, False]
    assert "oubtful" not in told("task1")
