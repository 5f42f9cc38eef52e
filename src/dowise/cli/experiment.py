"""Commands that write to a live experiment: new, import, ask, tell, amend, revise, erase."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import isclose
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
    pluralize,
)
from dowise.cli.arguments import (
    ERROR_DETAILS,
    StoreTarget,
    WholeNumber,
    command,
    confirm,
    format_pair,
    import_policy,
    parse_context,
    parse_decision_id,
    parse_options,
    parse_values,
    problem_argument,
    read_problem,
    reason_option,
    store_command,
)
from dowise.cli.console import print_document, print_json, progress_bar, spinner
from dowise.errors import DowiseError

if TYPE_CHECKING:
    from dowise.experiment.advice import SoftAdvice
    from dowise.experiment.ask import LiveDecision
    from dowise.experiment.base import ExperimentBase
    from dowise.experiment.case import Case
    from dowise.problem import Problem
    from dowise.problem.tables import CheckedRecords

_MAX_BAD_ROWS = 20  # on a terminal
_MAX_NAMES = 8  # arms or variables named in one place
_MAX_LINE = 66  # characters of a list of arms; longer lists have a line per arm

_option_option = click.option(
    "--option",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Option of the policy, such as floor=0.1; may be repeated.",
)
_prior_option = click.option(
    "--prior",
    metavar="NUMBER|FILE",
    help="Prior counts: a number, or a TOML file with counts per variable.",
)
_values_argument = click.argument("values", nargs=-1, metavar="[NAME=VALUE]...")
_id_argument = click.argument("number", metavar="ID")
_played_option = click.option(
    "--played", metavar="ARM", help="What was done instead of the recommended arm."
)
_unrelated_option = click.option(
    "--unrelated",
    is_flag=True,
    help="With --played: the change had nothing to do with the unit, so learn from it.",
)


@command(
    """\
  dowise new ward.db ward.toml
  dowise new ward.db ward.toml --data past.csv --policy ts
  dowise new postgresql://ann@host/trials ward.toml --name ward-7
  dowise new ward.db ward.toml --policy ids --option samples=5000 --prior 0.5""",
    policies=True,
)
@store_command(
    policies=True,
    name_help="Name of the experiment; by default that of the problem or its file.",
)
@problem_argument
@click.option(
    "--policy",
    metavar="NAME",
    show_default="best",
    callback=import_policy,
    help="Policy to use (listed below).",
)
@_option_option
@_prior_option
@click.option(
    "--seed",
    type=WholeNumber(0),
    metavar="S",
    show_default="128 random bits",
    help="Random seed. Anyone who knows it can predict the arms.",
)
@click.option(
    "--learn-restricted/--no-learn-restricted",
    default=True,
    help="Learn from decisions among fewer than all arms.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Past records to start with, CSV or Parquet, as for `dowise import`.",
)
@click.option("--skip-bad", is_flag=True, help="Leave out bad rows of --data.")
def new(
    target: StoreTarget,
    problem: str,
    policy: str | None,
    pairs: tuple[str, ...],
    prior: str | None,
    data: Path | None,
    skip_bad: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Create an experiment: a problem, a policy, and a journal in STORE.

    STORE is a file, which is created if needed, or a URL: sqlite:///ward.db,
    postgresql://user@host/base, or that of a `dowise serve`, http://127.0.0.1:8000. It holds any
    number of experiments.
    """
    from dowise.experiment.advice import soft_advice
    from dowise.policies.registry import is_known

    if target.store.lower().endswith(".toml"):
        raise DowiseError(
            f"{target.store} looks like a problem, not a store: the store comes first, "
            "dowise new ward.db ward.toml",
            code="wrong-argument-order",
        )
    loaded = read_problem(problem)
    settings["options"] = _policy_options(pairs, prior)
    if policy is not None:
        settings["policy"] = policy
    records = None if data is None else _read_records(data, loaded)
    with _list_bad_rows(data, as_json):
        experiment = target.create(
            loaded,
            records=records,
            source=None if data is None else data.name,
            skip_bad=skip_bad,
            **settings,
        )
    with experiment:
        policy = experiment.policy
        advice = soft_advice(loaded, policy) if is_known(policy) else None
        if as_json:
            print_json(_new_to_json(experiment, records, advice))
        else:
            _print_new(experiment, target, records, advice)


@command("""\
  dowise ask ward.db -c Age=1
  dowise ask ward.db -c Age=1 --forbid 'do(Dose=high)'
  dowise ask ward.db -c Age=0 --request-id 2026-03-02/17
  dowise ask ward.db -c Age=0 -n 5 --json""")
@store_command(policies=True)
@click.option(
    "-c",
    "--context",
    "context",
    multiple=True,
    metavar="NAME=VALUE",
    help="What is known before the choice; once for each context variable.",
)
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


@command("""\
  dowise tell ward.db 1 Frailty=0
  dowise tell ward.db 1 Recovery=1
  dowise tell ward.db 2 Frailty= Recovery=0
  dowise tell ward.db 3 --played 'do(Dose=low)' Recovery=1""")
@store_command()
@_id_argument
@_values_argument
@_played_option
@_unrelated_option
def tell(
    target: StoreTarget,
    number: str,
    values: tuple[str, ...],
    played: str | None,
    unrelated: bool,
    as_json: bool,
) -> None:
    """Report the outcome of decision ID: in pieces, at any time, in any order.

    The context and what the arm set are already known. `Frailty=` records that a value is missing
    for good. Telling the same again changes nothing; `dowise amend` corrects.
    """
    outcome = parse_values(values)
    _change_case(
        target,
        number,
        as_json,
        lambda experiment, decision_id: experiment.tell(
            decision_id, outcome, played=played, unrelated=unrelated
        ),
        outcome,
    )


@command("""\
  dowise amend ward.db 1 Recovery=0 --reason "typing error"
  dowise amend ward.db 1 Age=0 --reason "wrong file"
  dowise amend ward.db 3 --played 'do(Dose=none)' --reason "misheard" """)
@store_command()
@_id_argument
@_values_argument
@_played_option
@_unrelated_option
@reason_option
def amend(
    target: StoreTarget,
    number: str,
    values: tuple[str, ...],
    played: str | None,
    unrelated: bool,
    reason: str,
    as_json: bool,
) -> None:
    """Correct the outcome or the context of decision ID; the journal keeps the earlier values."""
    outcome = parse_values(values)
    _change_case(
        target,
        number,
        as_json,
        lambda experiment, decision_id: experiment.amend(
            decision_id, outcome, reason, played=played, unrelated=unrelated
        ),
    )


@command('  dowise withdraw ward.db 2 --reason "moved away"')
@store_command()
@_id_argument
@reason_option
def withdraw(target: StoreTarget, number: str, reason: str, as_json: bool) -> None:
    """Close a pending decision that will not get an outcome."""
    _change_case(
        target,
        number,
        as_json,
        lambda experiment, decision_id: experiment.withdraw(decision_id, reason),
    )


def _change_case(
    target: StoreTarget,
    number: str,
    as_json: bool,
    change: Callable[[ExperimentBase, int], Case],
    told: Mapping[str, str | None] | None = None,
) -> None:
    """Change a decision and show it."""
    decision_id = parse_decision_id(number)
    with target.open() as experiment:
        case = change(experiment, decision_id)
        if as_json:
            data = case.as_dict(experiment.problem)
            data["notes"] = [f"{line}." for line in experiment.idle(case.id)]
            print_json({**data, "changed": case.changed, "head": str(experiment.head)})
        else:
            _print_case(experiment, target, case, told)


@command(
    """\
  dowise revise ward.db --problem ward2.toml --reason "age was missing in the graph"
  dowise revise ward.db --policy ts --reason "faster"
  dowise revise ward.db --option floor=0.1 --reason "to evaluate others" """,
    policies=True,
)
@store_command(policies=True)
@click.option("--problem", metavar="PROBLEM", help="Problem to use from now on.")
@click.option(
    "--policy", metavar="NAME", callback=import_policy, help="Policy to use (listed below)."
)
@_option_option
@_prior_option
@click.option(
    "--learn-restricted/--no-learn-restricted",
    default=None,
    help="Learn from decisions among fewer than all arms.",
)
@reason_option
def revise(
    target: StoreTarget,
    problem: str | None,
    policy: str | None,
    pairs: tuple[str, ...],
    prior: str | None,
    learn_restricted: bool | None,
    reason: str,
    as_json: bool,
) -> None:
    """Change the problem, policy or prior from now on; past records are counted again.

    Options that are not specified stay as they are; another policy starts with its defaults.
    """
    options = _policy_options(pairs, prior) or None
    if all(change is None for change in (problem, policy, options, learn_restricted)):
        raise DowiseError(
            "nothing to change: pass --problem, --policy, --option, --prior or --learn-restricted",
            code="missing-value",
        )
    loaded = None if problem is None else read_problem(problem)
    with target.open() as experiment:
        has_changed = experiment.revise(
            loaded, policy, options, reason, learn_restricted=learn_restricted
        )
        if as_json:
            data = {**_config_to_json(experiment), "changed": has_changed}
            print_json({**data, "past_records": experiment.counted().as_dict()})
            return
        if not has_changed:
            click.echo(f"Nothing changes: {experiment.name} is already configured like this.")
            return
        with spinner("Reading past records …"):
            usage = experiment.counted()
        print_document(
            Document(
                (
                    Heading(f"{experiment.name}, from now on"),
                    *_config_blocks(experiment),
                    *usage.document().blocks,
                )
            )
        )


@command("""\
  dowise erase ward.db 2 --reason "asked to be forgotten"
  dowise erase ward.db 2 --reason "asked to be forgotten" --yes""")
@store_command()
@_id_argument
@reason_option
@click.option("--yes", is_flag=True, help="Skip the confirmation (required without a terminal).")
def erase(target: StoreTarget, number: str, reason: str, yes: bool, as_json: bool) -> None:
    """Erase everything recorded about decision ID, for good (a person's right).

    The journal records that it was erased, and still verifies. Exports and backups are yours to
    erase.
    """
    from dowise.experiment.tell import validate_reason

    decision_id, reason = parse_decision_id(number), validate_reason(reason, "erase a decision")
    with target.open() as experiment:
        case = experiment.case(decision_id)
        if case.status != "erased" and not yes:
            confirm(f"Erase {case}? This can't be undone")
        has_changed = experiment.erase(decision_id, reason)
        if as_json:
            data = {"id": decision_id, "status": "erased", "changed": has_changed}
            print_json({**data, "head": str(experiment.head)})
        elif not has_changed:
            click.echo(f"Nothing new: decision {decision_id} was already erased.")
        else:
            print_document(
                Document(
                    (
                        Heading(f"Decision {decision_id} of {experiment.name} was erased"),
                        BulletList(
                            (
                                "Its number stays, and the journal keeps when it was erased, by "
                                "whom and why.",
                                "Exports and backups are yours to erase.",
                            )
                        ),
                    )
                )
            )


@command(
    """\
  dowise import ward.db past.csv
  dowise import ward.db past.parquet --skip-bad
  dowise import ward.db january.csv --again""",
    name="import",
)
@store_command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--skip-bad", is_flag=True, help="Leave out bad rows; they are still listed.")
@click.option("--again", is_flag=True, help="Count records again that were imported before.")
def import_records(
    target: StoreTarget, file: Path, skip_bad: bool, again: bool, as_json: bool
) -> None:
    """Import past records from a CSV or Parquet FILE: one row per record, one column per variable.

    The column `arm` says what was set, such as do(X=1); without it nothing was. Empty cells are
    missing values; so are NA, N/A, nan and null unless they are labels. If a row is bad, nothing is
    imported and the bad rows are listed.
    """
    with target.open() as experiment:
        records = _read_records(file, experiment.problem)
        with _list_bad_rows(file, as_json):
            imported = experiment.import_records(
                records, source=file.name, skip_bad=skip_bad, again=again
            )
        if as_json:
            data = {"imported": imported, **_bad_rows_to_json(records)}
            notes = _unused_records(experiment) if imported else []
            head = str(experiment.head)
            print_json({**data, "head": head, "notes": notes, "changed": bool(imported)})
            return
        first = f"Nothing to import: {file} has no good rows"
        if imported:
            first = f"{pluralize(imported, 'record')} imported from {file}"
        blocks: list[Block] = [Heading(first), *_bad_row_blocks(records)]
        if imported:
            blocks += _unused_record_blocks(experiment)
        print_document(Document(tuple(blocks)))


def _policy_options(pairs: tuple[str, ...], prior: str | None) -> dict[str, Any]:
    options = parse_options(pairs)
    if prior is not None:
        if "prior" in options:
            raise DowiseError(
                "the prior is given twice: by --prior and by --option prior=…",
                code="duplicate-name",
            )
        try:
            options["prior"] = float(prior)
        except ValueError:
            options["prior"] = prior
    return options


def _read_records(path: Path, problem: Problem) -> CheckedRecords:
    from dowise.problem.tables import read_records

    with progress_bar() as show:
        return read_records(path, problem, track=show)


@contextmanager
def _list_bad_rows(path: Path | None, as_json: bool) -> Iterator[None]:
    """List the bad rows in an error about them."""
    from dowise.experiment.records import BadRowsError

    try:
        yield
    except BadRowsError as error:
        message = f"{path}: {error.summary}. Correct them, or leave them out with --skip-bad"
        if as_json:
            details = {"imported": 0, **_bad_rows_to_json(error.found)}
            click.get_current_context().meta[ERROR_DETAILS] = details
        else:
            message = "\n".join([message, *(f"  {row}" for row in _bad_rows(error.found))])
        raise DowiseError(message, code="bad-rows") from None


def _bad_rows_to_json(records: CheckedRecords) -> dict[str, Any]:
    rows = [{"row": bad.row, "line": bad.line, "why": bad.why} for bad in records.bad]
    return {"bad_count": records.bad_count, "bad": rows}


def _bad_rows(records: CheckedRecords) -> list[str]:
    rows = [str(bad) for bad in records.bad[:_MAX_BAD_ROWS]]
    more = records.bad_count - len(rows)
    return [*rows, f"… and {more:,} more"] if more else rows


def _bad_row_blocks(records: CheckedRecords) -> list[Block]:
    if not records.bad_count:
        return []
    title = f"{pluralize(records.bad_count, 'bad row')} left out"
    return [Heading(title), BulletList(tuple(_bad_rows(records)))]


def _unused_records(experiment: ExperimentBase) -> list[str]:
    """Return sentences about what is not used of all past records, and why."""
    try:
        usage = experiment.counted()
    except DowiseError:  # a custom policy that is not registered in this process
        return []
    left_out = (f"{pluralize(n, 'record')} left out: {why}." for why, n in usage.left_out.items())
    return [*left_out, *usage.describe_unused()]


def _unused_record_blocks(experiment: ExperimentBase) -> list[Block]:
    with spinner("Reading past records …"):
        lines = _unused_records(experiment)
        is_in_vain = bool(lines) and experiment.counted().is_in_vain
    if not lines:
        return []
    title = Heading("Of all records and decisions so far")
    if is_in_vain:
        return [title, *(Paragraph(line, "warning") for line in lines)]
    return [title, BulletList(tuple(lines))]


def _config_to_json(experiment: ExperimentBase) -> dict[str, Any]:
    from dowise.experiment.advice import floor_advice

    problem = experiment.problem
    return {
        "store": experiment.store,
        "name": experiment.name,
        "policy": experiment.policy,
        "options": experiment.options,
        "arms": [dict(arm) for arm in problem.arms],
        "forbidden": [dict(assignment) for assignment in problem.forbidden],
        "costs": dict(problem.costs),
        "deterministic": floor_advice(experiment.policy, experiment.options) is not None,
        "head": str(experiment.head),
    }


def _config_blocks(experiment: ExperimentBase) -> list[Block]:
    from dowise.experiment.advice import floor_advice
    from dowise.problem.problem_file import costs_in_words

    problem = experiment.problem
    arms = [str(arm) for arm in problem.arms[:_MAX_NAMES]]
    if len(problem.arms) > _MAX_NAMES:
        arms.append(f"and {len(problem.arms) - _MAX_NAMES:,} more")
    if len(", ".join(arms)) <= _MAX_LINE:
        arms = [", ".join(arms)]
    floor = experiment.options.get("floor")
    advice = floor_advice(experiment.policy, experiment.options)
    rows = (
        ("minimise" if problem.minimise else "maximise", f"{problem.reward} ({_values(problem)})"),
        ("context", ", ".join(problem.context)),
        *zip(["arms", *[""] * len(arms)], arms, strict=False),
        ("forbidden", ", ".join(map(str, problem.forbidden))),
        ("costs", ", ".join(costs_in_words(problem)) if problem.costs else ""),
        ("policy", experiment.policy + (f" with floor={floor:g}" if floor else "")),
        ("", advice or ""),
    )
    blocks: list[Block] = [Table(("", ""), tuple(row for row in rows if row[1]))]
    if not _are_labels_values(problem.reward_values):
        blocks.append(
            Paragraph(
                f"The labels of {problem.reward} are numbers, but only their order counts: set "
                "reward_values in the problem file if they are worth what they say.",
                "warning",
            )
        )
    return blocks


def _values(problem: Problem) -> str:
    """Describe the value of each reward label, or the range of many."""
    values = problem.reward_values
    if len(values) > _MAX_NAMES:
        low, high = min(values.values()), max(values.values())
        return f"{len(values)} values that count as {low:g} to {high:g}"
    return ", ".join(f"{label} counts as {value:g}" for label, value in values.items())


def _are_labels_values(values: Mapping[str, float]) -> bool:
    """Return False if labels are numbers but count by their order, because nothing else is set."""
    counts, steps = [*values.values()], max(len(values) - 1, 1)
    if counts != [i / steps for i in range(len(counts))]:
        return True  # reward_values are set
    try:
        labels = [float(label) for label in values]
    except ValueError:
        return True
    first, span = labels[0], labels[-1] - labels[0]
    return all(
        isclose(label - first, value * span, abs_tol=1e-9 * abs(span))
        for label, value in zip(labels, counts, strict=True)
    )


def _new_to_json(
    experiment: ExperimentBase, records: CheckedRecords | None, advice: SoftAdvice | None
) -> dict[str, Any]:
    data = {**_config_to_json(experiment), "imported": 0}
    if records is not None:
        data |= {"imported": len(records.batch), **_bad_rows_to_json(records)}
        data["notes"] = _unused_records(experiment)
    return {**data, "advice": None if advice is None else advice.as_dict()}


def _print_new(
    experiment: ExperimentBase,
    target: StoreTarget,
    records: CheckedRecords | None,
    advice: SoftAdvice | None,
) -> None:
    blocks = [Heading(f"{experiment.name} is in {experiment.store}"), *_config_blocks(experiment)]
    if records is not None:
        blocks.append(Paragraph(f"{pluralize(len(records.batch), 'record')} to start with"))
        blocks += [*_bad_row_blocks(records), *_unused_record_blocks(experiment)]
    print_document(Document(tuple(blocks)))
    click.echo(f"\n  head      {experiment.head}")  # unbroken, so that it can be copied
    click.echo("  Keep the head elsewhere: `dowise audit --head` then finds a rewritten journal.")
    named = replace(target, name=experiment.name if experiment.is_one_of_many else None)
    context = [x for name in experiment.problem.context for x in ("-c", format_pair(name, "…"))]
    click.echo(f"\nNext:\n  {named.command_line(experiment, 'ask', *context)}")
    if advice is not None:
        click.echo()
        print_document(Document((Paragraph(str(advice)),)))


def _print_decisions(
    experiment: ExperimentBase, target: StoreTarget, decisions: Sequence[LiveDecision]
) -> None:
    """Print what to do, why, and how to tell the outcome."""
    first = decisions[0]
    probabilities = [
        "unknown" if each.probability is None else f"{each.probability:.2f}" for each in decisions
    ]
    blocks: list[Block]
    if len(decisions) == 1:
        reason = f": {first.reason}" if first.reason else ""
        why = f"{first.arm}, with probability {probabilities[0]}{reason}"
        blocks = [Heading(f"Decision {first.id}: {first.arm.in_words()}"), BulletList((why,))]
    else:
        rows = tuple(
            (str(each.id), str(each.arm), each.arm.in_words(), probability)
            for each, probability in zip(decisions, probabilities, strict=True)
        )
        columns = ("decision", "arm", "in words", "probability")
        blocks = [Table(columns, rows, right=("decision", "probability"))]
        if len({decision.reason for decision in decisions}) == 1:
            blocks.append(Paragraph(first.reason))
    print_document(Document(tuple(blocks)))
    missing = experiment.case(first.id).missing_variables(first.problem)
    click.echo("\nWhen something is observed, in pieces if you like:")
    click.echo(f"  {_tell_command(experiment, target, first.id, missing, first.problem)}")


def _print_case(
    experiment: ExperimentBase,
    target: StoreTarget,
    case: Case,
    told: Mapping[str, str | None] | None,
) -> None:
    """Print a decision after it was `told` values: what changed, and what is missing."""
    from dowise.experiment.tell import to_labels

    text, problem = str(case), experiment.problem
    blocks: list[Block]
    if case.changed:
        blocks = [Heading(text[0].upper() + text[1:])]
        # A server of the previous version reports that something changed, not what it was.
        lines = [] if case.previous is None else list(case.changes_from(case.previous))
    else:
        blocks = [Paragraph(f"Nothing new: {text}")]
        superseded = case.superseded_values(to_labels(problem, told, "")).values()
        lines = [f"{line}; `dowise amend` changes it again." for line in superseded]
    lines += [f"{line}." for line in experiment.idle(case.id)]
    if lines:
        blocks.append(BulletList(tuple(lines)))
    print_document(Document(tuple(blocks)))
    missing = case.missing_variables(problem)
    if case.status in ("pending", "done") and missing:
        click.echo("\nStill missing:")
        click.echo(f"  {_tell_command(experiment, target, case.id, missing, problem)}")


def _tell_command(
    experiment: ExperimentBase,
    target: StoreTarget,
    decision_id: int,
    missing: Sequence[str],
    problem: Problem,
) -> str:
    """Return the command that tells the missing variables, the reward last."""
    names = sorted(missing, key=lambda name: (name == problem.reward, name))
    pairs = [format_pair(name, "…") for name in names]
    if len(pairs) > _MAX_NAMES:
        pairs = [*pairs[: _MAX_NAMES - 1], "…", pairs[-1]]
    return target.command_line(experiment, "tell", str(decision_id), *pairs)
