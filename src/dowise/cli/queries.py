"""Commands that look at a live experiment and change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from dowise._core.document import format_number
from dowise.cli.arguments import (
    Number,
    StoreTarget,
    WholeNumber,
    command,
    import_policy,
    parse_decision_id,
    store_command,
)
from dowise.cli.console import (
    count,
    plain_console,
    print_indented,
    print_json,
    print_table,
    print_wrapped,
)
from dowise.experiment.audit import Audit
from dowise.experiment.evaluation import Estimated, Evaluation
from dowise.experiment.explanation import Explanation
from dowise.experiment.status import (
    ArmsStatus,
    Status,
    context_text,
    continuing_in_words,
    decisions_in_words,
    graph_in_words,
    lacking_in_words,
    leader_in_words,
    pending_in_words,
    stopping_in_words,
)


def _figure(what: str) -> Callable[[Any], Any]:
    return click.option(
        "--figure",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help=f"Draw {what} to a .png, .svg or .pdf file.",
    )


def _track(what: str) -> Any:
    """What shows how far a walk through the journal is."""
    from dowise.cli.console import tracked

    def track(events: Iterable[Any], total: int) -> Iterable[Any]:
        return tracked(events, what, total)

    return track


@contextmanager
def _walk(target: StoreTarget, what: str) -> Iterator[Any]:
    """Shows how far a walk through the journal is; that of a server can't be watched from here."""
    from dowise.cli.console import working

    if target.is_server:
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
@store_command(writes=False, policies=True)
@click.option(
    "-c",
    "--context",
    "context",
    multiple=True,
    metavar="NAME=VALUE",
    help="Look at this context only; once for each context variable.",
)
@click.option(
    "--tolerance",
    type=Number(0),
    metavar="X",
    help="A loss a round, in the reward's units, that does not matter: say whether to stop.",
)
@click.option(
    "--rounds",
    type=WholeNumber(1),
    metavar="K",
    help="Say what so many rounds more are worth against staying with what looks best now.",
)
@_figure("the intervals, P(best) along the way, and regrets")
@click.option(
    "--evidence/--no-evidence",
    default=None,
    show_default="if it takes less than a second",
    help="Look at what the records say against the graph.",
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
    """Where an experiment stands: what each arm brings, how sure that is, whether to stop.

    For each context the posterior mean reward of every arm with its 90 % credible interval, the
    probability that it is the best, and how often it was played; the expected regret of stopping
    now, in the reward's units, and with --rounds what playing on is worth; what is pending; what
    could not be used and why; what the records say about the graph.
    """
    from dowise.cli.arguments import parse_context
    from dowise.cli.console import working
    from dowise.plotting.figures import check_path

    if figure is not None:
        check_path(figure)
    with target.open() as experiment:
        seen = parse_context(context, experiment.problem.context) if context else None
        with working("Reading the journal …"):
            found = experiment.status(seen, evidence, rounds)
        if figure is not None:
            with _walk(target, "Drawing") as track:
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
@store_command(writes=False, policies=True)
@click.argument("number", metavar="ID")
@_figure("the intervals as they were then")
def explain(target: StoreTarget, as_json: bool, number: str, figure: Path | None) -> None:
    """Why a decision came out as it did.

    What was known when it was made, what each arm was expected to cost and to teach by then, and
    why it was this one.
    """

    with target.open() as experiment, _walk(target, "Reading the journal") as track:
        found = experiment.explain(parse_decision_id(number), track)
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
@store_command(writes=False)
@click.argument("file", type=click.Path(path_type=Path))
def export(target: StoreTarget, as_json: bool, file: Path) -> None:
    """Write all decisions to a table, with their probabilities.

    FILE ends in .csv or .parquet. It has a row for each decision, pending and withdrawn ones too:
    id, asked_at, status, arm (what was played), probability, probabilities and allowed (as JSON),
    then the variables, empty where a value is missing. `dowise import` reads it back.
    """
    from dowise.cli.console import count, working

    with target.open() as experiment, working("Writing …"):
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
@store_command(writes=False, policies=True)
@click.argument("policy", callback=import_policy)
@click.option(
    "--option",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of the policy, such as samples=1000; may be repeated.",
)
@click.option(
    "--level",
    type=Number(0, 1, min_open=True, max_open=True),
    default=0.9,
    show_default=True,
    help="Of the intervals.",
)
def evaluate(
    target: StoreTarget, as_json: bool, policy: str, pairs: tuple[str, ...], level: float
) -> None:
    """What another policy would have brought on the same decisions.

    POLICY is the name of one, or an arm that it would always have played. By inverse propensity and
    doubly robust, with intervals that hold for data which were collected adaptively. Where it would
    have played what had probability 0, inverse propensity is refused.
    """
    from dowise.cli.arguments import parse_options

    with target.open() as experiment, _walk(target, "Evaluating") as track:
        found = experiment.evaluate(policy, parse_options(pairs), level, track)
    if as_json:
        print_json(found.as_dict())
    else:
        show_evaluation(found)


@command("""\
  dowise audit ward.db
  dowise audit ward.db --head 412:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
  dowise audit ward.db --head 412:9f86d081884c
  dowise audit ward.db --json""")
@store_command(writes=False, policies=True)
@click.option(
    "--head",
    metavar="N:HASH",
    help="Number and hash of a last event, kept elsewhere: finds a cut or rewritten tail too. "
    "At least the first 12 digits of the hash, as pages show it.",
)
@click.pass_context
def audit(process: click.Context, target: StoreTarget, as_json: bool, head: str | None) -> None:
    """Whether the journal is whole, and every decision follows from what was known then.

    Names the first event that was changed, removed or moved, or the first decision that does not
    follow, with exit status 1. Decisions that another version or processor made are told apart.
    """

    with target.open() as experiment, _walk(target, "Auditing") as track:
        found = experiment.audit(head, track)
    if as_json:
        print_json(found.as_dict())
    else:
        show_audit(found)
    process.exit(0 if found.ok else 1)


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
            str(one.arms[i]),
            format_number(one.mean[i]),
            f"{format_number(one.low[i])} to {format_number(one.high[i])}",
            f"{one.best[i]:.2f}",
            f"{one.plays[i]:,}",
        )
        for i in order
    ]
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
                format_number(row["mean"]),
                f"{format_number(row['low'])} to {format_number(row['high'])}",
                f"{row['best']:.2f}",
                "" if row["cost"] is None else format_number(row["cost"]),
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
            (
                name,
                f"{format_number(one.low)} to {format_number(one.high)}",
                format_number(one.value),
            )
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
        return format_number(value)
    return "" if value is None else str(value)
