"""Commands that read a live experiment: status, explain, evaluate, export, audit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from dowise._core.document import Document, pluralize
from dowise.cli.arguments import StoreTarget, import_policy, parse_context, parse_options
from dowise.cli.console import print_document, print_json, spinner, track
from dowise.cli.options import (
    Number,
    command,
    context_option,
    decision_argument,
    figure_option,
    integer_option,
    options_option,
    store_command,
)


@contextmanager
def _track_journal(target: StoreTarget, label: str) -> Iterator[Any]:
    """Show the progress of a walk through the journal; for a server, only a spinner."""
    if target.is_server:
        with spinner(f"{label} …"):
            yield None
    else:

        def track_events(events: Iterable[Any], total: int) -> Iterable[Any]:
            return track(events, label, total)

        yield track_events


def _print_result(document: Document, figure: Path | None = None) -> None:
    print_document(document)
    if figure is not None:
        click.echo(f"\nDrawn in {figure}")


@command()
@store_command(writes=False, policies=True)
@context_option("Show this context only; once for each context variable.")
@click.option(
    "--tolerance",
    type=Number(0),
    metavar="X",
    help="Loss per round, in the reward's units, that does not matter: advise whether to stop.",
)
@integer_option(
    "--rounds",
    "K",
    "Show what K more rounds are worth compared with staying with the current best.",
)
@figure_option("--figure", "the intervals, P(best) over time, and regrets")
@click.option(
    "--evidence/--no-evidence",
    default=None,
    show_default="if it takes less than a second",
    help="Show what the records say against the graph.",
)
def status(
    target: StoreTarget,
    as_json: bool,
    context: tuple[str, ...],
    tolerance: float | None,
    rounds: int | None,
    figure: Path | None,
    evidence: bool | None,
) -> None:
    """Show what each arm is worth, and whether to stop.

    For each context: the posterior mean reward of every arm with its 90 % credible interval, the
    probability that it is the best, and how often it was played; the expected loss of stopping now,
    in the reward's units, and with --rounds what continuing is worth; pending decisions; what could
    not be used and why; what the records say about the graph.

    Examples:
      dowise status ward.db
      dowise status ward.db -c Age=1 --tolerance 0.01
      dowise status ward.db --rounds 200
      dowise status ward.db --figure ward.png
      dowise status ward.db --json
    """
    from dowise.plotting.figures import check_path

    if figure is not None:
        check_path(figure)
    with target.open() as experiment:
        values = parse_context(context, experiment.problem.context) if context else None
        with spinner("Reading the journal …"):
            result = experiment.status(values, evidence, rounds)
        if figure is not None:
            with _track_journal(target, "Drawing") as track_events:
                experiment.figure(figure, values, tolerance, track_events)
    if as_json:
        print_json(result.as_dict(tolerance))
    else:
        _print_result(result.document(tolerance), figure)


@command()
@store_command(writes=False, policies=True)
@decision_argument
@figure_option("--figure", "the intervals as they were then")
def explain(target: StoreTarget, as_json: bool, number: int, figure: Path | None) -> None:
    """Explain why the arm of decision ID was chosen.

    Shows what was known at that time, what each arm was expected to cost and to reveal, and why
    this one was chosen.

    Examples:
      dowise explain ward.db 12
      dowise explain ward.db 12 --figure then.svg
      dowise explain ward.db 12 --json
    """
    with target.open() as experiment, _track_journal(target, "Reading the journal") as track_events:
        result = experiment.explain(number, track_events)
    if figure is not None:
        result.figure(figure)
    if as_json:
        print_json(result.as_dict())
    else:
        _print_result(result.document(), figure)


@command()
@store_command(writes=False)
@click.argument("file", type=click.Path(path_type=Path))
def export(target: StoreTarget, as_json: bool, file: Path) -> None:
    """Write all decisions to a table, with their probabilities.

    FILE ends in .csv or .parquet. It has a row for each decision, including pending and withdrawn
    ones: id, asked_at, status, arm (what was played), probability, probabilities and allowed (as
    JSON), then the variables, empty if a value is missing. `dowise import` reads it back.

    Examples:
      dowise export ward.db ward.csv
      dowise export ward.db ward.parquet
    """
    with target.open() as experiment, spinner("Writing …"):
        rows = experiment.export(file)
    if as_json:
        print_json({"file": str(file), "rows": rows})
    else:
        click.echo(f"{pluralize(rows, 'decision')} in {file}")


@command(policies=True)
@store_command(writes=False, policies=True)
@click.argument("policy", callback=import_policy)
@options_option
@click.option(
    "--level",
    type=Number(0, 1, min_open=True, max_open=True),
    default=0.9,
    show_default=True,
    help="Level of the intervals.",
)
def evaluate(
    target: StoreTarget, as_json: bool, policy: str, pairs: tuple[str, ...], level: float
) -> None:
    """Estimate what another policy would have earned.

    POLICY is the name of a policy, or an arm that would always have been played. The estimates from
    the decisions of the experiment are inverse propensity and doubly robust, with intervals that
    hold for adaptively collected data. If the policy would have played what had probability 0,
    inverse propensity is refused.

    Examples:
      dowise evaluate ward.db ts
      dowise evaluate ward.db ids --option samples=200 --level 0.95
      dowise evaluate ward.db 'do(Dose=low)'
    """
    with target.open() as experiment, _track_journal(target, "Evaluating") as track_events:
        result = experiment.evaluate(policy, parse_options(pairs), level, track_events)
    if as_json:
        print_json(result.as_dict())
    else:
        _print_result(result.document())


@command()
@store_command(writes=False, policies=True)
@click.option(
    "--head",
    metavar="N:HASH",
    help="Number and hash of an earlier last event, kept elsewhere: finds a cut or rewritten tail "
    "too. At least the first 12 digits of the hash, as pages show it.",
)
@click.pass_context
def audit(process: click.Context, target: StoreTarget, as_json: bool, head: str | None) -> None:
    """Verify the journal, and derive every decision again.

    Names the first event that was changed, removed or moved, or the first decision that does not
    follow from what was known then, and exits with status 1. Decisions made by another version or
    processor are reported separately.

    Examples:
      dowise audit ward.db
      dowise audit ward.db --head 412:9f86d081884c
      dowise audit ward.db --json
    """
    with target.open() as experiment, _track_journal(target, "Auditing") as track_events:
        result = experiment.audit(head, track_events)
    if as_json:
        print_json(result.as_dict())
    else:
        _print_result(result.document())
        if result.head is not None:
            click.echo(f"  head {result.head}")  # unbroken, so that it can be copied
    process.exit(0 if result.ok else 1)
