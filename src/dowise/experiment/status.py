"""Where an experiment stands: what each arm is expected to bring, how sure that is, what is open.

Everything follows from the posterior as of now. The expected regret of stopping is what always
playing the arm that looks best would cost a round, E[max_a μ_a − μ_â], in the user's units: what
further rounds could gain at most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice, product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.belief import Belief
from dowise.checks import real_number
from dowise.errors import import_extra
from dowise.experiment.case import Case
from dowise.experiment.maker import now
from dowise.plain import plain
from dowise.problem import Intervention, Problem
from dowise.problem.problem import Context

__all__ = ["LEVEL", "ArmsStatus", "Status", "arms_status", "contexts_of"]

LEVEL = 0.9  # of the intervals
DRAWS = 10_000
MOST_CONTEXTS = 64

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ArmsStatus:
    """The arms in one context."""

    context: dict[str, str]
    arms: tuple[Intervention, ...]
    mean: Floats
    """The posterior mean reward of each arm, exact, in the user's units."""
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
    """The position of the arm with the best posterior mean."""
    weight: float = 1.0
    """The share of decisions in this context."""

    @property
    def stopping(self) -> float:
        """What stopping now with the best-looking arm is expected to cost a round."""
        return float(self.regret[self.leader])


def arms_status(belief: Belief, context: Context, cases: Iterable[Case] = ()) -> ArmsStatus:
    """The arms in one context; what is random about it has a fixed seed."""
    problem = belief.problem
    codes = problem.context_codes(context)
    labels = problem.context_labels(codes)
    drawn = belief.draw(codes, DRAWS, 0)
    rewards = drawn.rewards(problem.payoff).astype(np.float64)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(rewards, [tail, 1 - tail], axis=1)
    best, _ = drawn.winners(problem.payoff)
    mean = belief.mean_rewards(labels)
    plays = np.zeros(len(problem.arms), dtype=np.int64)
    index = {arm: i for i, arm in enumerate(problem.arms)}
    for case in cases:
        if case.status == "done" and case.arm in index and case.context == labels:
            plays[index[case.arm]] += 1
    return ArmsStatus(
        labels,
        problem.arms,
        mean,
        low,
        high,
        np.bincount(best, minlength=len(plays)) / DRAWS,
        problem.payoff.regrets(rewards.T).mean(axis=0),
        plays,
        problem.payoff.best_of(mean),
    )


def contexts_of(problem: Problem, cases: Iterable[Case]) -> list[dict[str, str]]:
    """All contexts where these are few, else those that came most often."""
    names = problem.context
    if prod(len(problem.domains[name]) for name in names) <= MOST_CONTEXTS:
        values = product(*(problem.domains[name] for name in names))
        return [dict(zip(names, labels, strict=True)) for labels in values]
    came = Counter(
        tuple(case.context[name] for name in names) for case in cases if {*case.context} == {*names}
    )
    return [dict(zip(names, labels, strict=True)) for labels, _ in came.most_common(MOST_CONTEXTS)]


@dataclass(frozen=True, eq=False)
class Status:
    """Where an experiment stands."""

    name: str
    problem: Problem
    policy: str
    contexts: tuple[ArmsStatus, ...]
    is_one_context: bool
    """Whether it was asked for one context only."""
    counts: dict[str, int]
    """How many decisions are pending, done, withdrawn, erased; restricted; played otherwise."""
    pending: tuple[Case, ...]
    edges: dict[str, float]
    """How likely each doubtful edge is to be there."""
    alarms: tuple[str, ...] | None
    """Edges that the graph seems to lack; None where the evidence was not looked at."""
    imported: int
    """How many records were brought in."""
    unused: dict[str, dict[str, int]] = field(default_factory=dict)
    """What was seen and could not be used, by variable and reason: how often."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Records that were left out as a whole, by the reason."""

    @property
    def stopping(self) -> float:
        """What stopping now is expected to cost a round, over the contexts as they came."""
        return float(sum(one.weight * one.stopping for one in self.contexts))

    @property
    def expected_regret_of_stopping(self) -> float:
        """The same as `stopping`."""
        return self.stopping

    def advice(self, tolerance: float) -> str:
        """Whether to stop, if a loss of `tolerance` a round does not matter."""
        limit = real_number("tolerance", tolerance, 0)
        cost = f"{self.stopping:.3g} a round"
        if self.stopping <= limit:
            return (
                f"You can stop: playing what looks best from now on is expected to cost {cost}, "
                f"which is within your tolerance of {limit:g}."
            )
        return (
            f"Go on: stopping now is expected to cost {cost}, which is above your tolerance of "
            f"{limit:g}."
        )

    def should_stop(self, tolerance: float) -> bool:
        """Whether the advice is to stop."""
        return self.stopping <= real_number("tolerance", tolerance, 0)

    def frame(self) -> Any:
        """A pandas table: arm, mean, low, high, best, plays; the context first, where several."""
        pandas = import_extra("pandas", "simulate", "a table")
        return pandas.DataFrame(self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """The same rows as mappings."""
        return [
            {
                **({} if self.is_one_context else one.context),
                "arm": str(arm),
                "mean": float(one.mean[i]),
                "low": float(one.low[i]),
                "high": float(one.high[i]),
                "best": float(one.best[i]),
                "plays": int(one.plays[i]),
            }
            for one in self.contexts
            for i, arm in enumerate(one.arms)
        ]

    def as_dict(self, tolerance: float | None = None) -> dict[str, Any]:
        """For JSON."""
        advice = {} if tolerance is None else {
            "tolerance": tolerance, "stop": self.should_stop(tolerance),
            "advice": self.advice(tolerance),
        }  # fmt: skip
        page: dict[str, Any] = plain(
            {
                "name": self.name,
                "policy": self.policy,
                "decisions": self.counts,
                "imported": self.imported,
                "expected_regret_of_stopping": self.stopping,
                **advice,
                "contexts": [self._context_page(one) for one in self.contexts],
                "pending": [
                    {"id": case.id, "arm": str(case.arm), "asked_at": case.asked_at,
                     "waiting_seconds": waiting(case), "open": case.open(self.problem)}
                    for case in self.pending
                ],
                "edges": self.edges,
                "alarms": self.alarms,
                "unused": self.unused,
                "left_out": self.left_out,
            }
        )  # fmt: skip
        return page

    def _context_page(self, one: ArmsStatus) -> dict[str, Any]:
        names = ("mean", "low", "high", "best", "regret", "plays")
        arms = [
            {"arm": str(arm), **{name: getattr(one, name)[i] for name in names}}
            for i, arm in enumerate(one.arms)
        ]
        return {
            "context": one.context,
            "share": one.weight,
            "leader": str(one.arms[one.leader]),
            "expected_regret_of_stopping": one.stopping,
            "arms": arms,
        }


def waiting(case: Case) -> float:
    """For how many seconds a decision has been pending."""
    return max((now() - datetime.fromisoformat(case.asked_at)).total_seconds(), 0.0)


def shares(contexts: list[dict[str, str]], cases: Iterable[Case]) -> list[float]:
    """How often each context came, as a share; all alike where none came yet."""
    came = Counter(tuple(sorted(case.context.items())) for case in cases)
    counts = [came[tuple(sorted(context.items()))] for context in contexts]
    total = sum(counts)
    return [count / total if total else 1 / len(counts) for count in counts]


def summary(cases: Mapping[int, Case]) -> dict[str, int]:
    """How many decisions there are of each kind."""
    kinds = Counter(case.status for case in cases.values())
    return {
        "asked": len(cases),
        **{kind: kinds[kind] for kind in ("pending", "done", "withdrawn", "erased")},
        "restricted": sum(case.is_restricted for case in cases.values()),
        "played_otherwise": sum(case.played is not None for case in cases.values()),
    }


def first(cases: Iterable[Case], most: int) -> list[Case]:
    """The first few."""
    return list(islice(cases, most))
