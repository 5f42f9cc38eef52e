"""docs/bounds.md has the figures that the commands in it print."""

import json
import re
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from dowise.cli.main import main

PAGE = (Path(__file__).parents[2] / "docs" / "bounds.md").read_text("utf-8")
TEXT = PAGE.replace("\n", " ")
PROBLEMS = ("task1", "task2", "task3", "healthcare")


@cache
def run_bounds(problem, horizon=1000, **options):
    arguments = ["bounds", problem, "--horizon", str(horizon), "--json"]
    for name, value in options.items():
        arguments += [f"--{name.replace('_', '-')}", str(value)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def cells(start):
    """Return the cells of the table row that begins like this, without their emphasis."""
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| {start}")]
    return [cell.strip().strip("*") for cell in row.strip("|").split("|")]


def short(number, digits=4):
    """Format a number without the leading zero: .9165."""
    return f"{number:.{digits}f}".removeprefix("0")


@pytest.mark.parametrize(
    ("column", "options"),
    [(2, {}), pytest.param(3, {"horizon": 1, "samples": 20_000_000}, marks=pytest.mark.slow)],
)
def test_the_page_has_the_figures_of_the_worked_example(column, options):
    figures = run_bounds("task1", **options)
    assert cells("p\\* of do()")[column] == ", ".join(short(p) for p in figures["p_best"])
    assert cells("simultaneous error")[column] == "±" + short(figures["p_best_radius"])
    entropy = f"{short(figures['entropy'])} ± {short(figures['entropy_error'])}"
    assert cells("H(Π\\*)")[column] == entropy
    assert cells("log 3")[column] == short(figures["worst_entropy"])
    assert cells("√(3H/2)")[column] == short(figures["coefficient"])
    assert cells("√(3 log 3 / 2)")[column] == short(figures["worst_coefficient"])
    assert cells("saving")[column] == f"{100 * figures['saving']:.1f} %"


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_page_has_the_figures_of_the_intervals(problem):
    figures = run_bounds(problem)
    assert cells(f"{problem} |") == [
        problem,
        f"{figures['vacuous_rounds']} of 1000",
        f"{figures['gamma_infinite_rounds']} of 1000",
        f"{figures['samples_for_some_lower_bound']:,.0f}",
        f"{figures['samples_for_every_lower_bound']:,.0f}",
    ]


def test_the_page_has_the_largest_ratios():
    ratios = [
        f"{figures['largest_ratio']:.2f} against {figures['worst_ratio']:g}"
        for figures in map(run_bounds, PROBLEMS)
    ]
    assert ", ".join(ratios) in TEXT


@pytest.mark.slow
def test_the_page_has_the_entropies_of_the_map():
    text = re.search(r"\((1\.\d+ ± .*?), from two million draws\)", TEXT)[1]
    task2, task3, healthcare = (run_bounds(x, 1, samples=2_000_000) for x in PROBLEMS[1:])
    first, second = (
        f"{short(x['entropy'], 3)} ± {short(x['entropy_error'], 3)}" for x in (task2, task3)
    )
    third = short(healthcare["entropy"], 3)
    assert text == f"{first} for `task2`, {second} for `task3`, {third} for `healthcare`"


@pytest.mark.slow
def test_the_page_has_gammas_with_many_draws():
    pattern = r"--horizon (\d+) --policy-samples (\d+)`: (\d+) of (\d+) rounds"
    horizon, samples, infinite, rounds = map(int, re.search(pattern, TEXT).groups())
    figures = run_bounds("task1", horizon, policy_samples=samples)
    assert figures["gamma_infinite_rounds"] == infinite and horizon == rounds
