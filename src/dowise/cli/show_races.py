"""What the commands that race policies print for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dowise.cli.tables import plain_console, print_table
from dowise.simulation.analysis import Spread, differences, standings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rich.console import Console

    from dowise.simulation import Result
    from dowise.simulation.reproduce import Reproduction

__all__ = ["show_race", "show_reproduction"]


def show_race(result: Result, out: Path | None) -> None:
    """Final regrets of every policy on every problem, and every other policy against the first.

    With expected regret beside them, where the race has it.
    """
    console, finals = plain_console(), [result.final(measure) for measure in result.measures]
    several = len(finals) > 1
    print_table(
        console,
        ("problem", "policy", "final regret",
         *(("error", "expected regret", "error") if several else ("standard error",)), "trials"),
        [
            (one[0].problem, one[0].policy, *(text for x in one for text in _with_error(x.regret)),
             f"{one[0].regret.trials:,}")
            for one in zip(*map(standings, finals), strict=True)
        ],
        right=("final regret", "standard error", "error", "expected regret", "trials"),
    )  # fmt: skip
    of_each = [differences(final) for final in finals]
    paired = [one for one in zip(*of_each, strict=True) if one[0].difference.trials > 1]
    if paired:
        console.print("\nPaired differences", style="bold")
        print_table(
            console,
            ("problem", "difference", "mean", "95 % interval",
             *(("expected", "95 % interval") if several else ())),
            [
                (one[0].problem, f"{one[0].policy} − {one[0].than}",
                 *(text for x in one for text in _with_interval(x.difference)))
                for one in paired
            ],
            right=("mean", "expected"),
        )  # fmt: skip
    if out is not None:
        console.print(f"\nThe results are in {out}", soft_wrap=True)


def _with_error(one: Spread) -> tuple[str, str]:
    return f"{one.mean:.2f}", f"{one.error:.2f}" if one.trials > 1 else ""


def _with_interval(one: Spread) -> tuple[str, str]:
    return f"{one.mean:+.2f}", "{:+.2f} to {:+.2f}".format(*one.interval)


def show_reproduction(found: Reproduction) -> None:
    """Final regrets panel by panel, which claims hold, and where the report is."""
    from dowise.simulation.paper_panels import BEYOND, PANELS

    console = plain_console()
    console.print("Final regret ± standard error", style="bold")
    _show_finals(console, found.finals)
    if found.expected:
        console.print("\nExpected regret ± standard error", style="bold")
        _show_finals(console, found.expected)
    for whose, panels in (("of the paper", PANELS), ("beyond the paper", BEYOND)):
        made = [claim for name in found.claims if name in panels for claim in found.claims[name]]
        if made:
            by = dict.fromkeys(_WORDS[claim.measure] for claim in made)
            console.print(
                f"\nOf {len(made)} claims {whose}, judged by {' or '.join(by)}, "
                f"{sum(claim.verdict == 'holds' for claim in made)} hold, "
                f"{sum(claim.verdict == 'does not hold' for claim in made)} do not, and "
                f"{sum(claim.verdict == 'not shown' for claim in made)} are not shown by so many "
                "trials."
            )
    console.print(f"The report is {found.path / 'report.html'}", soft_wrap=True)


_WORDS = {"expected": "expected regret", "regret": "regret"}


def _show_finals(console: Console, panels: Mapping[str, Mapping[str, Spread]]) -> None:
    kinds = dict.fromkeys(tuple(finals) for finals in panels.values())
    for policies in kinds:  # a table for the panels that have these policies
        print_table(
            console,
            ("panel", *policies),
            [
                (name, *(f"{one.mean:.1f} ±{one.error:.1f}" for one in finals.values()))
                for name, finals in panels.items()
                if tuple(finals) == policies
            ],
            right=policies,
        )
