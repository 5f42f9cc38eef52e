"""What the commands print for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dowise.problem import Problem
from dowise.problem.explain import why_others_are_out

__all__ = ["show_arms", "show_problems"]

# Nobody reads more rows than this on a terminal; --json has them all.
_MOST_ROWS = 40


def show_arms(problem: Problem) -> None:
    """The roles, the intervention sets, the arms in words, and why nothing else is an arm."""
    console = _console()
    title = Text(problem.name or "The problem", style="bold")
    console.print(title + Text(f": {problem.description}" if problem.description else ""))
    roles = Table.grid(padding=(0, 2))
    for role, names in (
        ("maximise", (_reward(problem),)),
        ("you can set", problem.manipulable),
        ("seen before the choice", problem.context),
        ("can't be set", problem.non_manipulable),
    ):
        if names:
            roles.add_row("", role, Text(", ".join(names)))
    console.print(roles)

    sizes = Counter(arm.variables for arm in problem.arms)
    claim = " that can be optimal" if problem.arms_kind == "pomis" else ""
    console.print(f"\n{_count(len(sizes), 'intervention set')}{claim}", style="bold")
    _print_table(
        console,
        ("set", "arms"),
        [("{" + ", ".join(sorted(names)) + "}", str(size)) for names, size in sizes.items()],
        right=("arms",),
    )
    console.print(f"\n{_count(len(problem.arms), 'arm')}", style="bold")
    _print_table(
        console,
        ("#", "arm", "in words"),
        [(str(i), str(arm), arm.in_words()) for i, arm in enumerate(problem.arms, start=1)],
        right=("#",),
    )
    console.print()
    console.print(why_others_are_out(problem))


def show_problems(problems: Iterable[tuple[str, Problem]]) -> None:
    """One line for each built-in problem."""
    _print_table(
        _console(),
        ("problem", "variables", "arms", "what it is"),
        [
            (name, str(len(problem.graph)), str(len(problem.arms)), problem.description or "")
            for name, problem in problems
        ],
        right=("variables", "arms"),
    )


def _console() -> Console:
    return Console(highlight=False, markup=False, emoji=False)


def _print_table(
    console: Console,
    columns: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    right: tuple[str, ...] = (),
) -> None:
    table = Table(box=None, padding=(0, 0, 0, 2), header_style="dim", pad_edge=True)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows[:_MOST_ROWS]:
        table.add_row(*map(Text, row))
    console.print(table)
    if len(rows) > _MOST_ROWS:
        console.print(f"  … and {len(rows) - _MOST_ROWS:,} more; --json lists them all")


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def _reward(problem: Problem) -> str:
    """The reward, and which of its values is the best: the order of a domain is easily turned."""
    worth = problem.reward_values
    best, worst = max(worth, key=lambda label: worth[label]), min(worth, key=lambda x: worth[x])
    return f"{problem.reward} (best {best}, worst {worst})"
