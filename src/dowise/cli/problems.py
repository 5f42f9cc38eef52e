"""Commands about one problem: its arms, formulas and bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dowise.cli.group import command, json_option, load, print_json, problem_argument
from dowise.cli.numbers import Number, WholeNumber

__all__ = ["arms", "bounds", "formulas", "problems"]


@command("""\
  dowise arms healthcare
  dowise arms my-problem.toml --picture graph.svg
  dowise arms task3 --json""")
@problem_argument
@json_option
@click.option(
    "--picture", type=click.Path(path_type=Path), metavar="FILE",
    help="Draw the graph, roles in colour, to a .svg, .png or .pdf file.",
)  # fmt: skip
def arms(problem: str, as_json: bool, picture: Path | None) -> None:
    """The interventions that can possibly be optimal."""
    loaded = load(problem)
    if picture is not None:
        from dowise.picture import draw
        from dowise.picture import picture as picture_of

        draw(picture_of(loaded), picture)
    if as_json:
        from dowise.problem.problem_file import describe_arms

        print_json(describe_arms(loaded))
        return
    from dowise.cli.show_problems import show_arms

    show_arms(loaded)
    if picture is not None:
        click.echo(f"\nThe graph is drawn in {picture}")


@command("""\
  dowise formulas task1
  dowise formulas task2 --latex > formulas.tex
  dowise formulas insurance --all""")
@problem_argument
@json_option
@click.option("--latex", is_flag=True, help="Print LaTeX instead of text, and nothing else.")
@click.option(
    "--all", "everything", is_flag=True, help="Print them all, not only the first of many."
)
def formulas(problem: str, as_json: bool, latex: bool, everything: bool) -> None:
    """Each arm's expected reward as a formula, and what the other arms' data tell of it.

    First each arm's reward in factors. Without hidden common causes that is the truncated
    factorisation. With them a factor may have a do() of its own: then what is seen where nothing is
    set does not count in it. Then, for each intervention set, the formulas by which its reward can
    be estimated from experiments on other sets (z²ID); P_{X=x} is the distribution under do(X=x).
    Names stand as they are spelled, and a small letter for any value of a variable: Z=z.
    """
    loaded = load(problem)
    if as_json:
        from dowise.identification.describe import describe_formulas

        print_json(describe_formulas(loaded))
        return
    from dowise.cli.show_formulas import show_formulas

    show_formulas(loaded, latex, everything)


@command("""\
  dowise bounds task1 --horizon 1000
  dowise bounds healthcare --horizon 500 --policy-samples 100000
  dowise bounds task1 --horizon 500 --certify
  dowise bounds my-problem.toml --horizon 1000 --json""")
@problem_argument
@json_option
@click.option(
    "--horizon", type=WholeNumber(1), required=True, metavar="T", help="The number of rounds."
)
@click.option(
    "--samples", type=WholeNumber(1), metavar="M",
    help="Draws at the prior, for p* and the entropy H(Π*).  "
    "[default: 50000, or 100 for each arm]",
)  # fmt: skip
@click.option(
    "--policy-samples", type=WholeNumber(1), metavar="N",
    help="Draws in each round of the run.  [default: 1000, or 10 for each arm]",
)  # fmt: skip
@click.option(
    "--delta", type=Number(0, 1, min_open=True, max_open=True), default=0.05,
    show_default=True, help="The intervals may fail with this probability, over the whole run.",
)  # fmt: skip
@click.option(
    "--seed", type=WholeNumber(0), default=0, show_default=True,
    help="Of the draws, and of the worlds of the runs.",
)  # fmt: skip
@click.option(
    "--certify",
    is_flag=True,
    help="Also a bound that holds at this N: docs/certificate.md.",
)
@click.option(
    "--trials", type=WholeNumber(10), metavar="K",
    help="Runs of certified-ids for --certify, each in a world of its own.  [default: 100]",
)  # fmt: skip
def bounds(problem: str, as_json: bool, horizon: int, **options: Any) -> None:
    """How much regret to expect at most: the paper's bounds, with numbers.

    From the prior on, where nothing has been seen yet. Theorems 1 and 2 are taken along one run of
    Thompson Sampling in a world drawn from the prior.
    """
    from dowise.cli.progress import bar
    from dowise.cli.show_bounds import show_bounds
    from dowise.simulation import bounds as bounds_of

    loaded = load(problem)
    with bar(off_terminal=True) as progress:
        found = bounds_of(loaded, horizon, **options, progress=progress)
    if as_json:
        print_json(found.as_dict())
    else:
        show_bounds(found)


@command("  dowise problems")
@json_option
def problems(as_json: bool) -> None:
    """The problems that come built in."""
    from dowise.problem import builtin_names

    found = [(name, load(name)) for name in builtin_names()]
    if as_json:
        from dowise.problem.problem_file import describe_problems

        print_json(describe_problems(found))
        return
    from dowise.cli.show_problems import show_problems

    show_problems(found)
