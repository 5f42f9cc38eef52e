"""`dowise formulas`, as text and as LaTeX."""

import re

import pytest

COMMANDS = {"mid", "mathrm", "mathbb", "sum", "text", "quad", "frac", "beta", "textasciicircum"}


def test_formulas_lists_the_formulas_of_every_arm(cli):
    output = cli.run_ok("formulas", "task1")
    assert "P(Y=1 | do(X=0)) = Σ_{z} P(Y=1 | X=0, Z=z) P(Z=z)" in output
    assert "P_{X=x}(Y=y) = Σ_{z} P(Y=y | X=x, Z=z) P(Z=z)" in output
    assert "P(Y=y): only from its own data" in output
    assert "A lower-case letter is any value of its variable: X=x." in output
    assert "within each context value" in cli.run_ok("formulas", "task3")
    document = cli.run_json("formulas", "task1")
    assert [entry["arm"] for entry in document["formulas"]] == [{}, {"X": "0"}, {"X": "1"}]
    assert [estimator["text"] for estimator in document["formulas"][1]["estimators"]] == [
        "P_{X=x}(Y=y)",
        "Σ_{z} P(Y=y | X=x, Z=z) P(Z=z)",
    ]
    assert document["symbols"] == {"X": "x", "Y": "y", "Z": "z"}


@pytest.mark.slow
def test_long_lists_of_formulas_are_truncated(cli):
    """Insurance has 81 arms, and more estimators than arms."""
    output = cli.run_ok("formulas", "insurance")
    assert output.count("E[worth(PropCost)") == output.count("(PropCost=p) =") == 40
    assert "… and 41 more; --all prints them all" in output
    assert "\n… and more; --all prints them all" in output
    everything = cli.run_ok("formulas", "insurance", "--all")
    assert everything.count("E[worth(PropCost)") == 81 and "…" not in everything
    assert len(everything.splitlines()) > 300


def assert_compiles(formula):
    """Check that braces close, commands exist and special characters are escaped."""
    depth = 0
    for token in re.findall(r"\\(?:[A-Za-z]+|.)|.", formula):
        if token.startswith("\\"):
            assert token[1:] in COMMANDS or token[1:] in "[]{}_&% ", token
        else:
            depth += (token == "{") - (token == "}")
            assert depth >= 0 and token not in "%&#$~^\n"
    assert depth == 0


def test_formulas_in_latex_escape_names(cli):
    path = cli.write(
        "odd.toml",
        'graph = \'"blood sugar" -> "R&D"; "50%" -> "R&D"; "x_y^2" -> "R&D"; β -> "R&D"; '
        '"年齢" -> "R&D"; "R&D" <-> β\'\nreward = "R&D"\nmanipulable = ["β"]',
    )
    for problem in ("task1", "task3", "insurance", path):
        output = cli.run_ok("formulas", problem, "--latex").splitlines()
        comments = [line for line in output if line.startswith("% ")]
        displays = [line for line in output if line not in comments]
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


def test_formulas_assume_that_doubtful_edges_exist(cli):
    path = cli.write("bow.toml", 'graph = "Z ?-> X -> Y; X <-> Y"\nreward = "Y"\nsoft = 0.1')
    output = cli.run_text("formulas", path)
    assert "P(Y=1 | do(X=0)) = Σ_{z} P(Y=1 | do(X=0), Z=z) P(Z=z)" in output
    assert "simpler. Doubtful: X <-> Y, X <-> Z, Y <-> Z, Z -> X, Z -> Y From" in output
    assert "in the graph as drawn" in output
    document = cli.run_json("formulas", path)
    assert document["doubtful_edges"] == ["X <-> Y", "X <-> Z", "Y <-> Z", "Z -> X", "Z -> Y"]
    assert [entry["seen"] for entry in document["formulas"]][:2] == [True, False]
    assert "oubtful" not in cli.run_ok("formulas", "task1")
