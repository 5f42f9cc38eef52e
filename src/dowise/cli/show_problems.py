"""What the commands about a problem print for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from rich.table import Table
from rich.text import Text

from dowise.cli.tables import (
    count,
    is_narrow_enough,
    plain_console,
    print_numbered,
    print_stripped,
    print_table,
    print_wrapped,
)
from dowise.problem import Problem
from dowise.problem.arms import why_others_are_out
from dowise.problem.problem_file import costs_in_words, doubts_in_words

__all__ = ["show_arms", "show_problems"]


def show_arms(problem: Problem) -> None:
    """The roles, the intervention sets, the arms in words, and why nothing else is an arm."""
    console = plain_console()
    title = Text(problem.name or "The problem", style="bold")
    console.print(title + Text(f": {problem.description}" if problem.description else ""))
    roles = Table.grid(padding=(0, 2))
    for role, names in (
        ("minimise" if problem.minimise else "maximise", (_reward(problem),)),
        ("you can set", problem.manipulable),
        ("seen before the choice", problem.context),
        ("can't be set", problem.non_manipulable),
        ("hidden, never recorded", problem.hidden),
        ("forbidden in an arm", tuple(map(str, problem.forbidden))),
        ("costs", costs_in_words(problem)),
        ("known beforehand", _prior(problem)),
    ):
        if names:
            roles.add_row("", role, Text(", ".join(names)))
    for i, line in enumerate(doubts_in_words(problem)):
        roles.add_row("", "" if i else "edges in doubt", Text(line))
    print_stripped(console, roles)

    sizes = Counter(arm.variables for arm in problem.arms)
    kind = "minimal intervention set" if problem.arms_kind == "minimal" else "intervention set"
    is_free = not problem.forbidden and not problem.payoff.has_costs
    can_be_best = problem.arms_kind == "pomis" and is_free
    claim = " that can be optimal" if can_be_best else ""
    console.print(f"\n{count(len(sizes), kind)}{claim}", style="bold")
    print_table(
        console,
        ("set", "arms"),
        [("{" + ", ".join(sorted(names)) + "}", str(size)) for names, size in sizes.items()],
        right=("arms",),
    )
    console.print(f"\n{count(len(problem.arms), 'arm')}", style="bold")
    columns, rows = _arm_rows(problem)
    if is_narrow_enough(console, columns, rows):
        print_table(console, columns, rows, right=("#",))
    else:
        print_numbered(console, rows)
    console.print()
    print_wrapped(console, why_others_are_out(problem))


def _arm_rows(problem: Problem) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The columns of the table of arms and its rows; where there are costs, these too."""
    costs, priced = problem.payoff.costs.tolist(), problem.payoff.has_costs
    rows: list[tuple[str, ...]] = [
        (str(i), str(arm), *([f"costs {costs[i - 1]:g}"] * priced), arm.in_words())
        for i, arm in enumerate(problem.arms, start=1)
    ]
    return ("#", "arm", *(["cost"] * priced), "in words"), rows


def show_problems(problems: Iterable[tuple[str, Problem]]) -> None:
    """One line for each built-in problem."""
    print_table(
        plain_console(),
        ("problem", "variables", "arms", "what it is"),
        [
            (name, str(len(problem.graph)), str(len(problem.arms)), problem.description or "")
            for name, problem in problems
        ],
        right=("variables", "arms"),
    )


def _reward(problem: Problem) -> str:
    """The reward, and which of its values is the best: the order of a domain is easily turned."""
    domain, scaled = problem.domains[problem.reward], problem.payoff.scaled
    best, worst = domain[scaled.argmax()], domain[scaled.argmin()]
    return f"{problem.reward} (best {best}, worst {worst})"


def _prior(problem: Problem) -> tuple[str, ...]:
    """What the prior says, if anything."""
    if isinstance(problem.prior, Mapping):
        return (f"counts for {', '.join(problem.prior)}",)
    return () if problem.prior == 1.0 else (f"a prior count of {problem.prior:g} for every entry",)
