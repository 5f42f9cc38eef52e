"""What `dowise check` prints for people."""

from __future__ import annotations

from dowise.belief import Belief
from dowise.belief.evidence import Evidence
from dowise.cli.tables import count, plain_console, print_table

__all__ = ["show_evidence"]


def show_evidence(belief: Belief, evidence: Evidence) -> None:
    """The alarm, the edges that the graph lacks, the doubtful ones, and what was left out."""
    console = plain_console()
    console.print(str(evidence), style="bold" if evidence.alarms else None)
    if evidence.edges:
        console.print("\nEdges that the graph lacks", style="bold")
        print_table(
            console,
            ("edge", "it would mean that", "Bayes factor", "the records speak", "judged by"),
            evidence.rows(),
            right=("Bayes factor", "judged by"),
        )
    if belief.problem.edge_priors:
        console.print("\nDoubtful edges", style="bold")
        priors, chances = belief.problem.edge_priors, belief.edges()
        print_table(
            console,
            ("edge", "before", "now"),
            [(edge, f"{priors[edge]:.2f}", f"{now:.2f}") for edge, now in chances.items()],
            right=("before", "now"),
        )
    console.print(f"\n{count(evidence.records, 'record')}", style="bold")
    if not belief.unused:
        console.print("  used whole")
    for name, reasons in belief.unused.items():
        for reason, times in reasons.items():
            console.print(f"  {name} was left out of {count(times, 'record')}: {reason}")
