"""The arms in a context, by a posterior: what each brings, how sure that is, what it costs.

The expected regret of stopping is what always playing the arm that looks best would cost a round,
E[max_a μ_a − μ_â], in the user's units: what further rounds could gain at most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice, product
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.belief import Belief
from dowise.experiment.case import Case
from dowise.plain import number_from, numbers_from
from dowise.problem import Intervention, Problem
from dowise.problem.problem import Context

__all__ = ["LEVEL", "ArmsStatus", "Came", "arms_status", "contexts_of", "draws_for"]

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
        """For JSON, once `plain` has gone over it."""
        from dowise.experiment.status_words import tied

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
        numbers = {name: numbers_from([row[name] for row in rows]) for name in _OF_AN_ARM}
        return cls(
            dict(page["context"]),
            problem.arms,
            **{name: numbers[name] for name in _OF_AN_ARM if name != "plays"},
            plays=numbers["plays"].astype(np.int64),
            leader=[row["arm"] for row in rows].index(page["leader"]),
            draws=page["draws"],
            weight=number_from(page["share"]),
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
    circuit = getattr(getattr(belief.posterior, "model", None), "circuit", None)
    work = _WORK_OF_AN_ARM * len(belief.problem.arms)
    if circuit is not None:
        work += sum(part.size for part in circuit.operations)
    return int(np.clip(_WORK / (max(looks, 1) * work), fewest, most))


class Came:
    """How often each context came, and how often each arm was played in it."""

    def __init__(self, problem: Problem, cases: Iterable[Case] = ()) -> None:
        self._problem = problem
        self.times: Counter[Labels] = Counter()
        self._played: Counter[tuple[Labels, Intervention]] = Counter()
        for case in cases:
            self.count(case, 1)

    def count(self, case: Case, step: int) -> None:
        """One decision more, or with −1 one less."""
        labels = self.context(case)
        if labels is None:
            return
        self.times[labels] += step
        if not self.times[labels]:
            del self.times[labels]
        if case.status == "done":
            self._played[labels, case.arm] += step

    def copy(self) -> Came:
        """One that goes on by itself."""
        twin = Came(self._problem)
        twin.times, twin._played = self.times.copy(), self._played.copy()
        return twin

    def most_common(self, most: int) -> list[Labels]:
        """The contexts that came most often; of those that came as often the first by name."""
        found = sorted(self.times.items(), key=lambda one: (-one[1], one[0]))
        return [labels for labels, _ in found[:most]]

    def context(self, case: Case) -> Labels | None:
        """That of a decision under the problem as it is now; None where it is not known."""
        if case.status == "erased":
            return None
        known = case.known
        labels = [known.get(name) for name in self._problem.context]
        return None if None in labels else tuple(map(str, labels))

    def plays(self, context: Mapping[str, str]) -> NDArray[np.int64]:
        """How many decisions with an outcome played each arm in a context."""
        labels = self._labels(context)
        return np.array([self._played[labels, arm] for arm in self._problem.arms])

    def shares(self, contexts: list[dict[str, str]]) -> list[float]:
        """How often each of these contexts came, as a share; all alike where none came yet."""
        counts = [self.times[self._labels(context)] for context in contexts]
        total = sum(counts)
        return [count / total if total else 1 / len(counts) for count in counts]

    def _labels(self, context: Mapping[str, str]) -> Labels:
        return tuple(context[name] for name in self._problem.context)


def contexts_of(problem: Problem, came: Came, most: int = MOST_CONTEXTS) -> list[dict[str, str]]:
    """All contexts where these are few, else those that came most often."""
    names = problem.context
    every = product(*(problem.domains[name] for name in names))
    if prod(len(problem.domains[name]) for name in names) <= most or not came.times:
        chosen = list(islice(every, most))
    else:
        chosen = came.most_common(most)
    return [dict(zip(names, labels, strict=True)) for labels in chosen]
