"""Where an experiment stands, and how it came there, as a picture: numbers first, drawing second.

For each context the interval of every arm and P(best) along the journal; below them the expected
regret of stopping, and the regret of the decisions so far as estimated today. Where there are many
arms, those that matter are drawn and the others are summed up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError
from dowise.experiment.arms import ArmsStatus, Came
from dowise.experiment.case import Case
from dowise.experiment.explain import Explanation
from dowise.experiment.history import History
from dowise.experiment.status import Status
from dowise.experiment.status_words import context_text, tied
from dowise.plain import counted
from dowise.problem import Problem

__all__ = ["ContextData", "FigureData", "IntervalData", "draw", "figure_data", "intervals_then"]

MOST_ARMS = 12
OTHERS = "others"

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class IntervalData:
    """The arms of one panel, in the order of the problem, those of `MOST_ARMS` that matter most."""

    title: str
    along: str
    """What the axis says: what the mark means, and what the means are of."""
    places: Integers
    """Where these arms stand among the problem's."""
    arms: tuple[str, ...]
    mean: Floats
    low: Floats
    high: Floats
    best: Floats
    marked: int | None
    """The place in this list of the leader, or of what was chosen; None where leaders tie."""
    left_out: int
    """How many other arms there are."""


@dataclass(frozen=True, eq=False)
class ContextData:
    """One context: the intervals of its arms, and P(best) at each point of the journal."""

    intervals: IntervalData
    best: Floats
    """(points, arms), the arms as in `intervals`."""
    others: Floats | None
    """Of all other arms together; None where there are none."""


@dataclass(frozen=True, eq=False)
class FigureData:
    """All numbers of the picture."""

    title: str
    unit: str
    """What means and regrets are in."""
    contexts: tuple[ContextData, ...]
    outcomes: Integers
    """How many outcomes were known at each point of the journal."""
    stopping: Floats
    """What stopping there was expected to cost a round."""
    decisions: Integers
    """The numbers of the decisions whose arm and context are known and judged today."""
    regret: Floats
    """What each of them is expected to have cost, by today's posterior."""
    tolerance: float | None = None

    @property
    def cumulative_regret(self) -> Floats:
        """Of all decisions up to each."""
        total: Floats = np.cumsum(self.regret)
        return total


def figure_data(
    status: Status, history: History, cases: Iterable[Case], tolerance: float | None = None
) -> FigureData:
    """The numbers of the picture, of contexts that the history has."""
    panels = []
    for c, context in enumerate(history.contexts):
        one = next((one for one in status.contexts if one.context == context), None)
        if one is None:
            raise DowiseError(f"the status has no context {context}: take both of one experiment")
        panels.append(_context(status.problem, one, history.best[:, c]))
    decisions, regret = _regrets(status, cases)
    done, pending = counted(status.counts["done"], "outcome"), status.counts["pending"]
    title = f"{status.name}: {done}, {pending:,} pending"
    if len(panels) < len(status.contexts):
        title += f"; the context{'' if len(panels) == 1 else 's'} that came most often"
    return FigureData(
        title,
        _unit(status.problem),
        tuple(panels),
        history.outcomes,
        history.expected_regret_of_stopping,
        decisions,
        regret,
        tolerance,
    )


def intervals_then(explanation: Explanation) -> IntervalData:
    """The numbers of an explanation's picture: the arms as they looked when it was decided."""
    decision, then = explanation.decision, explanation.then
    place = decision.problem.arm_index(decision.arm)
    where = f", {context_text(then)}" if then.context else ""
    title, along = f"decision {decision.id}{where}", f"▸ chosen; {_unit(decision.problem)}"
    return _intervals(then, title, along, place, then.best)


def draw(data: FigureData | IntervalData, path: str | Path) -> None:
    """Draw the numbers to a .png, .svg or .pdf file."""
    from dowise.experiment.drawing import draw_intervals, draw_status

    if isinstance(data, IntervalData):
        draw_intervals(data, path)
    else:
        draw_status(data, path)


def _unit(problem: Problem) -> str:
    net = ", net of cost" if problem.payoff.has_costs else ""
    return f"mean {problem.reward}{net}{', smaller is better' if problem.minimise else ''}"


def _context(problem: Problem, one: ArmsStatus, best: Floats) -> ContextData:
    same, says = tied(problem, one), "▸ looks best"
    if len(same) > 1:
        is_all = len(same) == len(one.arms)
        says = "nothing tells the arms apart" if is_all else f"{len(same)} arms tie for the best"
    along = f"{says}; {_unit(problem)}"
    intervals = _intervals(one, context_text(one), along, one.leader, best.max(axis=0))
    if len(same) > 1:
        intervals = replace(intervals, marked=None)
    own = best[:, intervals.places]
    others = 1 - own.sum(axis=1) if intervals.left_out else None
    return ContextData(intervals, own, others)


def _intervals(
    one: ArmsStatus, title: str, along: str, marked: int, interest: Floats
) -> IntervalData:
    """The marked arm, and those with the largest `interest`, today's P(best) deciding ties."""
    order = np.lexsort((np.arange(len(one.arms)), -one.best, -np.maximum(interest, one.best)))
    first: Sequence[int] = [marked, *(a for a in order.tolist() if a != marked)][:MOST_ARMS]
    places = np.array(sorted(first))
    return IntervalData(
        title,
        along,
        places,
        tuple(str(one.arms[a]) for a in places),
        one.mean[places],
        one.low[places],
        one.high[places],
        one.best[places],
        int(np.flatnonzero(places == marked)[0]),
        len(one.arms) - len(places),
    )


def _regrets(status: Status, cases: Iterable[Case]) -> tuple[Integers, Floats]:
    """Of every decision that was played what it is expected to have cost, by today's posterior."""
    came = Came(status.problem)
    regrets = {tuple(one.context.values()): one.regret for one in status.contexts}
    places = {arm: a for a, arm in enumerate(status.problem.arms)}
    found = []
    for case in cases:
        context = came.context(case)
        if case.status in ("done", "pending") and context in regrets and case.arm in places:
            found.append((case.id, regrets[context][places[case.arm]]))
    return (
        np.array([number for number, _ in found], dtype=np.int64),
        np.array([regret for _, regret in found], dtype=np.float64),
    )
