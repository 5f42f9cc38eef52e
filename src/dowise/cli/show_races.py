"""What the commands that race policies print for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dowise.cli.tables import plain_console, print_table
from dowise.simulation.analysis import differences, standings

if TYPE_CHECKING:
    from pathlib import Path

    from dowise.simulation import Result
    from dowise.simulation.reproduce import Reproduction

__all__ = ["show_race", "show_reproduction"]


def show_race(result: Result, out: Path | None) -> None:
    """Final regrets of every policy on every problem, and every other policy against the first."""
    console, final = plain_console(), result.final()
    print_table(
        console,
        ("problem", "policy", "final regret", "standard error", "trials"),
        [
            (one.problem, one.policy, f"{one.regret.mean:.2f}",
             f"{one.regret.error:.2f}" if one.regret.trials > 1 else "", f"{one.regret.trials:,}")
            for one in standings(final)
        ],
        right=("final regret", "standard error", "trials"),
    )  # fmt: skip
    paired = [one for one in differences(final) if one.difference.trials > 1]
    if paired:
        console.print("\nPaired differences", style="bold")
        print_table(
            console,
            ("problem", "difference", "mean", "95 % interval"),
            [
                (one.problem, f"{one.policy} − {one.than}", f"{one.difference.mean:+.2f}",
                 "{:+.2f} to {:+.2f}".format(*one.difference.interval))
                for one in paired
            ],
            right=("mean",),
        )  # fmt: skip
    if out is not None:
        console.print(f"\nThe results are in {out}", soft_wrap=True)


def show_reproduction(found: Reproduction) -> None:
    """Final regrets panel by panel, which claims hold, and where the report is."""
    from dowise.simulation.panels import BEYOND, PANELS

    console = plain_console()
    console.print("Final regret ± standard error", style="bold")
    kinds = dict.fromkeys(tuple(finals) for finals in found.finals.values())
    for policies in kinds:  # a table for the panels that have these policies
        print_table(
            console,
            ("panel", *policies),
            [
                (name, *(f"{one.mean:.1f} ±{one.error:.1f}" for one in finals.values()))
                for name, finals in found.finals.items()
                if tuple(finals) == policies
            ],
            right=policies,
        )
    for whose, panels in (("of the paper", PANELS), ("beyond the paper", BEYOND)):
        made = [claim for name in found.claims if name in panels for claim in found.claims[name]]
        if made:
            console.print(
                f"\nOf {len(made)} claims {whose} "
                f"{sum(claim.verdict == 'holds' for claim in made)} hold, "
                f"{sum(claim.verdict == 'does not hold' for claim in made)} do not, and "
                f"{sum(claim.verdict == 'not shown' for claim in made)} are not shown by so many "
                "trials."
            )
    console.print(f"The report is {found.path / 'report.html'}", soft_wrap=True)
