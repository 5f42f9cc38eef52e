"""What `dowise check` prints for people."""

from __future__ import annotations

from collections.abc import Container

from rich.console import Console

from dowise.belief import Belief
from dowise.belief.evidence import Evidence
from dowise.belief.evidence.report import in_words
from dowise.belief.evidence.rising import LIKELY
from dowise.cli.tables import count, plain_console, print_table

__all__ = ["favoured", "show_evidence", "used"]

GROWN = 3.0  # times the odds that an edge had before


def used(belief: Belief) -> int:
    """How many records taught something about the reward."""
    return belief.times_learned()[belief.problem.reward]


def favoured(belief: Belief) -> list[str]:
    """The doubtful edges that are now likely, and whose odds have grown threefold or more.

    The one that has grown most comes first. Two that look alike share one probability, so that a
    half each would be too much to ask for.
    """
    priors, chances = belief.problem.edge_priors, belief.edges()
    return [
        x
        for x in _by_change(belief)
        if chances[x] > LIKELY and _factor(priors[x], chances[x]) >= GROWN
    ]


def show_evidence(belief: Belief, evidence: Evidence, columns: Container[str]) -> None:
    """The alarm, the edges that the graph lacks, the doubtful ones, and what was left out."""
    console = plain_console()
    if not used(belief):
        console.print(_why_none(belief, evidence.records, columns), style="bold")
    likely, chances = favoured(belief), belief.edges()
    if likely:
        each = ", ".join(f"{x} ({belief.problem.edge_priors[x]:.2f} before, {chances[x]:.2f} now)"
                         for x in likely)  # fmt: skip
        console.print(f"The records favour {count(len(likely), 'doubtful edge')}: {each}.",
                      style="bold")  # fmt: skip
    if evidence.scored.any() or used(belief):
        console.print(str(evidence), style="bold" if evidence.alarms else None)
        _show_alternatives(console, evidence)
    if belief.problem.edge_priors:
        _show_doubtful(console, belief)
    console.print(f"\n{count(evidence.records, 'record')}", style="bold")
    if not belief.unused and evidence.records:
        console.print("  used whole")
    for name, reasons in belief.unused.items():
        for reason, times in reasons.items():
            console.print(f"  {name} was left out of {count(times, 'record')}: {reason}")


def _why_none(belief: Belief, records: int, columns: Container[str]) -> str:
    if not records:
        return "There are no records: the table has no rows."
    lacking = filter(None, belief.lacking().get(belief.problem.reward, {}))
    why = [f"{x} was not seen" if x in columns else f"the table has no column {x}" for x in lacking]
    reasons = ", ".join(why) or "no arm needs what they tell"
    return (
        f"None of {count(records, 'record')} could be used for {belief.problem.reward}: {reasons}."
    )


def _show_alternatives(console: Console, evidence: Evidence) -> None:
    rows, silent = evidence.rows(), int((evidence.scored == 0).sum())
    if rows:
        console.print("\nEdges that the graph lacks", style="bold")
        print_table(
            console,
            ("edge", "it would mean that", "Bayes factor", "the records speak", "judged by"),
            rows,
            right=("Bayes factor", "judged by"),
        )
    if silent:
        console.print(f"  {count(silent, 'edge')} that no record tells of left out; --json has all")


def _show_doubtful(console: Console, belief: Belief) -> None:
    console.print("\nDoubtful edges", style="bold")
    priors, chances = belief.problem.edge_priors, belief.edges()
    silent = belief.undecidable_edges
    words = {x: in_words(_factor(priors[x], chances[x])) for x in chances}
    words |= dict.fromkeys(silent, "nothing: no arm needs it")
    print_table(
        console,
        ("edge", "before", "now", "the records speak"),
        [(x, f"{priors[x]:.2f}", f"{chances[x]:.2f}", words[x]) for x in _by_change(belief)],
        right=("before", "now"),
    )


def _by_change(belief: Belief) -> list[str]:
    priors, chances = belief.problem.edge_priors, belief.edges()
    return sorted(chances, key=lambda x: -_factor(priors[x], chances[x]))


def _factor(before: float, now: float) -> float:
    """By what the odds have grown."""
    return float("inf") if now >= 1 else now * (1 - before) / ((1 - now) * before)
