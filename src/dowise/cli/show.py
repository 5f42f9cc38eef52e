"""What the commands print for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isinf
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import track
from rich.table import Table
from rich.text import Text

from dowise.problem import Problem
from dowise.problem.explain import why_others_are_out

if TYPE_CHECKING:
    from pathlib import Path

    from dowise.simulation import Bounds, Result
    from dowise.simulation.reproduce import Reproduction

__all__ = [
    "final_table",
    "show_arms",
    "show_bounds",
    "show_estimators",
    "show_problems",
    "show_race",
    "show_reproduction",
    "tracked",
]

# Nobody reads more rows than this on a terminal; --json has them all.
_MOST_ROWS = 40
_MOST_CONTEXT_COLUMNS = 4


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


def show_estimators(problem: Problem, latex: bool) -> None:
    """For each intervention set how its reward can be estimated from other sets' experiments."""
    from dowise.identification import estimators

    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    ways = estimators(problem)
    where = ", within each context value" if problem.context else ""
    console.print(f"\nFrom the data of other arms{where}")
    for found in ways.values():
        written = [way.latex() if latex else str(way) for way in found]
        direct, others = written[0], written[1:]
        for other in others:
            console.print(f"{direct} = {other}")
        if not others:
            console.print(f"{direct}: only from its own data")


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


def show_bounds(found: Bounds) -> None:
    """p*, H(Π*), every bound beside the worst case, and what the intervals are worth."""
    console, problem = _console(), found.problem
    contexts = len(found.contexts)
    size = f"{_count(found.arms, 'arm')}, {_count(contexts, 'context')}, T = {found.horizon:,}"
    console.print(Text(problem.name or "The problem", style="bold") + Text(f": {size}"))

    each = contexts > 1 and contexts <= _MOST_CONTEXT_COLUMNS
    tables = found.p_best if each else found.p_best.mean(axis=0, keepdims=True)
    heads = [_in_short(context) for context in found.contexts] if each else ["p*"]
    which = "" if each or contexts == 1 else ", mean over contexts"
    console.print(
        f"\nHow likely each arm is the best before anything was seen{which} "
        f"({found.samples:,} draws, ±{found.p_best_radius:.4f} at confidence 0.999)",
        style="bold",
    )
    _print_table(
        console,
        ("arm", *heads),
        [(str(arm), *(f"{p:.4f}" for p in tables[:, i])) for i, arm in enumerate(problem.arms)],
        right=tuple(heads),
    )
    of = "the best arm" if contexts == 1 else "the map from context to best arm"
    console.print(
        f"\nEntropy of {of}: H = {found.entropy:.4f} ± {found.entropy_error:.4f} nats, "
        f"at most {found.worst_entropy:.4f}"
    )
    if not found.is_joint:
        console.print(
            f"(There are too few draws for the {found.maps_seen:,} maps seen, so this is the sum "
            "over contexts, which is never smaller.)"
        )
    _show_bound_values(console, found)
    console.print()
    console.print(_what_intervals_say(found))
    console.print("\nK is the number of arms; docs/bounds.md explains the rest.", style="dim")


def _show_bound_values(console: Console, found: Bounds) -> None:
    values, span = found.values(), found.reward_span
    names = {
        "corollary_1": "Corollary 1, the worst case",
        "theorem_1": f"Theorem 1, TS, Γ² = K/2 = {found.arms / 2:g}",
        "corollary_2": "Corollary 2, IDS with exact Δ and g",
        "theorem_2": f"Theorem 2, IDS, N = {found.policy_samples:,}",
    }
    units = "" if span == 1 else f" (in the reward's own units, which span {span:g})"
    console.print(f"\nExpected regret after T rounds is at most{units}", style="bold")
    _print_table(
        console,
        ("bound", "regret", "of the worst case"),
        [
            (text, _number(values[name] * span), _share(values[name], values["corollary_1"]))
            for name, text in names.items()
        ],
        right=("regret", "of the worst case"),
    )
    if values["corollary_2"] > found.horizon:
        console.print(
            f"\nMore than {found.horizon * span:,g} can't be lost in {found.horizon:,} rounds: "
            "bounds above that say nothing."
        )
    console.print(
        f"\nThe prior lowers the coefficient of √T from {found.worst_coefficient:.4f} to "
        f"{found.coefficient:.4f}: {100 * found.saving:.1f} % less."
    )
    console.print(
        f"Along one run of TS the largest Γ² was {found.run.largest_ratio:.3f}; were it never "
        f"larger, Theorem 1 would give {_number(values['theorem_1_run'] * span)} "
        f"({_share(values['theorem_1_run'], values['corollary_1'])}). That is a measurement, not a "
        "bound."
    )


def _what_intervals_say(found: Bounds) -> str:
    run, rounds = found.run, found.horizon
    if not run.infinite_rounds:
        gamma = (
            f"γ_t is finite in every round, and its sum is between {_number(run.gamma_low)} and "
            f"{_number(run.gamma_high)}."
        )
    else:
        gamma = (
            f"γ_t is infinite in {run.infinite_rounds:,} of {rounds:,} rounds, so Theorem 2 says "
            "nothing."
        )
    some = f"from about N = {found.samples_for_some:,.0f} on"
    if isinf(found.samples_for_some):
        some = "for no N"
    every = f"from about N = {found.samples_for_all:,.0f} on"
    if found.unresolved:
        every = f"perhaps never: of some arms g can't be told from 0 by {found.samples:,} draws"
    elif isinf(found.samples_for_all):
        every = "for no N"
    return (
        f"With N = {found.policy_samples:,} draws in a round, Lemma 4 says no more of any arm's "
        f"information gain g than that it is between 0 and log r in {run.vacuous_rounds:,} of "
        f"{rounds:,} rounds; {gamma} Before anything was seen the lower bound on some arm's gain "
        f"is positive {some}, that of every arm {every}."
    )


def final_table(result: Result) -> list[dict[str, Any]]:
    """The mean final regret of each policy on each problem, with its standard error."""
    from dowise.simulation.analysis import spread_of

    final, rows = result.final(), []
    for problem in dict.fromkeys(final.index.get_level_values("problem")):
        for policy in final.columns:
            found = spread_of(final.loc[problem][policy])
            rows.append(
                {
                    "problem": problem,
                    "policy": policy,
                    "regret": found.mean,
                    "standard_error": found.error if found.trials > 1 else None,
                    "trials": found.trials,
                }
            )
    return rows


def show_race(result: Result, out: Path | None) -> None:
    """Final regrets of every policy on every problem."""
    rows = final_table(result)
    _print_table(
        _console(),
        ("problem", "policy", "final regret", "standard error", "trials"),
        [
            (row["problem"], row["policy"], f"{row['regret']:.2f}",
             "" if row["standard_error"] is None else f"{row['standard_error']:.2f}",
             f"{row['trials']:,}")
            for row in rows
        ],
        right=("final regret", "standard error", "trials"),
    )  # fmt: skip
    _show_differences(result)
    if out is not None:
        _console().print(f"\nThe results are in {out}", soft_wrap=True)


def _show_differences(result: Result) -> None:
    """Every other policy against the first, in the same worlds."""
    from dowise.simulation.analysis import spread_of

    final = result.final()
    first, *others = final.columns
    rows = []
    for problem in dict.fromkeys(final.index.get_level_values("problem")):
        own = final.loc[problem]
        for other in others:
            found = spread_of(own[other].to_numpy() - own[first].to_numpy())
            low, high = found.interval
            rows.append((problem, f"{other} − {first}", f"{found.mean:+.2f}",
                         f"{low:+.2f} to {high:+.2f}"))  # fmt: skip
    if rows and len(final) > len(dict.fromkeys(final.index.get_level_values("problem"))):
        console = _console()
        console.print("\nPaired differences", style="bold")
        _print_table(
            console, ("problem", "difference", "mean", "95 % interval"), rows, right=("mean",)
        )


def show_reproduction(found: Reproduction) -> None:
    """Final regrets panel by panel, which claims hold, and where the report is."""
    console = _console()
    policies = list(next(iter(found.finals.values())))
    console.print("Final regret ± standard error", style="bold")
    _print_table(
        console,
        ("panel", *policies),
        [
            (
                name,
                *(f"{finals[policy].mean:.1f} ±{finals[policy].error:.1f}" for policy in policies),
            )
            for name, finals in found.finals.items()
        ],
        right=tuple(policies),
    )
    made = [claim for claims in found.claims.values() for claim in claims]
    console.print(
        f"\nOf {len(made)} claims of the paper "
        f"{sum(claim.verdict == 'holds' for claim in made)} hold, "
        f"{sum(claim.verdict == 'does not hold' for claim in made)} do not, and "
        f"{sum(claim.verdict == 'not shown' for claim in made)} are not shown by so many trials."
    )
    console.print(f"The report is {found.path / 'report.html'}", soft_wrap=True)


def tracked(items: Iterable[Any], what: str) -> Iterable[Any]:
    """Go through the items with a progress bar on the terminal, if there is one."""
    console = Console(stderr=True)
    if not console.is_terminal:
        return items
    return track(items, what, console=console, transient=True)


def _in_short(context: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={label}" for name, label in context.items())


def _share(value: float, whole: float) -> str:
    return "—" if isinf(value) or not whole else f"{100 * value / whole:.1f} %"


def _number(value: float) -> str:
    return "infinite" if isinf(value) else f"{value:,.2f}"


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
