"""What the commands that look at a live experiment print for people."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from dowise.cli.tables import count, plain_console, print_indented, print_table, print_wrapped
from dowise.experiment.arms import ArmsStatus
from dowise.experiment.audit import Audit
from dowise.experiment.evaluation import Estimated, Evaluation
from dowise.experiment.explain import Explanation
from dowise.experiment.status import Status
from dowise.experiment.status_words import (
    context_text,
    continuing_in_words,
    decisions_in_words,
    graph_in_words,
    lacking_in_words,
    leader_in_words,
    pending_in_words,
    stopping_in_words,
)
from dowise.plain import amount

__all__ = ["show_audit", "show_evaluation", "show_explanation", "show_status"]

_CONTEXTS, _ARMS = 8, 12  # with more of them, those that matter are shown
_ARM_COLUMNS = ("arm", "mean", "90 % interval", "P(best)", "plays")


def show_status(status: Status, tolerance: float | None) -> None:
    """A table for each context, then what there is to say."""
    console = plain_console()
    console.print(status.name, style="bold")
    print_indented(console, decisions_in_words(status))
    shown = sorted(status.contexts, key=lambda one: -one.weight)[:_CONTEXTS]
    for one in status.contexts:
        if one in shown:
            _show_arms(console, status, one)
    if len(shown) < len(status.contexts):
        left = len(status.contexts) - len(shown)
        console.print(f"\n{count(left, 'context')} not shown: -c NAME=VALUE, or --json")
    console.print()
    print_wrapped(console, stopping_in_words(status), "bold")
    for line in continuing_in_words(status):
        print_wrapped(console, line, "bold")
    if tolerance is not None:
        print_wrapped(console, status.advice(tolerance), "bold")
    has_alarm = bool(status.alarms)
    for title, lines, style in (
        ("Pending", pending_in_words(status), None),
        ("To know", [*lacking_in_words(status), *status.notes], None),
        ("The graph", graph_in_words(status), "bold" if has_alarm else None),
    ):
        said = list(lines)
        if said:
            console.print(f"\n{title}", style="bold")
        for line in said:
            print_indented(console, line, style)


def _show_arms(console: Console, status: Status, one: ArmsStatus) -> None:
    if one.context:
        came = f" ({one.weight:.0%} of decisions)" if status.has_contexts else ""
        where = came if not status.is_one_context else ""
        console.print(f"\n{context_text(one)}{where}", style="bold")
    else:
        console.print()
    order = list(range(len(one.arms)))
    if len(order) > _ARMS:
        order = sorted(order, key=lambda i: (i != one.leader, -one.best[i], i))[:_ARMS]
    rows = [
        (
            str(one.arms[i]), amount(one.mean[i]),
            f"{amount(one.low[i])} to {amount(one.high[i])}",
            f"{one.best[i]:.2f}", f"{one.plays[i]:,}",
        )
        for i in order
    ]  # fmt: skip
    print_table(console, _ARM_COLUMNS, rows, right=("mean", "P(best)", "plays"), alone="arm")
    if len(order) < len(one.arms):
        left = len(one.arms) - len(order)
        console.print(f"  {count(left, 'arm')} less likely to be the best left out; --json has all")
    print_indented(console, leader_in_words(status, one))


def show_explanation(found: Explanation) -> None:
    """The sentences, then the arms as they looked then."""
    console = plain_console()
    first, *rest = found.in_words().splitlines()
    print_wrapped(console, first, "bold")
    for line in rest:
        print_indented(console, line)
    rows, own = found.rows(), found.own
    taught = any(row["bits"] is not None for row in rows)
    columns = ("arm", "probability", "mean", "90 % interval", "P(best)", "cost")
    numbers = (*columns[1:3], *columns[4:], *(["bits"] if taught else []), *own)
    console.print("\nThe arms, by what was known then", style="bold")
    print_table(
        console,
        (*columns, *(["bits"] if taught else []), *own),
        [
            (
                row["arm"],
                _number(row["probability"]) if row["allowed"] else "not allowed",
                amount(row["mean"]),
                f"{amount(row['low'])} to {amount(row['high'])}",
                f"{row['best']:.2f}",
                "" if row["cost"] is None else amount(row["cost"]),
                *([_number(row["bits"])] if taught else []),
                *(_number(value) for value in row["own"].values()),
            )
            for row in _ordered(rows)
        ],
        right=numbers,
        alone="arm",
    )
    meanings = "cost: what a play was expected to cost against the best allowed arm"
    if taught:
        meanings += "; bits: what it was expected to teach about which arm that is"
    print_indented(console, meanings)
    if own:
        console.print(f"  {', '.join(own)}: what the policy reckoned with")


def _ordered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Where there are many, the arms that were likely to be played come first."""
    if len(rows) <= _ARMS:
        return rows
    return sorted(rows, key=lambda row: (-(row["probability"] or 0.0), -row["best"]))


def show_evaluation(found: Evaluation) -> None:
    """The estimates, then what they mean."""
    console = plain_console()
    console.print(f"{found.target} on {count(found.decisions, 'decision')}", style="bold")
    named: list[tuple[str, Estimated | None]] = [
        ("doubly robust", found.dr),
        ("inverse propensity", found.ips),
        ("the policy that decided", found.logged),
        ("difference", found.difference),
    ]
    print_table(
        console,
        ("a decision", f"{100 * found.level:g} % interval", "estimate"),
        [
            (name, f"{amount(one.low)} to {amount(one.high)}", amount(one.value))
            if one is not None
            else (name, "refused", "")
            for name, one in named
        ],
        right=("estimate",),
    )
    console.print()
    for line in found.in_words().splitlines():
        print_indented(console, line)


def show_audit(found: Audit) -> None:
    """The verdict, and what else there is to say."""
    console = plain_console()
    if found.finding is None:
        some = bool(found.not_derivable or found.made_elsewhere)
        follows = f"every decision{' that can be derived again here' if some else ''} follows"
        whole = f"The journal is whole: {count(found.events, 'event')}, {follows}."
        print_wrapped(console, whole, "bold")
    else:
        print_wrapped(console, f"Found at {found.finding}", "bold red")
    if found.head is not None:
        console.print(f"  head {found.head}", soft_wrap=True)
    for note in found.notes():
        print_indented(console, note)


def _number(value: object) -> str:
    if isinstance(value, int | float):
        return amount(value)
    return "" if value is None else str(value)
