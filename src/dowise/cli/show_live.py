"""What the commands that act on a live experiment print, for people and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dowise.cli.pairs import typed_pair
from dowise.cli.progress import working
from dowise.cli.records import bad_rows, shown_bad_rows
from dowise.cli.store import Where
from dowise.cli.tables import (
    count,
    is_narrow_enough,
    plain_console,
    print_indented,
    print_numbered,
    print_table,
    print_wrapped,
)
from dowise.errors import DowiseError
from dowise.experiment.advice import SoftAdvice, floor_advice
from dowise.experiment.asking import Asked
from dowise.experiment.case import Case, labels_of
from dowise.problem import Problem
from dowise.problem.problem_file import costs_in_words
from dowise.problem.tables import CheckedRecords

if TYPE_CHECKING:
    from dowise.cli.store import Live

__all__ = [
    "case_page", "erased_page", "new_page", "revised_page", "show_asked", "show_case",
    "show_erased", "show_imported", "show_new", "show_revised", "use_of",
]  # fmt: skip

_MANY = 8  # arms or variables that are named on one line


def new_page(
    experiment: Live, found: CheckedRecords | None, advice: SoftAdvice | None
) -> dict[str, Any]:
    """An experiment that was just made, for JSON."""
    return {
        **_plan_page(experiment),
        "imported": 0 if found is None else len(found.batch),
        **({} if found is None else {**bad_rows(found), "notes": use_of(experiment)}),
        "advice": None if advice is None else advice.as_dict(),
    }


def show_new(
    experiment: Live, where: Where, found: CheckedRecords | None, advice: SoftAdvice | None
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
    named = replace(where, name=experiment.name if experiment.is_one_of_many else None)
    seen = [part for name in experiment.problem.context for part in ("-c", typed_pair(name, "…"))]
    click.echo(f"\nNext:\n  {named.command(experiment, 'ask', *seen)}")
    if advice is not None:
        click.echo()
        print_wrapped(plain_console(), str(advice))


def show_asked(experiment: Live, where: Where, asked: Sequence[Asked]) -> None:
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
    told = experiment.case(first.id).open(first.problem)
    click.echo("\nWhen something is seen, in pieces if you like:")
    click.echo(f"  {_tell(experiment, where, first.id, told, first.problem)}")


def case_page(experiment: Live, case: Case) -> dict[str, Any]:
    """A decision after something was said of it, for JSON."""
    page = case.as_dict(experiment.problem)
    notes = [f"{line}." for line in experiment.idle(case.id)]
    return {**page, "notes": notes, "changed": case.is_news, "head": str(experiment.head)}


def show_case(
    experiment: Live,
    where: Where,
    case: Case,
    told: Mapping[str, str | None] | None = None,
) -> None:
    """Where a decision stands after something was `told`, what changed, and what is lacking."""
    words, console = str(case), plain_console()
    if case.is_news:
        print_wrapped(console, words[0].upper() + words[1:], "bold")
        # A server of the version before says that it changed, and not what it was.
        for change in [] if case.earlier is None else case.changes_from(case.earlier):
            print_indented(console, change)
    else:
        print_wrapped(console, f"Nothing new: {words}")
        for said in case.corrected_since(labels_of(experiment.problem, told, "")).values():
            print_indented(console, f"{said}; `dowise amend` changes it again.")
    for line in experiment.idle(case.id):
        print_indented(console, f"{line}.")
    lacking = case.open(experiment.problem)
    if case.status in ("pending", "done") and lacking:
        click.echo("\nStill to be told:")
        click.echo(f"  {_tell(experiment, where, case.id, lacking, experiment.problem)}")


def revised_page(experiment: Live, is_news: bool) -> dict[str, Any]:
    """What holds from here on, for JSON."""
    page = {**_plan_page(experiment), "changed": is_news}
    return page | {"past_records": experiment.counted().as_dict()}


def show_revised(experiment: Live, is_news: bool) -> None:
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


def erased_page(experiment: Live, decision: int, is_news: bool) -> dict[str, Any]:
    """A decision that was erased, for JSON."""
    page = {"id": decision, "status": "erased", "changed": is_news}
    return {**page, "head": str(experiment.head)}


def show_erased(experiment: Live, decision: int, is_news: bool) -> None:
    """What is gone, and what is not."""
    if not is_news:
        click.echo(f"Nothing new: decision {decision} was erased before.")
        return
    click.secho(f"Decision {decision} of {experiment.name} was erased", bold=True)
    click.echo("  Its number stays, and the journal says when it was erased, by whom and why.")
    click.echo("  Exports and backups are yours to erase.")


def show_imported(experiment: Live, file: Path, imported: int, found: CheckedRecords) -> None:
    """How many records came in, which rows did not, and what of all that is known is not used."""
    if imported:
        click.secho(f"{count(imported, 'record')} imported from {file}", bold=True)
    else:
        click.echo(f"Nothing to import: {file} has no good rows")
    _show_bad(found)
    if imported:
        _show_use(experiment)


def use_of(experiment: Live) -> list[str]:
    """What is not used of all past records, and why: sentences."""
    try:
        counted = experiment.counted()
    except DowiseError:  # a policy of one's own that is not registered in this process
        return []
    left_out = (f"{count(n, 'record')} left out: {why}." for why, n in counted.left_out.items())
    return [*left_out, *counted.unused_in_words()]


def _show_use(experiment: Live) -> None:
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


def _plan_page(experiment: Live) -> dict[str, Any]:
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


def _show_plan(experiment: Live) -> None:
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


def _why(asked: Asked) -> str:
    chance = f"{asked.arm}, with probability {_chance(asked)}"
    return f"{chance}: {asked.reason}" if asked.reason else chance


def _chance(asked: Asked) -> str:
    return "unknown" if asked.probability is None else f"{asked.probability:.2f}"


def _tell(
    experiment: Live, where: Where, number: int, lacking: Sequence[str], problem: Problem
) -> str:
    """The command that tells these variables, the reward last."""
    names = sorted(lacking, key=lambda name: (name == problem.reward, name))
    pairs = [typed_pair(name, "…") for name in names]
    if len(pairs) > _MANY:
        pairs = [*pairs[: _MANY - 1], "…", pairs[-1]]
    return where.command(experiment, "tell", str(number), *pairs)
