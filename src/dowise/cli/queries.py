"""Commands that read a live experiment: status, explain, evaluate, export, audit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dowise._core.document import (
    Block,
    BulletList,
    Document,
    Heading,
    Paragraph,
    Table,
    format_number,
    pluralize,
)
from dowise.cli.arguments import (
    Number,
    StoreTarget,
    WholeNumber,
    command,
    import_policy,
    parse_context,
    parse_decision_id,
    parse_options,
    store_command,
)
from dowise.cli.console import print_document, print_json, spinner, track

if TYPE_CHECKING:
    from dowise.experiment.audit import Audit
    from dowise.experiment.evaluation import Evaluation
    from dowise.experiment.explanation import Explanation
    from dowise.experiment.status import ArmsStatus, Status


def _figure_option(content: str) -> Callable[[Any], Any]:
    return click.option(
        "--figure",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help=f"Draw {content} to a .png, .svg or .pdf file.",
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


def _print_result(blocks: Iterable[Block], figure: Path | None = None) -> None:
    print_document(Document(tuple(blocks)))
    if figure is not None:
        click.echo(f"\nDrawn in {figure}")


@command("""\
  dowise status ward.db
  dowise status ward.db -c Age=1 --tolerance 0.01
  dowise status ward.db --rounds 200
  dowise status ward.db --figure ward.png
  dowise status ward.db --json""")
@store_command(writes=False, policies=True)
@click.option(
    "-c",
    "--context",
    "context",
    multiple=True,
    metavar="NAME=VALUE",
    help="Show this context only; once for each context variable.",
)
@click.option(
    "--tolerance",
    type=Number(0),
    metavar="X",
    help="Loss per round, in the reward's units, that does not matter: advise whether to stop.",
)
@click.option(
    "--rounds",
    type=WholeNumber(1),
    metavar="K",
    help="Show what K more rounds are worth compared with staying with the current best.",
)
@_figure_option("the intervals, P(best) over time, and regrets")
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
    """Show what each arm is worth, how sure that is, and whether to stop.

    For each context: the posterior mean reward of every arm with its 90 % credible interval, the
    probability that it is the best, and how often it was played; the expected loss of stopping now,
    in the reward's units, and with --rounds what continuing is worth; pending decisions; what could
    not be used and why; what the records say about the graph.
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
        _print_result(status_blocks(result, tolerance), figure)


@command("""\
  dowise explain ward.db 12
  dowise explain ward.db 12 --figure then.svg
  dowise explain ward.db 12 --json""")
@store_command(writes=False, policies=True)
@click.argument("number", metavar="ID")
@_figure_option("the intervals as they were then")
def explain(target: StoreTarget, as_json: bool, number: str, figure: Path | None) -> None:
    """Explain why decision ID came out as it did.

    What was known when it was made, what each arm was expected to cost and to teach, and why this
    one was chosen.
    """
    with target.open() as experiment, _track_journal(target, "Reading the journal") as track_events:
        result = experiment.explain(parse_decision_id(number), track_events)
    if figure is not None:
        result.figure(figure)
    if as_json:
        print_json(result.as_dict())
    else:
        _print_result(explanation_blocks(result), figure)


@command("""\
  dowise export ward.db ward.csv
  dowise export ward.db ward.parquet""")
@store_command(writes=False)
@click.argument("file", type=click.Path(path_type=Path))
def export(target: StoreTarget, as_json: bool, file: Path) -> None:
    """Write all decisions to a table, with their probabilities.

    FILE ends in .csv or .parquet. It has a row for each decision, including pending and withdrawn
    ones: id, asked_at, status, arm (what was played), probability, probabilities and allowed (as
    JSON), then the variables, empty if a value is missing. `dowise import` reads it back.
    """
    with target.open() as experiment, spinner("Writing …"):
        rows = experiment.export(file)
    if as_json:
        print_json({"file": str(file), "rows": rows})
    else:
        click.echo(f"{pluralize(rows, 'decision')} in {file}")


@command(
    """\
  dowise evaluate ward.db ts
  dowise evaluate ward.db ids --option samples=200 --level 0.95
  dowise evaluate ward.db 'do(Dose=low)'""",
    policies=True,
)
@store_command(writes=False, policies=True)
@click.argument("policy", callback=import_policy)
@click.option(
    "--option",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Option of the policy, such as samples=1000; may be repeated.",
)
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
    """Estimate what another policy would have earned on the same decisions.

    POLICY is the name of a policy, or an arm that would always have been played. The estimates are
    inverse propensity and doubly robust, with intervals that hold for adaptively collected data. If
    the policy would have played what had probability 0, inverse propensity is refused.
    """
    with target.open() as experiment, _track_journal(target, "Evaluating") as track_events:
        result = experiment.evaluate(policy, parse_options(pairs), level, track_events)
    if as_json:
        print_json(result.as_dict())
    else:
        _print_result(evaluation_blocks(result))


@command("""\
  dowise audit ward.db
  dowise audit ward.db --head 412:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
  dowise audit ward.db --head 412:9f86d081884c
  dowise audit ward.db --json""")
@store_command(writes=False, policies=True)
@click.option(
    "--head",
    metavar="N:HASH",
    help="Number and hash of an earlier last event, kept elsewhere: finds a cut or rewritten tail "
    "too. At least the first 12 digits of the hash, as pages show it.",
)
@click.pass_context
def audit(process: click.Context, target: StoreTarget, as_json: bool, head: str | None) -> None:
    """Check that the journal is whole and that every decision follows from what was known then.

    Names the first event that was changed, removed or moved, or the first decision that does not
    follow, and exits with status 1. Decisions made by another version or processor are reported
    separately.
    """
    with target.open() as experiment, _track_journal(target, "Auditing") as track_events:
        result = experiment.audit(head, track_events)
    if as_json:
        print_json(result.as_dict())
    else:
        _print_result(audit_blocks(result))
        if result.head is not None:
            click.echo(f"  head {result.head}")  # unbroken, so that it can be copied
    process.exit(0 if result.ok else 1)


_MAX_CONTEXTS, _MAX_ARMS = 8, 12  # if there are more, the most relevant ones are shown


def status_blocks(status: Status, tolerance: float | None) -> Iterator[Block]:
    """A table per context, then whether to stop, what is pending, notes, and the graph."""
    from dowise.experiment.status import (
        continuing_in_words,
        decisions_in_words,
        graph_in_words,
        lacking_in_words,
        pending_in_words,
        stopping_in_words,
    )

    yield Heading(status.name)
    yield BulletList((decisions_in_words(status),))
    shown = sorted(status.contexts, key=lambda arms: -arms.weight)[:_MAX_CONTEXTS]
    for arms in status.contexts:
        if arms in shown:
            yield from _arm_blocks(status, arms)
    if len(shown) < len(status.contexts):
        hidden = pluralize(len(status.contexts) - len(shown), "context")
        yield Paragraph(f"{hidden} not shown: use -c NAME=VALUE, or --json")
    lines = [stopping_in_words(status), *continuing_in_words(status)]
    if tolerance is not None:
        lines.append(status.advice(tolerance))
    yield Paragraph("\n".join(lines), "strong")
    for title, items in (
        ("Pending", pending_in_words(status)),
        ("Notes", [*lacking_in_words(status), *status.notes]),
        ("The graph", graph_in_words(status)),
    ):
        if lines := list(items):
            yield Heading(title)
            has_alarm = title == "The graph" and status.alarms
            yield Paragraph("\n".join(lines), "strong") if has_alarm else BulletList(tuple(lines))


def _arm_blocks(status: Status, arms: ArmsStatus) -> Iterator[Block]:
    from dowise.experiment.status import context_text, leader_in_words

    if arms.context:
        is_share_known = status.has_contexts and not status.is_one_context
        share = f" ({arms.weight:.0%} of decisions)" if is_share_known else ""
        yield Heading(f"{context_text(arms)}{share}")
    order = list(range(len(arms.arms)))
    if len(order) > _MAX_ARMS:
        order = sorted(order, key=lambda i: (i != arms.leader, -arms.best[i], i))[:_MAX_ARMS]
    yield Table(
        ("arm", "mean", "90 % interval", "P(best)", "plays"),
        tuple(
            (
                str(arms.arms[i]),
                format_number(arms.mean[i]),
                f"{format_number(arms.low[i])} to {format_number(arms.high[i])}",
                f"{arms.best[i]:.2f}",
                f"{arms.plays[i]:,}",
            )
            for i in order
        ),
        right=("mean", "P(best)", "plays"),
    )
    lines = [leader_in_words(status, arms)]
    if len(order) < len(arms.arms):
        hidden = pluralize(len(arms.arms) - len(order), "arm")
        lines.insert(0, f"{hidden} less likely to be the best left out; --json has all")
    yield BulletList(tuple(lines))


def explanation_blocks(explanation: Explanation) -> Iterator[Block]:
    """The sentences, then the arms as they looked at the time."""
    first, *rest = explanation.in_words().splitlines()
    yield Heading(first)
    if rest:
        yield BulletList(tuple(rest))
    rows = explanation.rows()
    if len(rows) > _MAX_ARMS:
        rows = sorted(rows, key=lambda row: (-(row["probability"] or 0.0), -row["best"]))
    has_bits = any(row["bits"] is not None for row in rows)
    bits = ("bits",) if has_bits else ()
    columns = ("arm", "probability", "mean", "90 % interval", "P(best)", "cost", *bits)
    yield Heading("The arms, by what was known then")
    yield Table(
        (*columns, *explanation.own),
        tuple(
            (
                row["arm"],
                _format(row["probability"]) if row["allowed"] else "not allowed",
                format_number(row["mean"]),
                f"{format_number(row['low'])} to {format_number(row['high'])}",
                f"{row['best']:.2f}",
                "" if row["cost"] is None else format_number(row["cost"]),
                *([_format(row["bits"])] if has_bits else []),
                *map(_format, row["own"].values()),
            )
            for row in rows
        ),
        right=("probability", "mean", "P(best)", "cost", "bits", *explanation.own),
    )
    notes = ["cost: expected loss of one play against the best allowed arm"]
    if has_bits:
        notes.append("bits: expected information about which arm is best")
    if explanation.own:
        notes.append(f"{', '.join(explanation.own)}: figures of the policy")
    yield BulletList(tuple(notes))


def evaluation_blocks(evaluation: Evaluation) -> Iterator[Block]:
    """The estimates, then what they mean."""
    yield Heading(f"{evaluation.target} on {pluralize(evaluation.decisions, 'decision')}")
    estimates = {
        "doubly robust": evaluation.dr,
        "inverse propensity": evaluation.ips,
        "the policy that decided": evaluation.logged,
        "difference": evaluation.difference,
    }
    yield Table(
        ("per decision", f"{100 * evaluation.level:g} % interval", "estimate"),
        tuple(
            (name, "refused", "")
            if estimate is None
            else (
                name,
                f"{format_number(estimate.low)} to {format_number(estimate.high)}",
                format_number(estimate.value),
            )
            for name, estimate in estimates.items()
        ),
        right=("estimate",),
    )
    yield BulletList(tuple(evaluation.in_words().splitlines()))


def audit_blocks(audit: Audit) -> Iterator[Block]:
    """The verdict and further notes."""
    if audit.finding is None:
        some = bool(audit.not_derivable or audit.made_elsewhere)
        which = " that can be derived again here" if some else ""
        events = pluralize(audit.events, "event")
        yield Paragraph(f"The journal is whole: {events}, every decision{which} follows.", "strong")
    else:
        yield Paragraph(f"Found at {audit.finding}", "warning")
    if notes := tuple(audit.notes()):
        yield BulletList(notes)


def _format(value: object) -> str:
    if isinstance(value, int | float):
        return format_number(value)
    return "" if value is None else str(value)
