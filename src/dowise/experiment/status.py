"""Where an experiment stands: what each arm is expected to bring, how sure that is, what is open.

Everything follows from the posterior as of now (`dowise.experiment.status`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice, product
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dowise._core.codec import array_from_json, float_from_json, to_json
from dowise._core.document import format_number, pluralize
from dowise._core.validation import check_number
from dowise.belief import Belief
from dowise.belief.evidence import Evidence
from dowise.errors import import_extra
from dowise.experiment.case import Case
from dowise.experiment.counters import PlayCounts
from dowise.experiment.event import now
from dowise.experiment.read_model import IndependentArmsBelief
from dowise.problem import Intervention, Problem
from dowise.problem.problem import Context

if TYPE_CHECKING:
    from dowise.policies.value_of_continuing import Continuing


LEVEL = 0.9  # of the intervals
DRAWS, FEWEST_DRAWS = 10_000, 1000
MOST_CONTEXTS = 64
_OF_AN_ARM = ("mean", "low", "high", "best", "regret", "plays")
_ALIKE = 1e-9  # means that are closer than this, as a share, are equal
_WORK = 1.5e9  # multiplications that are done in about a second
_WORK_OF_AN_ARM = 150  # in multiplications, for one draw: quantiles, who wins

Floats = NDArray[np.float64]
Labels = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ArmsStatus:
    """The arms in one context."""

    context: dict[str, str]
    arms: tuple[Intervention, ...]
    mean: Floats
    """The posterior mean reward of each arm, net of cost, exact, in the user's units."""
    low: Floats
    """The ends of the central 90 % credible interval of each arm's mean reward."""
    high: Floats
    best: Floats
    """How likely each arm is to be the best."""
    regret: Floats
    """What each arm is expected to cost a round, against the best."""
    plays: NDArray[np.int64]
    """How many decisions with an outcome played it in this context."""
    leader: int
    """The position of the arm with the best posterior mean; of equals the likeliest to be best."""
    draws: int
    """How many draws all but the means rest on."""
    weight: float = 1.0
    """The share of decisions in this context."""

    @property
    def are_alike(self) -> bool:
        """Whether all arms have the same posterior mean."""
        return bool(np.ptp(self.mean) <= _ALIKE * np.abs(self.mean).max())

    @property
    def stopping(self) -> float:
        """What stopping now with the best-looking arm is expected to cost a round."""
        return float(self.regret[self.leader])

    def as_dict(self, problem: Problem) -> dict[str, Any]:
        """For JSON, once `to_json` has gone over it."""

        return {
            "context": self.context,
            "share": self.weight,
            "leader": str(self.arms[self.leader]),
            "leaders": [str(self.arms[i]) for i in tied(problem, self)],
            "expected_regret_of_stopping": self.stopping,
            "draws": self.draws,
            "arms": [
                {"arm": str(arm), **{name: getattr(self, name)[i] for name in _OF_AN_ARM}}
                for i, arm in enumerate(self.arms)
            ],
        }

    @classmethod
    def from_dict(cls, page: Mapping[str, Any], problem: Problem) -> ArmsStatus:
        """The way back from `as_dict`, under the same problem."""
        rows = page["arms"]
        if [row["arm"] for row in rows] != [str(arm) for arm in problem.arms]:
            raise ValueError("the arms are not those of the problem")
        numbers = {name: array_from_json([row[name] for row in rows]) for name in _OF_AN_ARM}
        return cls(
            dict(page["context"]),
            problem.arms,
            **{name: numbers[name] for name in _OF_AN_ARM if name != "plays"},
            plays=numbers["plays"].astype(np.int64),
            leader=[row["arm"] for row in rows].index(page["leader"]),
            draws=page["draws"],
            weight=float_from_json(page["share"]),
        )


def arms_status(
    belief: Belief,
    context: Context,
    plays: NDArray[np.int64] | None = None,
    draws: int = DRAWS,
    weight: float = 1.0,
) -> ArmsStatus:
    """The arms in one context; what is random about it has a fixed seed."""
    problem, payoff = belief.problem, belief.problem.payoff
    codes = problem.context_codes(context)
    drawn = belief.draw(codes, draws, 0)
    rewards = drawn.rewards(payoff).astype(np.float64)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(rewards, [tail, 1 - tail], axis=1)
    winners, _ = drawn.winners(payoff)
    labels = problem.context_labels(codes)
    mean, many = belief.mean_rewards(labels), len(problem.arms)
    best = np.bincount(winners, minlength=many) / draws
    return ArmsStatus(
        labels,
        problem.arms,
        mean,
        low,
        high,
        best,
        payoff.regrets(rewards.T).mean(axis=0),
        np.zeros(many, dtype=np.int64) if plays is None else plays,
        _leader(payoff.regrets(mean), best, payoff.span),
        draws,
        weight,
    )


def _leader(regrets: Floats, best: Floats, span: float) -> int:
    """The arm with the best mean; of those that are equal but for rounding, the likeliest best."""
    equal = np.flatnonzero(regrets <= _ALIKE * span)
    return int(equal[best[equal].argmax()])


def draws_for(belief: Belief, looks: int, fewest: int = FEWEST_DRAWS, most: int = DRAWS) -> int:
    """How many draws for each of so many looks take about a second in all, within limits."""
    circuit = belief.posterior.model.circuit if belief.has_factors else None
    work = _WORK_OF_AN_ARM * len(belief.problem.arms)
    if circuit is not None:
        work += sum(part.size for part in circuit.operations)
    return int(np.clip(_WORK / (max(looks, 1) * work), fewest, most))


def contexts_of(
    problem: Problem, came: PlayCounts, most: int = MOST_CONTEXTS
) -> list[dict[str, str]]:
    """All contexts where these are few, else those that came most often."""
    names = problem.context
    every = product(*(problem.domains[name] for name in names))
    if prod(len(problem.domains[name]) for name in names) <= most or not came.times:
        chosen = list(islice(every, most))
    else:
        chosen = came.most_common(most)
    return [dict(zip(names, labels, strict=True)) for labels in chosen]


@dataclass(frozen=True, eq=False)
class Status:
    """Where an experiment stands; `str(status)` says it in words."""

    name: str
    problem: Problem
    policy: str
    contexts: tuple[ArmsStatus, ...]
    is_one_context: bool
    """Whether it was asked for one context only, or there is only one."""
    counts: dict[str, int]
    """How many decisions are pending, done, withdrawn, erased; restricted; played otherwise."""
    pending: tuple[Case, ...]
    """The decisions whose reward was not told yet, oldest first."""
    edges: dict[str, float]
    """How likely each doubtful edge is to be there."""
    evidence: Evidence | None
    """What the records say against the graph; None where that was not looked at."""
    imported: int
    """How many records were brought in."""
    unused: dict[str, dict[str, int]] = field(default_factory=dict)
    """What was seen and could not be used, by variable and reason: how often."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Records that the policy left out as a whole, by the reason."""
    notes: tuple[str, ...] = ()
    """What to know about these numbers."""
    has_contexts: bool = True
    """Whether any decision had one of these contexts; without any all weigh alike."""
    incomplete: tuple[Case, ...] = ()
    """Decisions whose reward was told, but of which something does not count until more is."""
    continuing: Continuing | None = None
    """What so many rounds more are worth; None where that was not asked for."""

    @property
    def stopping(self) -> float:
        """What stopping now is expected to cost a round, over the contexts as they came."""
        return float(sum(one.weight * one.stopping for one in self.contexts))

    @property
    def expected_regret_of_stopping(self) -> float:
        """The same as `stopping`."""
        return self.stopping

    @property
    def alarms(self) -> tuple[str, ...] | None:
        """Edges that the graph seems to lack; None where the evidence was not looked at."""
        return None if self.evidence is None else self.evidence.alarms

    def should_stop(self, tolerance: float) -> bool:
        """Whether the advice is to stop."""
        return self.stopping <= check_number("tolerance", tolerance, 0)

    def advice(self, tolerance: float) -> str:
        """Whether to stop, if a loss of `tolerance` a round does not matter."""
        cost, limit = f"{format_number(self.stopping)} a round", f"your tolerance of {tolerance:g}"
        if self.should_stop(tolerance):
            return (
                "You can stop: playing what looks best from now on is expected to cost "
                f"{cost}, which is within {limit}.{self._but_not_everywhere(tolerance)}"
            )
        return f"Go on: stopping now is expected to cost {cost}, which is above {limit}."

    def not_yet(self, tolerance: float) -> tuple[ArmsStatus, ...]:
        """The contexts in which stopping now is expected to cost more than the tolerance."""
        return tuple(one for one in self.contexts if one.stopping > tolerance)

    def _but_not_everywhere(self, tolerance: float) -> str:
        above = self.not_yet(tolerance)
        if not above:
            return ""
        worst = max(above, key=lambda one: one.stopping)
        where = ", ".join(f"{name}={label}" for name, label in worst.context.items())
        more = f", and above it in {len(above) - 1} more contexts" if len(above) > 1 else ""
        came = f", which {worst.weight:.0%} of decisions had" if self.has_contexts else ""
        return f" But not where {where}{came}: there it is {format_number(worst.stopping)}{more}."

    def in_words(self, tolerance: float | None = None) -> str:
        """All of it in sentences."""

        return status_in_words(self, tolerance)

    def __str__(self) -> str:
        return self.in_words()

    def frame(self) -> Any:
        """A pandas table: arm, mean, low, high, best, plays; the context first, where several."""
        pandas = import_extra("pandas", "simulate", "a table")
        return pandas.DataFrame(self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """The same rows as mappings."""
        names = ("mean", "low", "high", "best", "plays")
        return [
            {
                **({} if self.is_one_context else one.context),
                "arm": str(arm),
                **{name: getattr(one, name)[i].item() for name in names},
            }
            for one in self.contexts
            for i, arm in enumerate(one.arms)
        ]

    def as_dict(self, tolerance: float | None = None) -> dict[str, Any]:
        """For JSON."""
        advice = {} if tolerance is None else {
            "tolerance": tolerance, "stop": self.should_stop(tolerance),
            "advice": self.advice(tolerance),
            "not_yet": [one.context for one in self.not_yet(tolerance)],
        }  # fmt: skip
        evidence = self.evidence
        page: dict[str, Any] = to_json(
            {
                "name": self.name,
                "policy": self.policy,
                "decisions": self.counts,
                "imported": self.imported,
                "expected_regret_of_stopping": self.stopping,
                **({} if self.continuing is None else {"continuing": self.continuing.as_dict()}),
                **advice,
                "contexts": [one.as_dict(self.problem) for one in self.contexts],
                "pending": [
                    self._case_page(case) | {"waiting_seconds": waiting(case)}
                    for case in self.pending
                ],
                "incomplete": [self._case_page(case) for case in self.incomplete],
                "edges": self.edges,
                "alarms": self.alarms,
                "suspected": None if evidence is None else evidence.suspected,
                "unused": self.unused,
                "left_out": self.left_out,
                "notes": self.notes,
                "evidence": None if evidence is None else evidence.as_dict(),
                "is_one_context": self.is_one_context,
                "has_contexts": self.has_contexts,
            }
        )
        return page

    def _case_page(self, case: Case) -> dict[str, Any]:
        """A decision in a list: its arm as a text."""
        return case.as_dict(self.problem) | {"arm": str(case.arm)}

    @classmethod
    def from_dict(cls, page: Mapping[str, Any], problem: Problem) -> Status:
        """The way back from `as_dict`, under the same problem."""
        from dowise.policies.value_of_continuing import Continuing

        evidence, more = page["evidence"], page.get("continuing")
        return cls(
            page["name"],
            problem,
            page["policy"],
            tuple(ArmsStatus.from_dict(one, problem) for one in page["contexts"]),
            page["is_one_context"],
            dict(page["decisions"]),
            tuple(map(Case.from_dict, page["pending"])),
            {edge: float_from_json(chance) for edge, chance in page["edges"].items()},
            None if evidence is None else Evidence.from_dict(evidence, problem),
            page["imported"],
            {name: dict(reasons) for name, reasons in page["unused"].items()},
            dict(page["left_out"]),
            tuple(page["notes"]),
            page["has_contexts"],
            tuple(map(Case.from_dict, page["incomplete"])),
            None if more is None else Continuing.from_dict(more),
        )


def looked_at(
    belief: Belief, context: Context, came: PlayCounts
) -> tuple[tuple[ArmsStatus, ...], list[str]]:
    """The arms in this context, or in each of them, and what to know about the numbers."""
    problem, notes = belief.problem, []
    if context is None and problem.context:
        contexts = contexts_of(problem, came)
        there = prod(len(problem.domains[name]) for name in problem.context)
        if len(contexts) < there:
            which = "that came most often" if came.times else "that come first"
            notes.append(
                f"There are {there:,} contexts: these are the {len(contexts)} {which}. Ask for any "
                "other by name."
            )
    else:
        contexts = [problem.context_labels(problem.context_codes(context))]
    if isinstance(belief, IndependentArmsBelief):
        notes.append(
            "The graph is too large for a posterior, so each arm is judged by its own rewards in "
            f"each context, whatever else was seen: {belief.why}."
        )
    draws = draws_for(belief, len(contexts))
    found = tuple(
        arms_status(belief, one, came.plays(one), draws, share)
        for one, share in zip(contexts, came.shares(contexts), strict=True)
    )
    return found, notes


def usual_tolerance(problem: Problem) -> float:
    """A loss a round that matters little, unless somebody says otherwise.

    It is a hundredth of what lies between the best and the worst reward: 0.01 from 0 to 1, and 30
    from 0 to 3,000.
    """
    return problem.payoff.span / 100


def waiting(case: Case) -> float:
    """For how many seconds a decision has been pending."""
    return max((now() - datetime.fromisoformat(case.asked_at)).total_seconds(), 0.0)


_SHOWN, _NAMED = 10, 3  # pending decisions, arms that tie
_TIE = 1e-12  # means that are closer than this, as a share, are the same
_UNITS = (("day", 86_400), ("hour", 3600), ("minute", 60))


def status_in_words(status: Status, tolerance: float | None = None) -> str:
    """All that there is to say, a sentence or two a line."""
    lines = [f"{status.name}: {decisions_in_words(status)}."]
    for one in status.contexts:
        where = "" if not one.context else f"{context_text(one)}: "
        lines.append(f"{where}{leader_in_words(status, one)}")
    has_more = status.continuing is not None
    lines += [stopping_in_words(status, has_more), *continuing_in_words(status)]
    if tolerance is not None:
        lines.append(status.advice(tolerance))
    lines += pending_in_words(status)
    lines += lacking_in_words(status)
    lines += graph_in_words(status)
    return "\n".join([*lines, *status.notes])


def context_text(one: ArmsStatus) -> str:
    """ "C=1, D=low"."""
    return ", ".join(f"{name}={label}" for name, label in one.context.items())


def decisions_in_words(status: Status) -> str:
    """How many decisions there are, and of which kind."""
    counts = status.counts
    parts = [f"{counts['done']:,} with an outcome", f"{counts['pending']:,} pending"]
    parts += [f"{counts[kind]:,} {kind}" for kind in ("withdrawn", "erased") if counts[kind]]
    text = f"{pluralize(counts['asked'], 'decision')} ({', '.join(parts)})"
    if status.imported:
        brought = pluralize(status.imported, "imported record")
        text += f", {brought} (in the means; plays are decisions alone)"
    return f"{text}; the policy is {status.policy}"


def leader_in_words(status: Status, one: ArmsStatus) -> str:
    """Which arm looks best in a context, and how sure that is."""
    i, same = one.leader, tied(status.problem, one)
    mean, cost = (
        format_number(one.mean[i]),
        f"is expected to cost {format_number(one.stopping)} a round",
    )
    if len(same) == len(one.arms) > 1:
        return (
            f"Nothing tells the arms apart yet: all have a mean reward of {mean}, and always "
            f"playing one of them {cost}."
        )
    notes = ["smaller is better"] * status.problem.minimise
    notes += ["net of what it costs"] * status.problem.payoff.has_costs
    order = f" ({', '.join(notes)})" if notes else ""
    if len(same) > 1:
        return (
            f"{_arms_in_words(one, same)} tie for the best, each with a mean reward of "
            f"{mean}{order}; one of them is the best with probability {one.best[same].sum():.2g}, "
            f"and always playing one of them {cost}."
        )
    return (
        f"{one.arms[i]} looks best, with a mean reward of {mean}{order}; it is the best with "
        f"probability {one.best[i]:.2g}, and always playing it {cost}."
    )


def tied(problem: Problem, one: ArmsStatus) -> list[int]:
    """The arms whose mean is that of the arm that looks best, which is among them."""
    if one.are_alike:
        return list(range(len(one.arms)))
    scale = max(problem.payoff.span, float(np.abs(one.mean).max()))
    same: list[int] = np.flatnonzero(
        np.abs(one.mean - one.mean[one.leader]) <= _TIE * scale
    ).tolist()
    return same


def _arms_in_words(one: ArmsStatus, places: list[int]) -> str:
    if len(places) > _NAMED:
        return f"{len(places):,} of {pluralize(len(one.arms), 'arm')}"
    *first, last = (str(one.arms[i]) for i in places)
    return f"{', '.join(first)} and {last}"


def stopping_in_words(status: Status, has_more: bool = False) -> str:
    """What stopping now is expected to cost; `has_more` where it is said what more rounds gain."""
    over = f", {_weighed(status)}" if len(status.contexts) > 1 else ""
    cost = f"Expected regret of stopping now: {format_number(status.stopping)} a round{over}."
    if has_more and status.problem.context:
        return cost  # what could be gained at most follows, over other contexts
    return f"{cost} No further experiment can gain more than that."


def continuing_in_words(status: Status) -> Iterator[str]:
    """What more rounds are worth, where that was asked for."""
    found = status.continuing
    if found is None:
        return
    if not found.explore:
        yield (
            f"Experimenting on in the next {pluralize(found.rounds, 'round')} is not expected to "
            "gain anything over staying with what looks best now."
        )
    else:
        how = "experiment in all of them"
        if found.explore < found.rounds:
            how = f"experiment in {found.explore:,} of them, then stay with what looks best"
        each = format_number(found.value / found.rounds)
        yield (
            f"{pluralize(found.rounds, 'more round')} are expected to gain {format_number(found.value)} ± "
            f"{format_number(found.error)} in all, {each} a round, over staying with what looks best now: "
            f"{how}."
        )
    if found.policy != status.policy:
        yield (
            f"That is reckoned as if {found.policy} chose the arms from now on, since it is quick "
            f"to play out; the experiment itself goes on with {status.policy}."
        )
    if status.problem.context:
        yield (
            f"At most {format_number(found.limit)} could be gained, {format_number(found.limit / found.rounds)} "
            "a round. That is over the contexts as they are to be expected, and the cost of "
            f"stopping {_weighed(status)}: so the two may differ."
        )


def _weighed(status: Status) -> str:
    """Of which contexts the cost of stopping is that, and how much each counts."""
    if status.is_one_context:
        return "in this context alone"
    return "over the contexts as they came" if status.has_contexts else "over all contexts alike"


def pending_in_words(status: Status) -> Iterator[str]:
    """What has not been told yet, and for how long: the oldest first."""
    if status.pending:
        yield f"{pluralize(len(status.pending), 'decision')} pending, the oldest first:"
        yield from _first_of([pending_line(status, case) for case in status.pending])
    if status.incomplete:
        yield (
            f"{pluralize(len(status.incomplete), 'decision')} with an outcome that does not count "
            "before more is told:"
        )
        yield from _first_of([incomplete_line(status, case) for case in status.incomplete])


def _first_of(lines: list[str]) -> Iterator[str]:
    yield from (f"  {line}" for line in lines[:_SHOWN])
    if len(lines) > _SHOWN:
        yield f"  … and {len(lines) - _SHOWN:,} more"


def incomplete_line(status: Status, case: Case) -> str:
    """One decision of which something does not count yet."""
    missing = ", ".join(case.missing_variables(status.problem))
    return f"decision {case.id}, {case.arm}; not told: {missing}"


def pending_line(status: Status, case: Case) -> str:
    """One pending decision."""
    return (
        f"decision {case.id}, {case.arm}: for {duration(waiting(case))}; not told: "
        f"{', '.join(case.missing_variables(status.problem))}"
    )


def lacking_in_words(status: Status) -> Iterator[str]:
    """What does not count, or not as it should, and why."""
    restricted, instead = status.counts["restricted"], status.counts["played_otherwise"]
    if restricted:
        yield (
            f"{pluralize(restricted, 'decision')} made among fewer than all arms. Where what "
            "restricts the choice also affects the outcome and is not in the context, learning "
            "from them is biased."
        )
    if instead:
        yield (
            f"{pluralize(instead, 'decision')} where another arm was played: such have no "
            "propensity, and are learned from only if that had nothing to do with the unit."
        )
    for why, times in status.left_out.items():
        yield f"{pluralize(times, 'record')} left out: {why}."
    for name, reasons in status.unused.items():
        for why, times in reasons.items():
            yield f"{name} was not used in {pluralize(times, 'record')}: {why}."


def graph_in_words(status: Status) -> Iterator[str]:
    """How likely doubtful edges are, and what the records say against the graph."""
    if status.edges:
        each = ", ".join(f"{edge} ({chance:.2f})" for edge, chance in status.edges.items())
        yield f"How likely doubtful edges are to be there: {each}."
    if status.evidence is not None:
        yield from str(status.evidence).splitlines()
        if status.evidence.alarms:
            yield "`revise` takes a problem with these edges; docs/evidence.md tells more."


def duration(seconds: float) -> str:
    """ "3 days", "1 hour", "20 seconds"."""
    for unit, size in _UNITS:
        if seconds >= size:
            return pluralize(int(seconds // size), unit)
    return pluralize(int(seconds), "second")
