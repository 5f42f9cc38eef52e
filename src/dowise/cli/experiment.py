"""Commands that act on a live experiment: begin it, ask, tell, correct, change, erase."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dowise.cli.arguments import (
    ERROR_DETAILS,
    StoreTarget,
    WholeNumber,
    command,
    format_pair,
    import_policy,
    parse_decision_id,
    problem_argument,
    read_problem,
    reason_option,
    store_command,
)
from dowise.cli.console import (
    count,
    is_narrow_enough,
    plain_console,
    print_indented,
    print_json,
    print_numbered,
    print_table,
    print_wrapped,
    working,
)
from dowise.errors import DowiseError
from dowise.experiment.advice import SoftAdvice, floor_advice
from dowise.experiment.ask import LiveDecision
from dowise.experiment.case import Case, labels_of
from dowise.problem import Problem
from dowise.problem.problem_file import costs_in_words
from dowise.problem.tables import CheckedRecords

if TYPE_CHECKING:
    from dowise.cli.arguments import LiveExperiment


_options = [
    click.option(
        "--option",
        "pairs",
        multiple=True,
        metavar="NAME=VALUE",
        help="An option of the policy, such as floor=0.1; may be repeated.",
    ),
    click.option(
        "--prior",
        metavar="NUMBER|FILE",
        help="What is known beforehand, in records: a number, or a TOML file by variable.",
    ),
]
_values = click.argument("values", nargs=-1, metavar="[NAME=VALUE]...")
_number = click.argument("number", metavar="ID")
_played = click.option(
    "--played", metavar="ARM", help="What was done instead of the arm that was decided on."
)
_unrelated = click.option(
    "--unrelated",
    is_flag=True,
    help="With --played: it had nothing to do with the unit, so learn from it.",
)


@command(
    """\
  dowise new ward.db ward.toml
  dowise new ward.db ward.toml --data past.csv --policy ts
  dowise new postgresql://ann@host/trials ward.toml --name ward-7
  dowise new ward.db ward.toml --policy ids --option samples=5000 --prior 0.5""",
    policies=True,
)
@store_command(policies=True, name_help="Its name; by default the problem's own, or the file's.")
@problem_argument
@click.option(
    "--policy",
    metavar="NAME",
    show_default="best",
    callback=import_policy,
    help="Who decides; all are listed below.",
)
@_options[0]
@_options[1]
@click.option(
    "--seed",
    type=WholeNumber(0),
    metavar="S",
    show_default="128 bits of the system's",
    help="Of everything random; whoever knows it can foresee arms.",
)
@click.option(
    "--learn-restricted/--no-learn-restricted",
    default=True,
    help="Whether to learn from decisions among fewer than all arms.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Past records to begin with, CSV or Parquet, as `dowise import` takes them.",
)
@click.option("--skip-bad", is_flag=True, help="Leave bad rows of --data out.")
def new(
    target: StoreTarget,
    problem: str,
    policy: str | None,
    pairs: tuple[str, ...],
    prior: str | None,
    data: Path | None,
    skip_bad: bool,
    as_json: bool,
    **rest: Any,
) -> None:
    """Begin an experiment: a problem, a policy, and a journal in STORE.

    STORE is a file, which is made if it is not there, or a URL: sqlite:///ward.db,
    postgresql://user@host/base, or that of a `dowise serve`, http://127.0.0.1:8000. It holds any
    number of experiments.
    """
    from dowise.experiment.advice import soft_advice
    from dowise.policies.registry import is_known

    if target.store.lower().endswith(".toml"):
        raise DowiseError(
            f"{target.store} is a problem by its name, and no store: the store comes first, "
            "dowise new ward.db ward.toml"
        )
    loaded = read_problem(problem)
    options = policy_options(pairs, prior)
    found = None if data is None else read(data, loaded)
    named: dict[str, Any] = {} if policy is None else {"policy": policy}
    with listing_bad_rows(data, as_json):
        experiment = target.create(
            loaded,
            options=options,
            records=found,
            source=None if data is None else data.name,
            skip_bad=skip_bad,
            **named,
            **rest,
        )
    with experiment:
        policy = experiment.policy
        advice = soft_advice(loaded, policy) if is_known(policy) else None
        if as_json:
            print_json(new_page(experiment, found, advice))
        else:
            show_new(experiment, target, found, advice)


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
    help="What is seen before the choice; once for each context variable.",
)
@click.option(
    "--allow", multiple=True, metavar="ARM", help="Choose among these arms only, such as do(X=1)."
)
@click.option(
    "--forbid",
    multiple=True,
    metavar="ARM",
    help="Rule out every arm that sets this, such as do(X=1).",
)
@click.option(
    "--request-id",
    metavar="R",
    help="The same request made again gives the same decision; name no person.",
)
@click.option(
    "-n",
    "--number",
    "count",
    type=WholeNumber(1),
    metavar="K",
    help="So many decisions for this context at once.",
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
    """Which arm to play next. The decision is pending until its outcome is told.

    Where what makes you allow or forbid arms also affects the outcome and is not in the context,
    learning is biased: see --no-learn-restricted of `dowise new`.
    """
    from dowise.cli.arguments import parse_context

    with target.open() as experiment:
        seen = parse_context(context, experiment.problem.context)
        asked = experiment.ask_many(
            [seen] * (count or 1), request_id, list(allow) or None, list(forbid) or None
        )
        if not as_json:
            show_asked(experiment, target, asked)
        elif count is None:
            print_json(asked[0].as_dict())
        else:
            print_json({"decisions": [one.as_dict() for one in asked]})


@command("""\
  dowise tell ward.db 1 Frailty=0
  dowise tell ward.db 1 Recovery=1
  dowise tell ward.db 2 Frailty= Recovery=0
  dowise tell ward.db 3 --played 'do(Dose=low)' Recovery=1""")
@store_command()
@_number
@_values
@_played
@_unrelated
def tell(
    target: StoreTarget,
    number: str,
    values: tuple[str, ...],
    played: str | None,
    unrelated: bool,
    as_json: bool,
) -> None:
    """What was seen after decision ID: in pieces, at any time, in any order.

    The context and what the arm set are known. `Frailty=` says that a value is missing for good.
    Telling the same again changes nothing; `dowise amend` corrects.
    """
    from dowise.cli.arguments import parse_values

    seen = parse_values(values)
    _say(
        target,
        number,
        as_json,
        lambda experiment, decision: experiment.tell(
            decision, seen, played=played, unrelated=unrelated
        ),
        seen,
    )


@command("""\
  dowise amend ward.db 1 Recovery=0 --reason "typing error"
  dowise amend ward.db 1 Age=0 --reason "wrong file"
  dowise amend ward.db 3 --played 'do(Dose=none)' --reason "misheard" """)
@store_command()
@_number
@_values
@_played
@_unrelated
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
    """Correct what was told of decision ID, or its context; the journal keeps what was before."""
    from dowise.cli.arguments import parse_values

    seen = parse_values(values)
    _say(
        target,
        number,
        as_json,
        lambda experiment, decision: experiment.amend(
            decision, seen, reason, played=played, unrelated=unrelated
        ),
    )


@command('  dowise withdraw ward.db 2 --reason "moved away"')
@store_command()
@_number
@reason_option
def withdraw(target: StoreTarget, number: str, reason: str, as_json: bool) -> None:
    """End a pending decision of which nothing more will be told."""
    _say(
        target, number, as_json, lambda experiment, decision: experiment.withdraw(decision, reason)
    )


def _say(target: StoreTarget, number: str, as_json: bool, say: Any, told: Any = None) -> None:
    """Say something of a decision, and show where it stands then."""

    decision = parse_decision_id(number)
    with target.open() as experiment:
        case = say(experiment, decision)
        if as_json:
            print_json(case_page(experiment, case))
        else:
            show_case(experiment, target, case, told)


@command(
    """\
  dowise revise ward.db --problem ward2.toml --reason "age was missing in the graph"
  dowise revise ward.db --policy ts --reason "faster"
  dowise revise ward.db --option floor=0.1 --reason "to evaluate others" """,
    policies=True,
)
@store_command(policies=True)
@click.option("--problem", metavar="PROBLEM", help="The problem from here on.")
@click.option(
    "--policy", metavar="NAME", callback=import_policy, help="Who decides; all are listed below."
)
@_options[0]
@_options[1]
@click.option(
    "--learn-restricted/--no-learn-restricted",
    default=None,
    help="Whether to learn from decisions among fewer than all arms.",
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
    """Another problem, policy or prior from here on; past records count again under it.

    Options stay as they are unless given; with another policy they begin anew.
    """

    options = policy_options(pairs, prior)
    changes = (problem, policy, options or None, learn_restricted)
    if all(change is None for change in changes):
        raise DowiseError(
            "say what changes: --problem, --policy, --option, --prior or --learn-restricted"
        )
    loaded = None if problem is None else read_problem(problem)
    with target.open() as experiment:
        is_news = experiment.revise(
            loaded, policy, options or None, reason, learn_restricted=learn_restricted
        )
        if as_json:
            print_json(revised_page(experiment, is_news))
        else:
            show_revised(experiment, is_news)


@command("""\
  dowise erase ward.db 2 --reason "asked to be forgotten"
  dowise erase ward.db 2 --reason "asked to be forgotten" --yes""")
@store_command()
@_number
@reason_option
@click.option("--yes", is_flag=True, help="It is meant: do not ask; needed off a terminal.")
def erase(target: StoreTarget, number: str, reason: str, yes: bool, as_json: bool) -> None:
    """Blank all that was said of decision ID, for good: a person's right.

    The journal says that it was done, and still verifies. Exports and backups are yours to erase.
    """
    from dowise.cli.arguments import confirm
    from dowise.experiment.tell import checked_reason

    decision, why = parse_decision_id(number), checked_reason(reason, "erase")
    with target.open() as experiment:
        case = experiment.case(decision)
        if case.status != "erased" and not yes:
            confirm(f"Erase {case}? This can't be undone")
        is_news = experiment.erase(decision, why)
        if as_json:
            print_json(erased_page(experiment, decision, is_news))
        else:
            show_erased(experiment, decision, is_news)


def policy_options(pairs: tuple[str, ...], prior: str | None) -> dict[str, Any]:
    """The options of a policy, the prior among them."""
    from dowise.cli.arguments import parse_options

    options = parse_options(pairs)
    if prior is not None:
        if "prior" in options:
            raise DowiseError("the prior is given twice: by --prior and by --option prior=…")
        try:
            options["prior"] = float(prior)
        except ValueError:
            options["prior"] = prior
    return options


SHOWN = 20  # bad rows on a terminal


@command(
    """\
  dowise import ward.db past.csv
  dowise import ward.db past.parquet --skip-bad
  dowise import ward.db january.csv --again""",
    name="import",
)
@store_command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--skip-bad", is_flag=True, help="Leave bad rows out; they are listed all the same.")
@click.option("--again", is_flag=True, help="Count records once more that were imported before.")
def import_records(
    target: StoreTarget, file: Path, skip_bad: bool, again: bool, as_json: bool
) -> None:
    """Bring past records in: a CSV or Parquet FILE, a row a record, a column a variable.

    A column `arm` says what was set, such as do(X=1); without it nothing was. Empty cells are
    missing values; so are NA, N/A, nan and null where they are no labels. Where a row is bad
    nothing is imported, and the bad ones are listed.
    """

    with target.open() as experiment:
        found = read(file, experiment.problem)
        with listing_bad_rows(file, as_json):
            count = experiment.import_records(
                found, source=file.name, skip_bad=skip_bad, again=again
            )
        if as_json:
            page = {"imported": count, **bad_rows(found), "head": str(experiment.head)}
            notes = use_of(experiment) if count else []
            print_json(page | {"notes": notes, "changed": bool(count)})
        else:
            show_imported(experiment, file, count, found)


def read(path: Path, problem: Problem) -> CheckedRecords:
    """The records of a file, with a bar on a terminal."""
    from dowise.cli.console import bar
    from dowise.problem.tables import read_records

    with bar() as show:
        return read_records(path, problem, track=show)


@contextmanager
def listing_bad_rows(path: Path | None, as_json: bool) -> Iterator[None]:
    """An error about bad rows lists the first of them; as JSON, all that are explained."""
    from dowise.experiment.records import BadRowsError

    try:
        yield
    except BadRowsError as error:
        message = f"{path}: {error.summary}. Correct them, or leave them out with --skip-bad"
        if as_json:
            details = {"imported": 0, **bad_rows(error.found)}
            click.get_current_context().meta[ERROR_DETAILS] = details
        else:
            message = "\n".join([message, *shown_bad_rows(error.found)])
        raise DowiseError(message, code="bad-rows") from None


def bad_rows(found: CheckedRecords) -> dict[str, Any]:
    """For JSON: how many rows are bad, and what is wrong with them; lines count from 1."""
    rows = [{"row": bad.row, "line": bad.line, "why": bad.why} for bad in found.bad]
    return {"bad_count": found.bad_count, "bad": rows}


def shown_bad_rows(found: CheckedRecords) -> list[str]:
    """The first bad rows as lines, and how many more there are."""
    lines = [f"  {bad}" for bad in found.bad[:SHOWN]]
    more = found.bad_count - len(lines)
    return [*lines, f"  … and {more:,} more"] if more else lines


_MANY = 8  # arms or variables that are named on one line


def new_page(
    experiment: LiveExperiment, found: CheckedRecords | None, advice: SoftAdvice | None
) -> dict[str, Any]:
    """An experiment that was just made, for JSON."""
    return {
        **_plan_page(experiment),
        "imported": 0 if found is None else len(found.batch),
        **({} if found is None else {**bad_rows(found), "notes": use_of(experiment)}),
        "advice": None if advice is None else advice.as_dict(),
    }


def show_new(
    experiment: LiveExperiment,
    target: StoreTarget,
    found: CheckedRecords | None,
    advice: SoftAdvice | None,
) -> None:
    """Where it is, what it is about, and what to type next."""
    click.secho(f"{experiment.name} is in {experiment.store}", bold=True)
    _show_plan(experiment)
    if found is not None:
        _line("records", f"{len(found.batch):,} to begin with")
        _show_bad(found)
        _show_use(experiment)
    click.echo(f"  {'head':<10}{experiment.head}")  # whole, so that it can be copied
    click.echo("  Keep the head elsewhere: `dowise audit --head` then finds a rewritten journal.")
    named = replace(target, name=experiment.name if experiment.is_one_of_many else None)
    seen = [part for name in experiment.problem.context for part in ("-c", format_pair(name, "…"))]
    click.echo(f"\nNext:\n  {named.command_line(experiment, 'ask', *seen)}")
    if advice is not None:
        click.echo()
        print_wrapped(plain_console(), str(advice))


def show_asked(
    experiment: LiveExperiment, target: StoreTarget, asked: Sequence[LiveDecision]
) -> None:
    """What to do, why, and how to tell what came of it."""
    console, first = plain_console(), asked[0]
    if len(asked) == 1:
        print_wrapped(console, f"Decision {first.id}: {first.arm.in_words()}", "bold")
        print_indented(console, _why(first))
    else:
        rows = [(str(one.id), str(one.arm), one.arm.in_words(), _chance(one)) for one in asked]
        columns = ("decision", "arm", "in words", "probability")
        if is_narrow_enough(console, columns, rows):
            print_table(console, columns, rows, right=("decision", "probability"))
        else:
            chances = [f"{one.arm} (probability {_chance(one)})" for one in asked]
            print_numbered(
                console, [(row[0], row[2], said) for row, said in zip(rows, chances, strict=True)]
            )
        if len({one.reason for one in asked}) == 1:
            print_indented(console, first.reason)
    told = experiment.case(first.id).missing_variables(first.problem)
    click.echo("\nWhen something is seen, in pieces if you like:")
    click.echo(f"  {_tell(experiment, target, first.id, told, first.problem)}")


def case_page(experiment: LiveExperiment, case: Case) -> dict[str, Any]:
    """A decision after something was said of it, for JSON."""
    page = case.as_dict(experiment.problem)
    notes = [f"{line}." for line in experiment.idle(case.id)]
    return {**page, "notes": notes, "changed": case.changed, "head": str(experiment.head)}


def show_case(
    experiment: LiveExperiment,
    target: StoreTarget,
    case: Case,
    told: Mapping[str, str | None] | None = None,
) -> None:
    """Where a decision stands after something was `told`, what changed, and what is lacking."""
    words, console = str(case), plain_console()
    if case.changed:
        print_wrapped(console, words[0].upper() + words[1:], "bold")
        # A server of the version before says that it changed, and not what it was.
        for change in [] if case.previous is None else case.changes_from(case.previous):
            print_indented(console, change)
    else:
        print_wrapped(console, f"Nothing new: {words}")
        for said in case.superseded_values(labels_of(experiment.problem, told, "")).values():
            print_indented(console, f"{said}; `dowise amend` changes it again.")
    for line in experiment.idle(case.id):
        print_indented(console, f"{line}.")
    lacking = case.missing_variables(experiment.problem)
    if case.status in ("pending", "done") and lacking:
        click.echo("\nStill to be told:")
        click.echo(f"  {_tell(experiment, target, case.id, lacking, experiment.problem)}")


def revised_page(experiment: LiveExperiment, is_news: bool) -> dict[str, Any]:
    """What holds from here on, for JSON."""
    page = {**_plan_page(experiment), "changed": is_news}
    return page | {"past_records": experiment.counted().as_dict()}


def show_revised(experiment: LiveExperiment, is_news: bool) -> None:
    """What holds from here on."""
    if not is_news:
        click.echo(f"Nothing changes: this is what holds in {experiment.name} already.")
        return
    click.secho(f"{experiment.name}, from here on", bold=True)
    _show_plan(experiment)
    with working("Reading past records …"):
        counted = experiment.counted()
    for line in counted.in_words().splitlines():
        print_indented(plain_console(), line, "bold red" if counted.is_in_vain else None)


def erased_page(experiment: LiveExperiment, decision: int, is_news: bool) -> dict[str, Any]:
    """A decision that was erased, for JSON."""
    page = {"id": decision, "status": "erased", "changed": is_news}
    return {**page, "head": str(experiment.head)}


def show_erased(experiment: LiveExperiment, decision: int, is_news: bool) -> None:
    """What is gone, and what is not."""
    if not is_news:
        click.echo(f"Nothing new: decision {decision} was erased before.")
        return
    click.secho(f"Decision {decision} of {experiment.name} was erased", bold=True)
    click.echo("  Its number stays, and the journal says when it was erased, by whom and why.")
    click.echo("  Exports and backups are yours to erase.")


def show_imported(
    experiment: LiveExperiment, file: Path, imported: int, found: CheckedRecords
) -> None:
    """How many records came in, which rows did not, and what of all that is known is not used."""
    if imported:
        click.secho(f"{count(imported, 'record')} imported from {file}", bold=True)
    else:
        click.echo(f"Nothing to import: {file} has no good rows")
    _show_bad(found)
    if imported:
        _show_use(experiment)


def use_of(experiment: LiveExperiment) -> list[str]:
    """What is not used of all past records, and why: sentences."""
    try:
        counted = experiment.counted()
    except DowiseError:  # a policy of one's own that is not registered in this process
        return []
    left_out = (f"{count(n, 'record')} left out: {why}." for why, n in counted.left_out.items())
    return [*left_out, *counted.unused_in_words()]


def _show_use(experiment: LiveExperiment) -> None:
    with working("Reading past records …"):
        lines = use_of(experiment)
        is_in_vain = bool(lines) and experiment.counted().is_in_vain
    if lines:
        click.echo("  Of all records and decisions so far:")
    for line in lines:
        print_indented(plain_console(), line, "bold red" if is_in_vain else None)


def _show_bad(found: CheckedRecords) -> None:
    if found.bad_count:
        click.echo(f"  {count(found.bad_count, 'bad row')} left out:")
        click.echo("\n".join(f"  {line}" for line in shown_bad_rows(found)))


def _plan_page(experiment: LiveExperiment) -> dict[str, Any]:
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


def _show_plan(experiment: LiveExperiment) -> None:
    problem = experiment.problem
    wanted = "minimise" if problem.minimise else "maximise"
    _line(wanted, f"{problem.reward} ({_worth(problem)})")
    if not _are_as_they_read(problem.reward_values):
        note = f"The labels of {problem.reward} are numbers, but only their order counts:"
        remedy = "say what they count as with `reward_values` in the problem file."
        print_indented(plain_console(), f"{note} {remedy}", "bold red")
    if problem.context:
        _line("context", ", ".join(problem.context))
    few = [str(arm) for arm in problem.arms[:_MANY]]
    if len(problem.arms) > _MANY:
        few.append(f"and {len(problem.arms) - _MANY:,} more")
    if len(", ".join(few)) <= plain_console().width - 12:
        few = [", ".join(few)]
    for i, line in enumerate(few):
        _line("" if i else "arms", line)
    if problem.forbidden:
        _line("forbidden", ", ".join(map(str, problem.forbidden)))
    if problem.costs:
        _line("costs", ", ".join(costs_in_words(problem)))
    floor = experiment.options.get("floor")
    _line("policy", experiment.policy + (f" with floor={floor:g}" if floor else ""))
    if (said := floor_advice(experiment.policy, experiment.options)) is not None:
        _line("", said)


def _worth(problem: Problem) -> str:
    """What the values of the reward count as, or the best and the worst of many."""
    worth = [f"{label} counts as {value:g}" for label, value in problem.reward_values.items()]
    if len(worth) > _MANY:
        low, high = min(problem.reward_values.values()), max(problem.reward_values.values())
        return f"{len(worth)} values that count as {low:g} to {high:g}"
    return ", ".join(worth)


def _are_as_they_read(worth: Mapping[str, float]) -> bool:
    """False where labels are numbers, and count by their order for want of other word."""
    counts, steps = [*worth.values()], max(len(worth) - 1, 1)
    if counts != [i / steps for i in range(len(counts))]:
        return True  # somebody said what they count as
    try:
        labels = [float(label) for label in worth]
    except ValueError:
        return True
    first, span = labels[0], labels[-1] - labels[0]
    return all(
        isclose(label - first, value * span, abs_tol=1e-9 * abs(span))
        for label, value in zip(labels, counts, strict=True)
    )


def _line(what: str, said: str) -> None:
    print_wrapped(plain_console(), said, hanging=12, first=f"  {what:<10}")


def _why(asked: LiveDecision) -> str:
    chance = f"{asked.arm}, with probability {_chance(asked)}"
    return f"{chance}: {asked.reason}" if asked.reason else chance


def _chance(asked: LiveDecision) -> str:
    return "unknown" if asked.probability is None else f"{asked.probability:.2f}"


def _tell(
    experiment: LiveExperiment,
    target: StoreTarget,
    number: int,
    lacking: Sequence[str],
    problem: Problem,
) -> str:
    """The command that tells these variables, the reward last."""
    names = sorted(lacking, key=lambda name: (name == problem.reward, name))
    pairs = [format_pair(name, "…") for name in names]
    if len(pairs) > _MANY:
        pairs = [*pairs[: _MANY - 1], "…", pairs[-1]]
    return target.command_line(experiment, "tell", str(number), *pairs)
