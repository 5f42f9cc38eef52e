"""Status of an experiment: what each arm is expected to earn, how certain that is, what is open.

Everything follows from the posterior at one moment.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice, product
from math import prod
from typing import Any, ClassVar

import numpy as np

from dowise._core.codec import JsonResult, array_from_json, float_from_json, in_json, to_json
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
from dowise._core.types import BoolArray, FloatArray, IntArray
from dowise._core.validation import check_number
from dowise.belief import Belief
from dowise.belief.evidence import Evidence
from dowise.errors import import_extra
from dowise.experiment.case import Case
from dowise.experiment.counters import PlayCounts
from dowise.experiment.event import now
from dowise.experiment.prior_check import PriorCheck
from dowise.experiment.record_usage import describe_arm_rewards
from dowise.policies.graph_free import prediction_sentence
from dowise.policies.independent_arms import IndependentArmsBelief
from dowise.policies.value_of_continuing import Continuing
from dowise.problem import Intervention, Problem
from dowise.problem.problem import Context

LEVEL = 0.9  # of the intervals
MAX_DRAWS, MIN_DRAWS = 10_000, 1000
MAX_CONTEXTS = 64

MAX_SHOWN_CONTEXTS, MAX_SHOWN_ARMS, MAX_SHOWN_DECISIONS = 8, 12, 10  # in documents
MAX_NAMED_ARMS = 3  # of those that tie
MIN_WEIGHT = 0.01  # of the hypothesis without the graph, below which it hardly matters

ASSUMPTION = "assumption only"
ASSUMPTION_NOTE = (
    "Assumption only: never tried, so its range follows from the prior, the graph and other arms."
)

_COLUMNS = ("mean", "low", "high", "best", "regret", "plays", "is_assumption")
_NUMBERS = _COLUMNS[:-2]
_ALIKE = 1e-9  # relative difference below which means are equal
_TIE = 1e-12  # relative difference below which arms tie for the best
_WORK = 1.5e9  # multiplications in about a second
_WORK_PER_ARM = 150  # in multiplications, for one draw: quantiles and winners
_UNITS = (("day", 86_400), ("hour", 3600), ("minute", 60))


@dataclass(frozen=True, eq=False)
class ArmSummary(JsonResult):
    """Expected rewards of all arms in one context, and how certain they are."""

    context: dict[str, str]
    arms: tuple[Intervention, ...]
    mean: FloatArray
    """Posterior mean reward of each arm, net of cost, exact, in the user's units."""
    low: FloatArray
    """Lower end of the central 90 % credible interval of each arm's mean reward."""
    high: FloatArray
    """Upper end of that interval."""
    best: FloatArray
    """Probability that each arm is the best."""
    regret: FloatArray
    """Expected loss per round of always playing each arm, against the best."""
    plays: IntArray
    """Number of decisions with an outcome that played each arm in this context."""
    leader: int
    """Index of the arm with the best posterior mean; if several tie, the likeliest to be best."""
    leaders: tuple[int, ...]
    """Indices of all arms with the same mean as the leader."""
    draws: int
    """Number of posterior draws; only the means are exact."""
    is_assumption: BoolArray
    """True for each arm that was never tried, in any context: what is known of it follows from the
    graph, the prior and other arms."""
    weight: float = 1.0
    """Share of decisions in this context."""

    @property
    def stopping(self) -> float:
        """Expected loss per round of stopping now with the leader."""
        return float(self.regret[self.leader])

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON document: one row per arm."""
        data: dict[str, Any] = to_json(
            {
                "context": self.context,
                "share": self.weight,
                "leader": str(self.arms[self.leader]),
                "leaders": [str(self.arms[i]) for i in self.leaders],
                "expected_regret_of_stopping": self.stopping,
                "draws": self.draws,
                "arms": [
                    {"arm": str(arm), **{name: getattr(self, name)[i] for name in _COLUMNS}}
                    for i, arm in enumerate(self.arms)
                ],
            }
        )
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], problem: Any = None) -> ArmSummary:
        """Inverse of `as_dict`, under the same problem."""
        rows = data["arms"]
        names = [row["arm"] for row in rows]
        if names != [str(arm) for arm in problem.arms]:
            raise ValueError("the arms are not those of the problem")
        numbers = {name: array_from_json([row[name] for row in rows]) for name in _NUMBERS}
        return cls(
            context=dict(data["context"]),
            arms=problem.arms,
            **numbers,
            plays=np.array([row["plays"] for row in rows], dtype=np.int64),
            leader=names.index(data["leader"]),
            leaders=tuple(names.index(name) for name in data["leaders"]),
            draws=data["draws"],
            is_assumption=np.array([row.get("is_assumption", False) for row in rows], dtype=bool),
            weight=float_from_json(data["share"]),
        )


def summarize_arms(
    belief: Belief,
    context: Context,
    plays: IntArray | None = None,
    draws: int = MAX_DRAWS,
    weight: float = 1.0,
    tried: Container[Intervention] = (),
) -> ArmSummary:
    """Summarize the arms in one context; the random draws have a fixed seed.

    `tried` has the arms with a known outcome in any context.
    """
    problem, payoff = belief.problem, belief.problem.payoff
    codes = problem.context_codes(context)
    drawn = belief.draw(codes, draws, 0)
    rewards = drawn.rewards(payoff).astype(np.float64)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(rewards, [tail, 1 - tail], axis=1)
    winners, _ = drawn.winners(payoff)
    labels = problem.context_labels(codes)
    mean, arms = belief.mean_rewards(labels), len(problem.arms)
    best = np.bincount(winners, minlength=arms) / draws
    tied = np.flatnonzero(payoff.regrets(mean) <= _ALIKE * payoff.span)
    leader = int(tied[best[tied].argmax()])
    return ArmSummary(
        context=labels,
        arms=problem.arms,
        mean=mean,
        low=low,
        high=high,
        best=best,
        regret=payoff.regrets(rewards.T).mean(axis=0),
        plays=np.zeros(arms, dtype=np.int64) if plays is None else plays,
        leader=leader,
        leaders=_leaders(mean, leader, payoff.span),
        draws=draws,
        is_assumption=np.array([arm not in tried for arm in problem.arms]),
        weight=weight,
    )


def _leaders(mean: FloatArray, leader: int, span: float) -> tuple[int, ...]:
    largest = float(np.abs(mean).max())
    if np.ptp(mean) <= _ALIKE * largest:
        return tuple(range(len(mean)))
    ties = np.abs(mean - mean[leader]) <= _TIE * max(span, largest)
    return tuple(np.flatnonzero(ties).tolist())


def number_of_draws(
    belief: Belief, summaries: int, min_draws: int = MIN_DRAWS, max_draws: int = MAX_DRAWS
) -> int:
    """Return the number of draws per summary that takes about a second in all, within limits."""
    circuit = belief.posterior.model.circuit if belief.has_factors else None
    work = _WORK_PER_ARM * len(belief.problem.arms)
    if circuit is not None:
        work += sum(part.size for part in circuit.operations)
    return int(np.clip(_WORK / (max(summaries, 1) * work), min_draws, max_draws))


def count_contexts(problem: Problem) -> int:
    """Return the number of possible contexts."""
    return prod(len(problem.domains[name]) for name in problem.context)


def contexts_to_show(
    problem: Problem, plays: PlayCounts, limit: int = MAX_CONTEXTS
) -> list[dict[str, str]]:
    """Return all contexts if they are few, otherwise the most frequent ones."""
    names = problem.context
    if count_contexts(problem) <= limit or not plays.times:
        chosen = list(islice(product(*(problem.domains[name] for name in names)), limit))
    else:
        chosen = plays.most_common(limit)
    return [dict(zip(names, labels, strict=True)) for labels in chosen]


def summarize_contexts(
    belief: Belief, context: Context, plays: PlayCounts, imported: Set[Intervention] = frozenset()
) -> tuple[tuple[ArmSummary, ...], list[str]]:
    """Summarize the arms in a context, by default in all that are shown; with notes.

    `imported` has the arms of imported records.
    """
    problem, notes = belief.problem, []
    if context is None and problem.context:
        contexts = contexts_to_show(problem, plays)
        total = count_contexts(problem)
        if len(contexts) < total:
            kind = "most frequent ones" if plays.times else "first ones"
            notes.append(
                f"There are {total:,} contexts; these are the {len(contexts)} {kind}. Any other "
                "can be asked for by name."
            )
    else:
        contexts = [problem.context_labels(problem.context_codes(context))]
    if isinstance(belief, IndependentArmsBelief):
        notes.append(
            "The graph is too large for a posterior, so each arm is judged by its own rewards in "
            f"each context alone: {belief.why}."
        )
    draws, shares = number_of_draws(belief, len(contexts)), plays.shares(contexts)
    tried = plays.arms() | imported
    summaries = tuple(
        summarize_arms(belief, labels, plays.plays(labels), draws, share, tried)
        for labels, share in zip(contexts, shares, strict=True)
    )
    return summaries, notes


def _encode_case(case: Case, status: Any) -> dict[str, Any]:
    return case.as_dict(status.problem) | {"arm": str(case.arm)}


def _decode_cases(data: Any, _problem: Any) -> tuple[Case, ...]:
    return tuple(map(Case.from_dict, data))


@dataclass(frozen=True, eq=False)
class Status(JsonResult, Documented):
    """Status of an experiment: expected rewards of all arms, and what is open.

    `str(status)` is a readable summary, `frame()` a table, `as_dict()` a JSON document.

    Examples
    --------
    >>> from dowise import Experiment, load_problem
    >>> from dowise.experiment.storage import MemoryStorage
    >>> experiment = Experiment.create(MemoryStorage(), "ward", load_problem("task1"), seed=1)
    >>> experiment.status(evidence=False).counts["asked"]
    0
    """

    json_extras: ClassVar[tuple[str, ...]] = ("expected_regret_of_stopping", "alarms", "suspected")

    name: str
    problem: Problem = field(metadata=in_json(is_sent=False, decode=lambda _, problem: problem))
    policy: str
    contexts: tuple[ArmSummary, ...]
    is_one_context: bool
    """True if a context was passed, or the problem has no context."""
    counts: dict[str, int] = field(metadata=in_json(key="decisions"))
    """Number of decisions: pending, done, withdrawn, erased; restricted; played otherwise."""
    pending: tuple[Case, ...] = field(
        metadata=in_json(
            encode=lambda cases, status: [
                _encode_case(case, status) | {"waiting_seconds": pending_seconds(case)}
                for case in cases
            ],
            decode=_decode_cases,
        )
    )
    """Decisions without a reward yet, oldest first."""
    edges: dict[str, float]
    """Probability of each doubtful edge."""
    evidence: Evidence | None = field(
        metadata=in_json(encode=lambda evidence, _: evidence.as_dict(), decode=Evidence.from_dict)
    )
    """Evidence against the graph; None if it was not computed."""
    imported: int
    """Number of imported records."""
    unused: dict[str, dict[str, int]] = field(default_factory=dict)
    """Number of values that were seen but could not be used, by variable and reason."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Number of records that the policy left out as a whole, by reason."""
    notes: tuple[str, ...] = ()
    """Remarks on these numbers."""
    has_contexts: bool = True
    """True if any decision had one of these contexts; if none had, all have the same weight."""
    incomplete: tuple[Case, ...] = field(
        metadata=in_json(
            encode=lambda cases, status: [_encode_case(case, status) for case in cases],
            decode=_decode_cases,
        ),
        default=(),
    )
    """Decisions with a reward, but with a value that counts only after more is told."""
    continuing: Continuing | None = field(
        metadata=in_json(
            encode=lambda continuing, _: continuing.as_dict(),
            decode=lambda data, _: Continuing.from_dict(data),
            omit_none=True,
        ),
        default=None,
    )
    """Value of more rounds; None if it was not asked for."""
    prior_check: PriorCheck | None = field(metadata=in_json(omit_none=True), default=None)
    """First rewards that the prior did not expect; None if there are none."""
    graph_free_log_ratio: float | None = field(metadata=in_json(omit_none=True), default=None)
    """Log likelihood ratio of the predicted rewards, without the graph against with it; None if the
    graph decides alone."""
    graph_free_weight: float | None = field(metadata=in_json(omit_none=True), default=None)
    """Probability of the hypothesis without the graph; None if the graph decides alone."""
    graph_free_rewards: Mapping[str, int] | None = field(
        metadata=in_json(omit_none=True), default=None
    )
    """Number of rewards: those `seen`, those `unlearned` by the graph because other values are
    missing, and those `of_arms`, which count for each arm by itself; None if the graph decides
    alone."""

    @property
    def stopping(self) -> float:
        """Expected loss per round of stopping now, averaged over the contexts seen so far."""
        return float(sum(arms.weight * arms.stopping for arms in self.contexts))

    @property
    def expected_regret_of_stopping(self) -> float:
        """Alias of `stopping`, the key in the JSON document."""
        return self.stopping

    @property
    def alarms(self) -> tuple[str, ...] | None:
        """Edges that the graph seems to lack; None if the evidence was not computed."""
        return None if self.evidence is None else self.evidence.alarms

    @property
    def suspected(self) -> Any:
        """Edges that the evidence suspects; None if it was not computed."""
        return None if self.evidence is None else self.evidence.suspected

    @property
    def prediction(self) -> str:
        """Sentence on whether the graph helps to predict the reward.

        It is empty if the graph decides alone, or if nothing was predicted yet.
        """
        if not self.graph_free_log_ratio:
            return ""
        ratio, rewards = self.graph_free_log_ratio, self.graph_free_rewards
        return f"{prediction_sentence(self.problem, ratio, rewards)}."

    def should_stop(self, tolerance: float) -> bool:
        """Return True if stopping now costs at most `tolerance` per round."""
        return self.stopping <= check_number("tolerance", tolerance, 0)

    def advice(self, tolerance: float) -> str:
        """Return a sentence on whether to stop, if a loss of `tolerance` per round is fine."""
        loss = f"{format_number(self.stopping)} per round"
        if not self.should_stop(tolerance):
            return (
                f"Go on: if you stop now, expect to lose {loss}, which is above your tolerance of "
                f"{tolerance:g}."
            )
        return (
            f"You can stop: if you stay with what looks best, expect to lose {loss}, which is "
            f"within your tolerance of {tolerance:g}.{self._exceptions(tolerance)}"
        )

    def not_yet(self, tolerance: float) -> tuple[ArmSummary, ...]:
        """Return the contexts in which stopping now costs more than the tolerance."""
        return tuple(arms for arms in self.contexts if arms.stopping > tolerance)

    def _exceptions(self, tolerance: float) -> str:
        above = self.not_yet(tolerance)
        if not above:
            return ""
        worst = max(above, key=lambda arms: arms.stopping)
        share = f" ({100 * worst.weight:.0f} % of decisions)" if self.has_contexts else ""
        more = f"; {len(above) - 1} more contexts are above it too" if len(above) > 1 else ""
        return (
            f" Except where {context_text(worst)}{share}: there it is "
            f"{format_number(worst.stopping)}{more}."
        )

    def document(self, tolerance: float | None = None) -> Document:
        """Return the readable summary; a `tolerance` adds advice on whether to stop."""
        return Document(tuple(self._blocks(tolerance)))

    def _blocks(self, tolerance: float | None) -> Iterator[Block]:
        yield Heading(self.name)
        yield Paragraph(f"{describe_decisions(self)}.")
        shown = sorted(self.contexts, key=lambda arms: -arms.weight)[:MAX_SHOWN_CONTEXTS]
        for arms in self.contexts:
            if arms in shown:
                yield from self._arm_blocks(arms)
        if len(shown) < len(self.contexts):
            hidden = pluralize(len(self.contexts) - len(shown), "more context")
            yield Paragraph(f"{hidden} not shown; any can be asked for by name.", "muted")
        lines = [describe_stopping(self, self.continuing is not None)]
        lines += describe_continuing(self)
        if tolerance is not None:
            lines.append(self.advice(tolerance))
        yield Paragraph("\n".join(lines), "strong")
        if self.prior_check is not None:
            yield Paragraph(self.prior_check.sentence(), "warning")
        yield from self._open_blocks()
        if notes := (*describe_unused(self), *self.notes):
            yield Heading("Notes")
            yield BulletList(notes)
        if graph := tuple(describe_graph(self)):
            yield Heading("The graph")
            yield Paragraph("\n".join(graph), "warning") if self.alarms else BulletList(graph)

    def _arm_blocks(self, arms: ArmSummary) -> Iterator[Block]:
        if arms.context:
            has_share = self.has_contexts and not self.is_one_context
            share = f" ({100 * arms.weight:.0f} % of decisions)" if has_share else ""
            yield Heading(f"{context_text(arms)}{share}")
        order = list(range(len(arms.arms)))
        if len(order) > MAX_SHOWN_ARMS:
            order = sorted(order, key=lambda i: (i != arms.leader, -arms.best[i], i))
            order = order[:MAX_SHOWN_ARMS]
        has_assumptions = bool(arms.is_assumption[order].any())
        yield Table(
            ("arm", "mean", "90 % interval", "P(best)", "plays", *[""] * has_assumptions),
            tuple(
                (
                    str(arms.arms[i]),
                    format_number(arms.mean[i]),
                    f"{format_number(arms.low[i])} to {format_number(arms.high[i])}",
                    f"{arms.best[i]:.2f}",
                    f"{arms.plays[i]:,}",
                    *[ASSUMPTION if arms.is_assumption[i] else ""] * has_assumptions,
                )
                for i in order
            ),
            right=("mean", "P(best)", "plays"),
        )
        if has_assumptions:
            yield Paragraph(ASSUMPTION_NOTE, "muted")
        if len(order) < len(arms.arms):
            hidden = pluralize(len(arms.arms) - len(order), "arm")
            yield Paragraph(f"{hidden} less likely to be the best not shown.", "muted")
        yield Paragraph(describe_leader(self, arms))

    def _open_blocks(self) -> Iterator[Block]:
        """List the decisions that are not complete, the oldest first."""
        if self.pending:
            yield Heading(f"{pluralize(len(self.pending), 'decision')} pending, the oldest first")
            times = {case.id: f": for {duration(pending_seconds(case))}" for case in self.pending}
            yield self._list(self.pending, times)
        if self.incomplete:
            number = pluralize(len(self.incomplete), "decision")
            for_graph = "" if self.graph_free_rewards is None else " for the graph"
            yield Heading(f"{number} whose outcome does not count{for_graph} until more is told")
            yield self._list(self.incomplete, {})

    def _list(self, cases: tuple[Case, ...], times: Mapping[int, str]) -> BulletList:
        lines = [
            f"decision {case.id}, {case.arm}{times.get(case.id, '')}; not told: "
            f"{', '.join(case.missing_variables(self.problem))}"
            for case in cases[:MAX_SHOWN_DECISIONS]
        ]
        if len(cases) > MAX_SHOWN_DECISIONS:
            lines.append(f"… and {len(cases) - MAX_SHOWN_DECISIONS:,} more")
        return BulletList(tuple(lines))

    def frame(self) -> Any:
        """Return a pandas DataFrame with a row per context and arm; columns as in `rows`."""
        pandas = import_extra("pandas", "simulate", "a table")
        return pandas.DataFrame(self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per context and arm.

        Columns are the context, arm, mean, low, high, best, plays and is_assumption.
        """
        names = ("mean", "low", "high", "best", "plays", "is_assumption")
        return [
            {
                **({} if self.is_one_context else summary.context),
                "arm": str(arm),
                **{name: getattr(summary, name)[i].item() for name in names},
            }
            for summary in self.contexts
            for i, arm in enumerate(summary.arms)
        ]

    def as_dict(self, tolerance: float | None = None) -> dict[str, Any]:
        """Return the JSON document; a `tolerance` adds advice on whether to stop."""
        data = super().as_dict()
        if tolerance is not None:
            data["tolerance"], data["stop"] = tolerance, self.should_stop(tolerance)
            data["advice"] = self.advice(tolerance)
            data["not_yet"] = [arms.context for arms in self.not_yet(tolerance)]
        return data


def default_tolerance(problem: Problem) -> float:
    """Return a loss per round that usually matters little.

    It is a hundredth of the distance between the best and the worst reward: 0.01 for rewards from 0
    to 1, and 30 for rewards from 0 to 3,000.
    """
    return problem.payoff.span / 100


def pending_seconds(case: Case) -> float:
    """Return for how many seconds a decision has been pending."""
    return max((now() - datetime.fromisoformat(case.asked_at)).total_seconds(), 0.0)


def context_text(arms: ArmSummary) -> str:
    """Format a context: "C=1, D=low"."""
    return ", ".join(f"{name}={label}" for name, label in arms.context.items())


def describe_decisions(status: Status) -> str:
    """Describe the number of decisions of each kind, and the policy."""
    counts = status.counts
    parts = [f"{counts['done']:,} with an outcome", f"{counts['pending']:,} pending"]
    parts += [f"{counts[kind]:,} {kind}" for kind in ("withdrawn", "erased") if counts[kind]]
    text = f"{pluralize(counts['asked'], 'decision')} ({', '.join(parts)})"
    if status.imported:
        text += (
            f", {pluralize(status.imported, 'imported record')} (included in the means, but not in "
            "the plays)"
        )
    return f"{text}; the policy is {status.policy}"


def describe_leader(status: Status, arms: ArmSummary) -> str:
    """Describe which arm looks best in a context, and how certain that is."""
    i, leaders = arms.leader, list(arms.leaders)
    mean, loss = format_number(arms.mean[i]), f"{format_number(arms.stopping)} per round"
    if len(leaders) == len(arms.arms) > 1:
        return (
            f"Nothing tells the arms apart yet: all have a mean reward of {mean}, and if you "
            f"always play one of them, expect to lose {loss}."
        )
    notes = ["smaller is better"] * status.problem.minimise
    notes += ["net of cost"] * status.problem.payoff.has_costs
    order = f" ({', '.join(notes)})" if notes else ""
    if len(leaders) > 1:
        return (
            f"{_arm_list(arms)} tie for the best, each with a mean reward of {mean}{order}; the "
            f"chance that one of them is the best is {arms.best[leaders].sum():.2g}, and if you "
            f"always play one of them, expect to lose {loss}."
        )
    return (
        f"{arms.arms[i]} looks best, with a mean reward of {mean}{order}; its chance of being the "
        f"best is {arms.best[i]:.2g}, and if you always play it, expect to lose {loss}."
    )


def _arm_list(arms: ArmSummary) -> str:
    if len(arms.leaders) > MAX_NAMED_ARMS:
        return f"{len(arms.leaders):,} of {pluralize(len(arms.arms), 'arm')}"
    *first, last = (str(arms.arms[i]) for i in arms.leaders)
    return f"{', '.join(first)} and {last}"


def describe_stopping(status: Status, has_more: bool = False) -> str:
    """Describe what stopping now costs; `has_more` if the value of more rounds follows."""
    over = f", {_average(status)}" if len(status.contexts) > 1 else ""
    text = f"If you stop now, expect to lose {format_number(status.stopping)} per round{over}."
    weight = status.graph_free_weight or 0.0
    if has_more and weight <= 0.5 and (status.problem.context or weight >= MIN_WEIGHT):
        return text  # the most that could be gained follows, of other contexts or the graph alone
    return f"{text} No further experiment can gain more than that."


def describe_continuing(status: Status) -> Iterator[str]:
    """Describe what more rounds are worth, if that was asked for."""
    continuing = status.continuing
    if continuing is None:
        return
    rounds, weight = continuing.rounds, status.graph_free_weight or 0.0
    if weight > 0.5:
        yield (
            f"What {pluralize(rounds, 'more round')} would gain is not shown: it can only be "
            "worked out from the graph, and the hypothesis without the graph, which the loss of "
            f"stopping includes, has a probability of {weight:.2f}."
        )
        return
    if not continuing.explore:
        yield (
            f"Experimenting in the next {pluralize(rounds, 'round')} is not expected to gain "
            "anything over staying with what looks best now."
        )
    else:
        plan = "experiment in all of them"
        if continuing.explore < rounds:
            plan = f"experiment in {continuing.explore:,} of them, then stay with what looks best"
        yield (
            f"{pluralize(rounds, 'more round')} {'is' if rounds == 1 else 'are'} expected to gain "
            f"{format_number(continuing.value)} ± {format_number(continuing.error)} in total, "
            f"{format_number(continuing.value / rounds)} per round, over staying with what looks "
            f"best now: {plan}."
        )
    if continuing.policy != status.policy:
        yield (
            f"This assumes that {continuing.policy} chooses the arms from now on, because it is "
            f"quick to simulate; the experiment itself continues with {status.policy}."
        )
    reasons = []
    if status.problem.context:
        reasons.append(
            "This is averaged over the contexts to be expected, but the loss of stopping is "
            f"{_average(status)}, so the two may differ."
        )
    if weight >= MIN_WEIGHT:
        reasons.append(
            f"It is worked out from the graph alone, whose probability is {1 - weight:.2f}, but "
            "the loss of stopping includes the hypothesis without the graph, so the two may differ."
        )
    if reasons:
        limit, per_round = continuing.limit, continuing.limit / rounds
        gain = f"{format_number(limit)} could be gained, {format_number(per_round)} per round"
        yield f"At most {gain}. {' '.join(reasons)}"


def _average(status: Status) -> str:
    if status.is_one_context:
        return "in this context alone"
    contexts = "the contexts seen so far" if status.has_contexts else "all contexts equally"
    return f"averaged over {contexts}"


def describe_unused(status: Status) -> Iterator[str]:
    """Describe which records do not count, or may bias what is learned, and why."""
    restricted, otherwise = status.counts["restricted"], status.counts["played_otherwise"]
    if restricted:
        yield (
            f"In {pluralize(restricted, 'decision')} some arms were not allowed. If the reason for "
            "that also affects the outcome and is not in the context, learning from such decisions "
            "is biased."
        )
    if otherwise:
        yield (
            f"In {pluralize(otherwise, 'decision')} another arm was played than the one that was "
            "chosen. The policy learns from such decisions only if the reason had nothing to do "
            "with the unit."
        )
    for why, times in status.left_out.items():
        yield f"{pluralize(times, 'record')} left out: {why}."
    arm_rewards = (status.graph_free_rewards or {}).get("of_arms", 0)
    for name, reasons in status.unused.items():
        counts_by_arm = name == status.problem.reward and arm_rewards > 0
        by_graph = " by the graph" if counts_by_arm else ""
        for why, times in reasons.items():
            yield f"{name} was not used{by_graph} in {pluralize(times, 'record')}: {why}."
        if counts_by_arm:
            yield describe_arm_rewards(arm_rewards)


def describe_graph(status: Status) -> Iterator[str]:
    """Describe how well the graph predicts, its doubtful edges, and the evidence against it."""
    if status.prediction:
        yield status.prediction
    if status.edges:
        chances = ", ".join(f"{edge} ({chance:.2f})" for edge, chance in status.edges.items())
        yield f"Probabilities of doubtful edges: {chances}."
    if status.evidence is not None:
        yield from str(status.evidence).splitlines()
        if status.evidence.alarms:
            yield (
                "To add these edges, revise the experiment with a problem that has them; "
                "docs/evidence.md explains how."
            )


def duration(seconds: float) -> str:
    """Format a duration: "3 days", "1 hour", "20 seconds"."""
    for unit, size in _UNITS:
        if seconds >= size:
            return pluralize(int(seconds // size), unit)
    return pluralize(int(seconds), "second")
