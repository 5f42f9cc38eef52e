"""Commands that set up an experiment: new, revise, import."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import isclose
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dowise._core.document import Block, BulletList, Heading, Paragraph, Table, pluralize
from dowise.cli.arguments import StoreTarget, format_pair, parse_options, read_problem
from dowise.cli.console import print_blocks, print_json, progress_bar, spinner
from dowise.cli.options import (
    ERROR_DETAILS,
    command,
    file_option,
    flag_option,
    integer_option,
    learn_restricted_option,
    options_option,
    policy_option,
    prior_option,
    problem_argument,
    reason_option,
    store_command,
)
from dowise.errors import DowiseError

if TYPE_CHECKING:
    from dowise.experiment.advice import SoftAdvice
    from dowise.experiment.base import ExperimentBase
    from dowise.problem import Problem
    from dowise.problem.tables import CheckedRecords

_MAX_BAD_ROWS = 20  # on a terminal
_MAX_ARMS = 8  # arms, or values of the reward, that are listed
_MAX_LINE = 66  # characters of a list of arms; longer lists have a line per arm


@command(policies=True)
@store_command(
    policies=True, name_help="Name of the experiment; by default that of the problem or its file."
)
@problem_argument
@policy_option(show_default="best")
@options_option
@prior_option
@integer_option(
    "--seed",
    "S",
    "Random seed. Anyone who knows it can predict the arms.",
    minimum=0,
    show_default="128 random bits",
)
@learn_restricted_option(True)
@file_option("--data", "Past records to start with, CSV or Parquet, as for `dowise import`.")
@flag_option("--skip-bad", "Leave out bad rows of --data.")
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
    """Create an experiment in STORE.

    STORE is a file, which is created if needed, or a URL: sqlite:///ward.db,
    postgresql://user@host/base, or that of a `dowise serve`, http://127.0.0.1:8000. It holds any
    number of experiments.

    Examples:
      dowise new ward.db ward.toml
      dowise new ward.db ward.toml --data past.csv --policy ts
      dowise new postgresql://ann@host/trials ward.toml --name ward-7
      dowise new ward.db ward.toml --policy ids --option samples=5000 --prior 0.5
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


@command(policies=True)
@store_command(policies=True)
@click.option("--problem", metavar="PROBLEM", help="Problem to use from now on.")
@policy_option()
@options_option
@prior_option
@learn_restricted_option(None)
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
    """Change the problem, policy or prior from now on.

    Past records are counted again. Options that are not specified stay as they are; another policy
    starts with its defaults.

    Examples:
      dowise revise ward.db --problem ward2.toml --reason "age was missing in the graph"
      dowise revise ward.db --policy ts --reason "faster"
      dowise revise ward.db --option floor=0.1 --reason "to evaluate others"
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
        title = Heading(f"{experiment.name}, from now on")
        print_blocks(title, *_config_blocks(experiment), *usage.document().blocks)


@command(name="import")
@store_command()
@click.argument("file", type=click.Path(path_type=Path))
@flag_option("--skip-bad", "Leave out bad rows; they are still listed.")
@flag_option("--again", "Count records again that were imported before.")
def import_records(
    target: StoreTarget, file: Path, skip_bad: bool, again: bool, as_json: bool
) -> None:
    """Import past records from a CSV or Parquet FILE.

    FILE has a row for each record and a column for each variable. The column `arm` says what was
    set, such as do(X=1); without it nothing was. Empty cells are missing values; so are NA, N/A,
    nan and null unless they are labels. If a row is bad, nothing is imported and the bad rows are
    listed.

    Examples:
      dowise import ward.db past.csv
      dowise import ward.db past.parquet --skip-bad
      dowise import ward.db january.csv --again
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
        print_blocks(*blocks)


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
    from dowise.experiment.record_import import BadRowsError

    try:
        yield
    except BadRowsError as error:
        message = f"{path}: {error.summary}. Correct them, or leave them out with --skip-bad"
        if as_json:
            details = {"imported": 0, **_bad_rows_to_json(error.checked)}
            click.get_current_context().meta[ERROR_DETAILS] = details
        else:
            message = "\n".join([message, *(f"  {row}" for row in _bad_rows(error.checked))])
        raise DowiseError(message, code="bad-rows") from None


def _bad_rows_to_json(records: CheckedRecords) -> dict[str, Any]:
    return {"bad_count": records.bad_count, "bad": [row._asdict() for row in records.bad]}


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
        is_in_vain = bool(lines) and experiment.counted().has_no_usable_reward
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
    from dowise.problem.problem_file import describe_costs

    problem = experiment.problem
    arms = [str(arm) for arm in problem.arms[:_MAX_ARMS]]
    if len(problem.arms) > _MAX_ARMS:
        arms.append(f"and {len(problem.arms) - _MAX_ARMS:,} more")
    if len(", ".join(arms)) <= _MAX_LINE:
        arms = [", ".join(arms)]
    floor = experiment.options.get("floor")
    advice = floor_advice(experiment.policy, experiment.options)
    rows = (
        (
            "minimise" if problem.minimise else "maximise",
            f"{problem.reward} ({_describe_values(problem)})",
        ),
        ("context", ", ".join(problem.context)),
        *zip(["arms", *[""] * len(arms)], arms, strict=False),
        ("forbidden", ", ".join(map(str, problem.forbidden))),
        ("costs", ", ".join(describe_costs(problem)) if problem.costs else ""),
        ("policy", experiment.policy + (f" with floor={floor:g}" if floor else "")),
        ("", advice or ""),
    )
    blocks: list[Block] = [Table(("", ""), tuple(row for row in rows if row[1]))]
    if not _are_values_those_of_labels(problem.reward_values):
        blocks.append(
            Paragraph(
                f"The labels of {problem.reward} are numbers, but only their order counts: set "
                "reward_values in the problem file if they are worth what they say.",
                "warning",
            )
        )
    return blocks


def _describe_values(problem: Problem) -> str:
    """Describe the value of each reward label, or the range of many."""
    values = problem.reward_values
    if len(values) > _MAX_ARMS:
        low, high = min(values.values()), max(values.values())
        return f"{len(values)} values that count as {low:g} to {high:g}"
    return ", ".join(f"{label} counts as {value:g}" for label, value in values.items())


def _are_values_those_of_labels(values: Mapping[str, float]) -> bool:
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
    print_blocks(*blocks)
    click.echo(f"\n  head      {experiment.head}")  # unbroken, so that it can be copied
    click.echo("  Keep the head elsewhere: `dowise audit --head` then finds a rewritten journal.")
    named = replace(target, name=experiment.name if experiment.is_one_of_many else None)
    context = [x for name in experiment.problem.context for x in ("-c", format_pair(name, "…"))]
    click.echo(f"\nNext:\n  {named.command_line(experiment, 'ask', *context)}")
    if advice is not None:
        click.echo()
        print_blocks(Paragraph(str(advice)))
