"""Commands about decisions: ask, tell, amend, withdraw, erase."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from dowise._core.document import Block, BulletList, Heading, Paragraph, Table
from dowise.cli.arguments import StoreTarget, confirm, format_pair, parse_context, parse_values
from dowise.cli.console import print_blocks, print_json
from dowise.cli.options import (
    WholeNumber,
    command,
    context_option,
    decision_argument,
    flag_option,
    reason_option,
    store_command,
)

if TYPE_CHECKING:
    from dowise.experiment.ask import LiveDecision
    from dowise.experiment.base import ExperimentBase
    from dowise.experiment.case import Case

_MAX_VARIABLES = 8  # in a command to type

_values_argument = click.argument("values", nargs=-1, metavar="[NAME=VALUE]...")
_played_option = click.option(
    "--played", metavar="ARM", help="Arm that was played instead of the recommended one."
)
_unrelated_option = flag_option(
    "--unrelated", "With --played: the change had nothing to do with the unit, so learn from it."
)


@command()
@store_command(policies=True)
@context_option("Value of a context variable; once for each of them.")
@click.option(
    "--allow", multiple=True, metavar="ARM", help="Choose among these arms only, such as do(X=1)."
)
@click.option(
    "--forbid",
    multiple=True,
    metavar="ARM",
    help="Exclude every arm that sets this, such as do(X=1).",
)
@click.option(
    "--request-id",
    metavar="R",
    help="Repeating a request with the same id returns the same decision; do not name a person.",
)
@click.option(
    "-n",
    "--number",
    "count",
    type=WholeNumber(1),
    metavar="K",
    help="Number of decisions for this context.",
)
def ask(
    target: StoreTarget,
    context: tuple[str, ...],
    allow: tuple[str, ...],
    forbid: tuple[str, ...],
    request_id: str | None,
    count: int | None,
    as_json: bool,
) -> None:
    """Recommend which arm to play next. The decision is pending until its outcome is told.

    If your reasons to allow or forbid arms also affect the outcome and are not in the context,
    learning is biased: see --no-learn-restricted of `dowise new`.

    Examples:
      dowise ask ward.db -c Age=1
      dowise ask ward.db -c Age=1 --forbid 'do(Dose=high)'
      dowise ask ward.db -c Age=0 --request-id 2026-03-02/17
      dowise ask ward.db -c Age=0 -n 5 --json
    """
    with target.open() as experiment:
        values = parse_context(context, experiment.problem.context)
        decisions = experiment.ask_many(
            [values] * (count or 1), request_id, list(allow) or None, list(forbid) or None
        )
        if not as_json:
            _print_decisions(experiment, target, decisions)
        elif count is None:
            print_json(decisions[0].as_dict())
        else:
            print_json({"decisions": [decision.as_dict() for decision in decisions]})


@command()
@store_command()
@decision_argument
@_values_argument
@_played_option
@_unrelated_option
def tell(
    target: StoreTarget, number: int, values: tuple[str, ...], as_json: bool, **played: Any
) -> None:
    """Report the outcome of decision ID.

    An outcome may be told in pieces, at any time, in any order. The context and what the arm set
    are already known. `Frailty=` records that a value is missing for good. Repeating what was told
    changes nothing; `dowise amend` corrects it.

    Examples:
      dowise tell ward.db 1 Frailty=0
      dowise tell ward.db 1 Recovery=1
      dowise tell ward.db 2 Frailty= Recovery=0
      dowise tell ward.db 3 --played 'do(Dose=low)' Recovery=1
    """
    outcome = parse_values(values)
    _change_case(
        target, as_json, lambda experiment: experiment.tell(number, outcome, **played), outcome
    )


@command()
@store_command()
@decision_argument
@_values_argument
@_played_option
@_unrelated_option
@reason_option
def amend(
    target: StoreTarget,
    number: int,
    values: tuple[str, ...],
    reason: str,
    as_json: bool,
    **played: Any,
) -> None:
    """Correct the outcome or the context of decision ID.

    The journal keeps the earlier values.

    Examples:
      dowise amend ward.db 1 Recovery=0 --reason "typing error"
      dowise amend ward.db 1 Age=0 --reason "wrong file"
      dowise amend ward.db 3 --played 'do(Dose=none)' --reason "misheard"
    """
    outcome = parse_values(values)
    _change_case(
        target, as_json, lambda experiment: experiment.amend(number, outcome, reason, **played)
    )


@command()
@store_command()
@decision_argument
@reason_option
def withdraw(target: StoreTarget, number: int, reason: str, as_json: bool) -> None:
    """Close a pending decision that will not get an outcome.

    Examples:
      dowise withdraw ward.db 2 --reason "moved away"
    """
    _change_case(target, as_json, lambda experiment: experiment.withdraw(number, reason))


def _change_case(
    target: StoreTarget,
    as_json: bool,
    change: Callable[[ExperimentBase], Case],
    outcome: Mapping[str, str | None] | None = None,
) -> None:
    """Change a decision and print it."""
    with target.open() as experiment:
        case = change(experiment)
        if as_json:
            data = case.as_dict(experiment.problem)
            data["notes"] = [f"{line}." for line in experiment.idle(case.id)]
            print_json({**data, "changed": case.changed, "head": str(experiment.head)})
        else:
            _print_case(experiment, target, case, outcome)


@command()
@store_command()
@decision_argument
@reason_option
@flag_option("--yes", "Skip the confirmation (required without a terminal).")
def erase(target: StoreTarget, number: int, reason: str, yes: bool, as_json: bool) -> None:
    """Erase everything recorded about decision ID, for good.

    For people who ask to be forgotten. The journal records that the decision was erased, and still
    verifies. Erase exports and backups yourself.

    Examples:
      dowise erase ward.db 2 --reason "asked to be forgotten"
      dowise erase ward.db 2 --reason "asked to be forgotten" --yes
    """
    from dowise.experiment.tell import validate_reason

    reason = validate_reason(reason, "erase a decision")
    with target.open() as experiment:
        case = experiment.case(number)
        if case.status != "erased" and not yes:
            confirm(f"Erase {case}? This can't be undone")
        has_changed = experiment.erase(number, reason)
        if as_json:
            data = {"id": number, "status": "erased", "changed": has_changed}
            print_json({**data, "head": str(experiment.head)})
        elif not has_changed:
            click.echo(f"Nothing new: decision {number} was already erased.")
        else:
            consequences = (
                "Its number stays, and the journal keeps when it was erased, by whom and why.",
                "Erase exports and backups yourself.",
            )
            title = Heading(f"Decision {number} of {experiment.name} was erased")
            print_blocks(title, BulletList(consequences))


def _print_decisions(
    experiment: ExperimentBase, target: StoreTarget, decisions: Sequence[LiveDecision]
) -> None:
    """Print what to do, why, and how to tell the outcome."""
    first = decisions[0]
    probabilities = [
        "unknown" if decision.probability is None else f"{decision.probability:.2f}"
        for decision in decisions
    ]
    blocks: list[Block]
    if len(decisions) == 1:
        reason = f": {first.reason}" if first.reason else ""
        why = f"{first.arm}, with probability {probabilities[0]}{reason}"
        blocks = [Heading(f"Decision {first.id}: {first.arm.in_words()}"), BulletList((why,))]
    else:
        rows = tuple(
            (str(decision.id), str(decision.arm), decision.arm.in_words(), probability)
            for decision, probability in zip(decisions, probabilities, strict=True)
        )
        columns = ("decision", "arm", "in words", "probability")
        blocks = [Table(columns, rows, right=("decision", "probability"))]
        if len({decision.reason for decision in decisions}) == 1:
            blocks.append(Paragraph(first.reason))
    print_blocks(*blocks)
    missing = experiment.case(first.id).missing_variables(first.problem)
    click.echo("\nWhen something is observed, in pieces if you like:")
    click.echo(f"  {_tell_command(experiment, target, first.id, missing)}")


def _print_case(
    experiment: ExperimentBase,
    target: StoreTarget,
    case: Case,
    outcome: Mapping[str, str | None] | None,
) -> None:
    """Print a decision after a change: what changed, and what is missing.

    `outcome` is what was told, to name values that were superseded; None if nothing was told.
    """
    from dowise.experiment.tell import to_labels

    text, problem = str(case), experiment.problem
    blocks: list[Block]
    if case.changed:
        blocks = [Heading(text[0].upper() + text[1:])]
        # A server of the previous version reports that something changed, not what it was.
        lines = [] if case.previous is None else list(case.changes_from(case.previous))
    else:
        blocks = [Paragraph(f"Nothing new: {text}")]
        superseded = case.superseded_values(to_labels(problem, outcome, "")).values()
        lines = [f"{line}; `dowise amend` changes it again." for line in superseded]
    lines += [f"{line}." for line in experiment.idle(case.id)]
    if lines:
        blocks.append(BulletList(tuple(lines)))
    print_blocks(*blocks)
    missing = case.missing_variables(problem)
    if case.status in ("pending", "done") and missing:
        click.echo("\nStill missing:")
        click.echo(f"  {_tell_command(experiment, target, case.id, missing)}")


def _tell_command(
    experiment: ExperimentBase, target: StoreTarget, decision_id: int, missing: Sequence[str]
) -> str:
    """Return the command that tells the missing variables, the reward last."""
    names = sorted(missing, key=lambda name: (name == experiment.problem.reward, name))
    pairs = [format_pair(name, "…") for name in names]
    if len(pairs) > _MAX_VARIABLES:
        pairs = [*pairs[: _MAX_VARIABLES - 1], "…", pairs[-1]]
    return target.command_line(experiment, "tell", str(decision_id), *pairs)
