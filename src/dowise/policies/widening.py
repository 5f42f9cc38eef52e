"""A policy that widens its graph when the records speak against it.

At an alarm (`Belief.evidence`) the belief is made anew from the records that it has kept, on the
problem with the suspected edges as doubtful ones: what is accused, as an arrow and as a hidden
cause, and all that is nearly as good an explanation. The accused edge alone can be a trap: where it
is the wrong one of two that look alike, the policy may never play what would tell. The k-th alarm
has the level α/2^k, so that all of them together keep to α. The arms stay the problem's own.
"""

from __future__ import annotations

import numpy as np

from dowise.belief import Belief, Dirichlet, Mixture
from dowise.belief.evidence import Monitor
from dowise.belief.evidence.kept import KeptRecords
from dowise.belief.evidence.monitor import SMALLEST
from dowise.checks import share
from dowise.errors import DowiseError
from dowise.problem import Problem, Record
from dowise.problem.widen import with_doubtful

__all__ = ["Widening"]


class Widening:
    """When to widen, and how; `alpha` is the chance of doing so although the graph is right."""

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha
        self.alarms: list[tuple[str, ...]] = []
        """The edges that were added at each alarm."""
        self._is_over = False  # nothing more fits
        self._looked_at = 0  # so many records

    @classmethod
    def of(cls, widen: bool | float) -> Widening | None:
        """From the option of a policy: False, True for a level of .05, or a level."""
        if widen is False or widen is True:
            return cls(0.05) if widen else None
        alpha = share("widen", widen)
        if alpha < 2 * SMALLEST:
            raise DowiseError(f"widen={widen!r} is too small: {2 * SMALLEST:g} is the least")
        return cls(alpha)

    def check(self, belief: Belief) -> None:
        """Refuse a belief that can't be made anew."""
        posterior = belief.posterior
        if belief.monitor is None or not isinstance(posterior, Dirichlet | Mixture):
            raise DowiseError("widen needs a belief that keeps its records: evidence=True")
        if np.ptp(posterior.prior) > 0:
            raise DowiseError(
                "widen needs a prior that is one number: prior counts of single variables do not "
                "fit the tables of a wider graph"
            )

    def learn(self, belief: Belief, record: Record) -> Belief:
        """The belief after one record more: the same, or a wider one."""
        belief.learn(as_record_of(belief.problem, record))
        return self.look(belief)

    def is_behind(self, belief: Belief) -> bool:
        """Whether the belief has learned by itself since it was looked at."""
        return belief.monitor is not None and belief.monitor.arrived != self._looked_at

    def look(self, belief: Belief) -> Belief:
        """The belief itself, or where it is alarmed a wider one."""
        assert belief.monitor is not None
        self._looked_at = belief.monitor.arrived
        level = self.alpha / 2 ** (len(self.alarms) + 1)
        if self._is_over or level < SMALLEST or not belief.monitor.is_alarmed(level):
            return belief
        suspected = belief.evidence(level).suspected
        for edges in (suspected, suspected[:2]):
            try:
                wider = _made_anew(belief, edges)
            except DowiseError:  # too large
                continue
            self.alarms.append(edges)
            return wider
        self._is_over = True
        return belief


def as_record_of(problem: Problem, record: Record) -> Record:
    """The record as one of another problem with the same variables and values."""
    if record.problem is problem:
        return record
    return Record(problem, record.arm, record.codes, record.fixed, record.number)


def _made_anew(belief: Belief, edges: tuple[str, ...]) -> Belief:
    assert isinstance(belief.posterior, Dirichlet | Mixture) and belief.monitor is not None
    problem = with_doubtful(belief.problem, edges)
    wider = Belief(problem, float(belief.posterior.prior[0]))
    records = belief.monitor.records
    wider.monitor = Monitor.of(KeptRecords(problem, dict(records.counts)))
    wider.posterior.learn_many(records.batch(problem))
    return wider
