"""Sensitivity to the prior: what the arms look like under several priors, before and after data.

Before any data everything follows from the prior and the graph. Where priors still disagree after
the data, the records have not decided yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np

from dowise._core.codec import to_json
from dowise._core.document import (
    Block,
    BulletList,
    Document,
    Documented,
    Heading,
    Paragraph,
    Table,
    format_number,
    pluralize,
)
from dowise._core.types import IntArray
from dowise.belief import Belief
from dowise.belief.belief import no_reward_note
from dowise.errors import DowiseError, join_names, type_name
from dowise.experiment.record_usage import describe_unused_values, why_no_record_counts
from dowise.experiment.status import (
    LEVEL,
    MAX_SHOWN_ARMS,
    MAX_SHOWN_CONTEXTS,
    ArmSummary,
    context_text,
    count_contexts,
    number_of_draws,
    summarize_arms,
)
from dowise.model import Codes
from dowise.problem import Intervention, Problem, load_problem
from dowise.problem.domains import MISSING
from dowise.problem.prior import KnownPrior, Prior, prior_from_user
from dowise.problem.problem import Context
from dowise.problem.record import RecordBatch
from dowise.problem.tables import prefix_errors, read_table

PRIORS: tuple[Prior, ...] = ("flat", 0.5, "pooled")


@dataclass(frozen=True, eq=False)
class PriorSummary:
    """Arms under one prior, before any data or after them."""

    name: str
    """"flat", "pooled", a number of counts, "counts" by variable, or "the problem's"."""
    contexts: tuple[ArmSummary, ...]


@dataclass(frozen=True, eq=False)
class Sensitivity(Documented):
    """Result of `sensitivity`; `str(result)` is a readable summary, `as_dict()` a JSON document."""

    problem: Problem
    records: int | None
    """Number of records; None without data."""
    before: tuple[PriorSummary, ...]
    """What the arms look like before any data, under each prior."""
    after: tuple[PriorSummary, ...]
    """What they look like after the data; empty without data."""
    notes: tuple[str, ...] = ()

    def recommendations(
        self, context: int = 0, after: bool = True
    ) -> dict[str, tuple[Intervention, ...]]:
        """Return the arms with the best mean under each prior, in the context at this position.

        Parameters
        ----------
        context : int, default 0
            Position of the context.
        after : bool, default True
            After the data, if there are any; False for before.

        Returns
        -------
        dict
            By prior: one arm, or those that tie.

        Examples
        --------
        >>> result = sensitivity("task1", {"arm": ["do(X=1)"], "X": [1], "Z": [0], "Y": [1]})
        >>> [str(arm) for arm in result.recommendations()["flat"]]
        ['do(X=1)']
        """
        found = {}
        for summary in (after and self.after) or self.before:
            arms = summary.contexts[context]
            found[summary.name] = tuple(arms.arms[i] for i in arms.leaders)
        return found

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON document."""
        contexts = range(len(self.before[0].contexts))
        data: dict[str, Any] = to_json(
            {
                "problem": self.problem.name,
                "records": self.records,
                "level": LEVEL,
                "before": self._stage(self.before),
                "after": self._stage(self.after) if self.after else None,
                "agree": [len({*self.recommendations(i).values()}) == 1 for i in contexts],
                "notes": list(self.notes),
            }
        )
        return data

    @staticmethod
    def _stage(summaries: tuple[PriorSummary, ...]) -> list[dict[str, Any]]:
        return [
            {"prior": summary.name, "contexts": [arms.as_dict() for arms in summary.contexts]}
            for summary in summaries
        ]

    def document(self) -> Document:
        """Return for each context what the priors recommend, and a table of the arms."""
        return Document(tuple(self._blocks()))

    def _blocks(self) -> Iterator[Block]:
        name = self.problem.name
        title = "the arms under several priors"
        yield Heading(f"{name}: {title}" if name else title.capitalize())
        if self.notes:
            yield BulletList(self.notes)
        for i, arms in enumerate(self.before[0].contexts):
            if arms.context:
                yield Heading(context_text(arms))
            yield from self._stage_blocks(i, self.before, "Before any data")
            if self.records:
                after = f"After {pluralize(self.records, 'record')}"
                yield from self._stage_blocks(i, self.after, after)
        yield Paragraph(_EXPLANATION, "muted")

    def _stage_blocks(
        self, context: int, stage: tuple[PriorSummary, ...], when: str
    ) -> Iterator[Block]:
        """Yield what the priors recommend, and a row for each arm and prior."""
        leaders = self.recommendations(context, after=stage is self.after)
        yield Paragraph(f"{when} {_recommendation(leaders, len(self.problem.arms))}.", "strong")
        summaries = [summary.contexts[context] for summary in stage]
        likely = np.max([arms.best for arms in summaries], axis=0)
        order = list(range(len(self.problem.arms)))
        if len(order) > MAX_SHOWN_ARMS:
            order = sorted(sorted(order, key=lambda i: (-likely[i], i))[:MAX_SHOWN_ARMS])
        marks = [len(arms.leaders) < len(arms.arms) for arms in summaries]
        rows = [
            (
                str(arms.arms[i]) if arms is summaries[0] else "",
                summary.name,
                format_number(arms.mean[i]),
                f"{format_number(arms.low[i])} to {format_number(arms.high[i])}",
                f"{arms.best[i]:.2f}",
                *["recommended" if is_marked and i in arms.leaders else ""] * any(marks),
            )
            for i in order
            for summary, arms, is_marked in zip(stage, summaries, marks, strict=True)
        ]
        columns = ("arm", "prior", "mean", "90 % interval", "P(best)", *[""] * any(marks))
        yield Table(columns, tuple(rows), right=("mean", "P(best)"))
        if len(order) < len(self.problem.arms):
            hidden = pluralize(len(self.problem.arms) - len(order), "arm")
            yield Paragraph(f"{hidden} less likely to be the best not shown.", "muted")


_EXPLANATION = (
    "flat: rows of tables are independent, with one count for every entry; 0.5: the same with half "
    "a count; pooled: a row that was never seen is expected to look like the other rows of its "
    "table. P(best): chance of being the best."
)


def _recommendation(leaders: Mapping[str, tuple[Intervention, ...]], arms: int) -> str:
    """Return the end of a sentence about what each prior recommends."""
    by_arms: dict[tuple[Intervention, ...], list[str]] = {}
    for name, best in leaders.items():
        by_arms.setdefault(best, []).append(name)
    if len(by_arms) == 1:
        (best,) = by_arms
        if len(best) == arms > 1:
            return "no prior tells the arms apart"
        return f"every prior recommends {_arm_list(best)}"
    parts = [f"{_arm_list(best)} ({' and '.join(names)})" for best, names in by_arms.items()]
    return f"the recommendation depends on the prior: {'; '.join(parts)}"


def _arm_list(leaders: tuple[Intervention, ...]) -> str:
    return str(leaders[0]) if len(leaders) == 1 else f"a tie of {join_names(map(str, leaders))}"


def sensitivity(
    problem: Problem | str | Path,
    data: Any = None,
    *,
    context: Context = None,
    priors: Sequence[Prior] = PRIORS,
) -> Sensitivity:
    """Compare what the arms look like under several priors, before any data and after data.

    Parameters
    ----------
    problem : Problem, str or Path
        The problem, the path of a problem file, or the name of a built-in problem.
    data : table, str or Path, optional
        Past records, as `Belief.update_many` takes them, or the path of a CSV or Parquet file.
    context : mapping, optional
        Context to show. By default all, or the most frequent ones in the data if there are many.
    priors : sequence of priors, default ("flat", 0.5, "pooled")
        Priors as `Belief` takes them. A prior that the problem states is added.

    Returns
    -------
    Sensitivity

    Raises
    ------
    DowiseError
        If an argument is invalid, or the graph is too large for a posterior.

    Examples
    --------
    >>> result = sensitivity("task1")
    >>> [summary.name for summary in result.before]
    ['flat', '0.5', 'pooled']
    """
    if isinstance(problem, str | Path):
        problem = load_problem(problem)
    if not isinstance(problem, Problem):
        raise DowiseError(
            "problem must be a Problem, the path of a problem file or the name of a built-in "
            f"problem, not {type_name(problem)}",
            code="invalid-type",
        )
    if isinstance(priors, str | Mapping) or not isinstance(priors, Sequence) or not priors:
        raise DowiseError(
            f"priors={priors!r} must be a list of priors, such as ['flat', 'pooled']",
            code="invalid-type",
        )
    codes = None if context is None else [problem.context_codes(context)]
    columns: Container[str] = problem.domains
    records = None
    if data is not None:
        records, columns = _read_records(problem, data)
    by_name = dict[str, KnownPrior]()
    for prior in (prior_from_user(problem, prior) for prior in priors):
        if prior not in by_name.values():
            by_name[_name_of(prior, by_name)] = prior
    if problem.states_prior and problem.prior not in by_name.values():
        by_name["the problem's"] = problem.prior
    beliefs = {name: Belief(problem, prior) for name, prior in by_name.items()}
    notes: list[str] = []
    if codes is None:
        codes = _contexts_to_show(problem, records)
        if len(codes) < count_contexts(problem):
            kind = "first" if records is None else "most frequent"
            notes.append(
                f"There are {count_contexts(problem):,} contexts; these are the {len(codes)} "
                f"{kind} ones. Any other can be asked for by name."
            )
    before = _summaries(beliefs, codes, None)
    after: tuple[PriorSummary, ...] = ()
    if records is not None:
        for belief in beliefs.values():
            belief.learn_many(records)
        after = _summaries(beliefs, codes, records)
        belief = next(iter(beliefs.values()))  # all of them use the same records
        if belief.times_learned()[problem.reward]:
            notes += (f"{line}." for line in describe_unused_values(belief))
        else:
            lines = no_reward_note(records)
            notes += lines or [why_no_record_counts(belief, len(records), columns)]
    count = None if records is None else len(records)
    return Sensitivity(problem, count, before, after, tuple(notes))


def _name_of(prior: KnownPrior, taken: Iterable[str]) -> str:
    """Return "flat", "pooled", a number, "counts", or "counts 2" if that is taken, and so on."""
    if isinstance(prior, Mapping):
        earlier = sum(name.startswith("counts") for name in taken)
        return f"counts {earlier + 1}" if earlier else "counts"
    return "flat" if prior == 1 else str(prior)


def _read_records(problem: Problem, data: Any) -> tuple[RecordBatch, Container[str]]:
    """Return the records, and the variables that are columns of their table, if it is a file."""
    if not isinstance(data, str | Path):
        return problem.records(data), problem.domains
    table = read_table(data, problem)
    with prefix_errors(data):
        return problem.records(table), {*table.sources.variables}


def _contexts_to_show(problem: Problem, records: RecordBatch | None) -> list[Codes]:
    """Return all contexts if they are few, otherwise the most frequent or the first ones."""
    sizes = [len(problem.domains[name]) for name in problem.context]
    possible = islice(product(*map(range, sizes)), MAX_SHOWN_CONTEXTS)
    if count_contexts(problem) <= MAX_SHOWN_CONTEXTS or records is None:
        return list(possible)
    rows = records.codes[problem.context_positions].T.tolist()
    times = Counter(tuple(row) for row in rows if MISSING not in row)
    ranked = sorted(times, key=lambda codes: (-times[codes], codes))[:MAX_SHOWN_CONTEXTS]
    return ranked or list(possible)


def _summaries(
    beliefs: Mapping[str, Belief], contexts: list[Codes], records: RecordBatch | None
) -> tuple[PriorSummary, ...]:
    """Summarize the arms under each prior; draws have the same seed everywhere."""
    tried, plays = set[Intervention](), dict[Codes, IntArray]()
    if records is not None:
        tried, plays = _plays(records, contexts)
    summaries = []
    for name, belief in beliefs.items():
        problem = belief.problem
        draws = number_of_draws(belief, len(contexts) * len(beliefs))
        arms = tuple(
            summarize_arms(
                belief,
                problem.context_labels(codes),
                plays.get(codes),
                draws,
                1 / len(contexts),
                tried,
            )
            for codes in contexts
        )
        summaries.append(PriorSummary(name, arms))
    return tuple(summaries)


def _plays(
    records: RecordBatch, contexts: list[Codes]
) -> tuple[set[Intervention], dict[Codes, IntArray]]:
    """Return the arms of records with a reward, and their number by context."""
    problem = records.problem
    records = records.take(records.codes[problem.reward_position] != MISSING)
    played, which = records.arms()
    plays = {}
    for codes in contexts:
        is_here = (np.array(codes) == records.codes[problem.context_positions].T).all(axis=1)
        times = np.bincount(which[is_here], minlength=len(played))
        by_arm = dict(zip(played, times.tolist(), strict=True))
        plays[codes] = np.array([by_arm.get(arm, 0) for arm in problem.arms], dtype=np.int64)
    return {*played}, plays
