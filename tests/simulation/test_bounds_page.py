"""docs/bounds.md has the figures that the commands named there print."""

import json
import re
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from dowise.cli.main import main

PAGE = (Path(__file__).parents[2] / "docs" / "bounds.md").read_text("utf-8")
PROBLEMS = ("task1", "task2", "task3", "healthcare")


@cache
def figures(problem, horizon=1000, **options):
    words = [
        word for name, x in options.items() for word in (f"--{name.replace('_', '-')}", str(x))
    ]
    words = ["bounds", problem, "--horizon", str(horizon), *words, "--json"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def cells(start):
    """The cells of the row of a table that begins like this, without their emphasis."""
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| {start}")]
    return [cell.strip().strip("*") for cell in row.strip("|").split("|")]


def short(number, digits=4):
    """As the page has it: .9165."""
    text = f"{number:.{digits}f}"
    return text[1:] if text.startswith("0.") else text


def check_worked_example(column, found):
    p_best = ", ".join(short(p) for p in found["p_best"])
    assert cells("p\\* of do()")[column] == p_best
    assert cells("simultaneous error")[column] == "±" + short(found["p_best_radius"])
    entropy = f"{short(found['entropy'])} ± {short(found['entropy_error'])}"
    assert cells("H(Π\\*)")[column] == entropy
    assert cells("log 3")[column] == short(found["worst_entropy"])
    assert cells("√(3H/2)")[column] == short(found["coefficient"])
    assert cells("√(3 log 3 / 2)")[column] == short(found["worst_coefficient"])
    assert cells("saving")[column] == f"{100 * found['saving']:.1f} %"


def test_the_worked_example():
    check_worked_example(2, figures("task1"))


@pytest.mark.slow
def test_the_worked_example_with_many_draws():
    check_worked_example(3, figures("task1", 1, samples=20_000_000))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_what_the_intervals_are_worth(problem):
    found = figures(problem)
    assert cells(f"{problem} |") == [
        problem,
        f"{found['vacuous_rounds']} of 1000",
        f"{found['gamma_infinite_rounds']} of 1000",
        f"{found['samples_for_some_lower_bound']:,.0f}",
        f"{found['samples_for_every_lower_bound']:,.0f}",
    ]


def test_the_largest_ratios():
    pairs = [
        f"{figures(name)['largest_ratio']:.2f} against {figures(name)['worst_ratio']:g}"
        for name in PROBLEMS
    ]
    assert ", ".join(pairs) in PAGE.replace("\n", " ")


@pytest.mark.slow
def test_entropies_of_the_map():
    said = re.search(r"\((1\.\d+ ± .*?), from two million draws\)", PAGE.replace("\n", " "))[1]
    task2, task3, healthcare = (figures(x, 1, samples=2_000_000) for x in PROBLEMS[1:])
    first, second = (
        f"{short(x['entropy'], 3)} ± {short(x['entropy_error'], 3)}" for x in (task2, task3)
    )
    third = short(healthcare["entropy"], 3)
    assert said == f"{first} for `task2`, {second} for `task3`, {third} for `healthcare`"


@pytest.mark.slow
def test_gammas_with_many_draws():
    said = re.search(
        r"--horizon (\d+) --policy-samples (\d+)`: (\d+) of (\d+) rounds", PAGE.replace("\n", " ")
    )
    horizon, samples, infinite, rounds = map(int, said.groups())
    found = figures("task1", horizon, policy_samples=samples)
    assert found["gamma_infinite_rounds"] == infinite and horizon == rounds
