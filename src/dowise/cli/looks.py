"""Commands that look at a live experiment and change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from dowise.cli.group import command, print_json
from dowise.cli.numbers import Number, WholeNumber
from dowise.cli.own_policies import named_policy
from dowise.cli.store import Where, decision_number, on_store

__all__ = ["audit", "evaluate", "explain", "export", "status"]


def _figure(what: str) -> Callable[[Any], Any]:
    return click.option(
        "--figure", type=click.Path(path_type=Path), metavar="FILE",
        help=f"Draw {what} to a .png, .svg or .pdf file.",
    )  # fmt: skip


def _track(what: str) -> Any:
    """What shows how far a walk through the journal is."""
    from dowise.cli.progress import tracked

    def track(events: Iterable[Any], total: int) -> Iterable[Any]:
        return tracked(events, what, total)

    return track


@contextmanager
def _walk(where: Where, what: str) -> Iterator[Any]:
    """Shows how far a walk through the journal is; that of a server can't be watched from here."""
    from dowise.cli.progress import working

    if where.is_server:
        with working(f"{what} …"):
            yield None
    else:
        yield _track(what)


@command("""\
  dowise status ward.db
  dowise status ward.db -c Age=1 --tolerance 0.01
  dowise status ward.db --rounds 200
  dowise status ward.db --figure ward.png
  dowise status ward.db --json""")
@on_store(acts=False, policies=True)
@click.option(
    "-c", "--context", "context", multiple=True, metavar="NAME=VALUE",
    help="Look at this context only; once for each context variable.",
)  # fmt: skip
@click.option(
    "--tolerance", type=Number(0), metavar="X",
    help="A loss a round, in the reward's units, that does not matter: say whether to stop.",
)  # fmt: skip
@click.option(
    "--rounds", type=WholeNumber(1), metavar="K",
    help="Say what so many rounds more are worth against staying with what looks best now.",
)  # fmt: skip
@_figure("the intervals, P(best) along the way, and regrets")
@click.option(
    "--evidence/--no-evidence", default=None, show_default="if it takes less than a second",
    help="Look at what the records say against the graph.",
)  # fmt: skip
def status(
    where: Where,
    as_json: bool,
    context: tuple[str, ...],
    tolerance: float | None,
    rounds: int | None,
    figure: Path | None,
    evidence: bool | None,
) -> None:
    """Where an experiment stands: what each arm brings, how sure that is, whether to stop.

    For each context the posterior mean reward of every arm with its 90 % credible interval, the
    probability that it is the best, and how often it was played; the expected regret of stopping
    now, in the reward's units, and with --rounds what playing on is worth; what is pending; what
    could not be used and why; what the records say about the graph.
    """
    from dowise.cli.pairs import context_of
    from dowise.cli.progress import working
    from dowise.cli.show_looks import show_status
    from dowise.picture.drawing import check_path

    if figure is not None:
        check_path(figure)
    with where.open() as experiment:
        seen = context_of(context, experiment.problem.context) if context else None
        with working("Reading the journal …"):
            found = experiment.status(seen, evidence, rounds)
        if figure is not None:
            with _walk(where, "Drawing") as track:
                experiment.figure(figure, seen, tolerance, track)
    if as_json:
        print_json(found.as_dict(tolerance))
        return
    show_status(found, tolerance)
    if figure is not None:
        click.echo(f"\nDrawn in {figure}")


@command("""\
  dowise explain ward.db 12
  dowise explain ward.db 12 --figure then.svg
  dowise explain ward.db 12 --json""")
@on_store(acts=False, policies=True)
@click.argument("number", metavar="ID")
@_figure("the intervals as they were then")
def explain(where: Where, as_json: bool, number: str, figure: Path | None) -> None:
    """Why a decision came out as it did.

    What was known when it was made, what each arm was expected to cost and to teach by then, and
    why it was this one.
    """
    from dowise.cli.show_looks import show_explanation

    with where.open() as experiment, _walk(where, "Reading the journal") as track:
        found = experiment.explain(decision_number(number), track)
    if figure is not None:
        found.figure(figure)
    if as_json:
        print_json(found.as_dict())
        return
    show_explanation(found)
    if figure is not None:
        click.echo(f"\nDrawn in {figure}")


@command("""\
  dowise export ward.db ward.csv
  dowise export ward.db ward.parquet""")
@on_store(acts=False)
@click.argument("file", type=click.Path(path_type=Path))
def export(where: Where, as_json: bool, file: Path) -> None:
    """Write all decisions to a table, with their probabilities.

    FILE ends in .csv or .parquet. It has a row for each decision, pending and withdrawn ones too:
    id, asked_at, status, arm (what was played), probability, probabilities and allowed (as JSON),
    then the variables, empty where a value is missing. `dowise import` reads it back.
    """
    from dowise.cli.progress import working
    from dowise.cli.tables import count

    with where.open() as experiment, working("Writing …"):
        rows = experiment.export(file)
    if as_json:
        print_json({"file": str(file), "rows": rows})
    else:
        click.echo(f"{count(rows, 'decision')} in {file}")


@command(
    """\
  dowise evaluate ward.db ts
  dowise evaluate ward.db ids --option samples=200 --level 0.95
  dowise evaluate ward.db 'do(Dose=low)'""",
    policies=True,
)
@on_store(acts=False, policies=True)
@click.argument("policy", callback=named_policy)
@click.option(
    "--option", "pairs", multiple=True, metavar="NAME=VALUE",
    help="An option of the policy, such as samples=1000; may be repeated.",
)  # fmt: skip
@click.option(
    "--level", type=Number(0, 1, min_open=True, max_open=True), default=0.9,
    show_default=True, help="Of the intervals.",
)  # fmt: skip
def evaluate(
    where: Where, as_json: bool, policy: str, pairs: tuple[str, ...], level: float
) -> None:
    """What another policy would have brought on the same decisions.

    POLICY is the name of one, or an arm that it would always have played. By inverse propensity and
    doubly robust, with intervals that hold for data which were collected adaptively. Where it would
    have played what had probability 0, inverse propensity is refused.
    """
    from dowise.cli.pairs import options_of
    from dowise.cli.show_looks import show_evaluation

    with where.open() as experiment, _walk(where, "Evaluating") as track:
        found = experiment.evaluate(policy, options_of(pairs), level, track)
    if as_json:
        print_json(found.as_dict())
    else:
        show_evaluation(found)


@command("""\
  dowise audit ward.db
  dowise audit ward.db --head 412:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
  dowise audit ward.db --head 412:9f86d081884c
  dowise audit ward.db --json""")
@on_store(acts=False, policies=True)
@click.option(
    "--head", metavar="N:HASH",
    help="Number and hash of a last event, kept elsewhere: finds a cut or rewritten tail too. "
    "At least the first 12 digits of the hash, as pages show it.",
)  # fmt: skip
@click.pass_context
def audit(process: click.Context, where: Where, as_json: bool, head: str | None) -> None:
    """Whether the journal is whole, and every decision follows from what was known then.

    Names the first event that was changed, removed or moved, or the first decision that does not
    follow, with exit status 1. Decisions that another version or processor made are told apart.
    """
    from dowise.cli.show_looks import show_audit

    with where.open() as experiment, _walk(where, "Auditing") as track:
        found = experiment.audit(head, track)
    if as_json:
        print_json(found.as_dict())
    else:
        show_audit(found)
    process.exit(0 if found.ok else 1)
