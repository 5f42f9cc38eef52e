"""The arms of a context as a table that is also a picture: intervals on one axis."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor, log10

import numpy as np

from dowise.experiment.arms import ArmsStatus
from dowise.experiment.status import Status
from dowise.experiment.status_words import leader_in_words, tied
from dowise.plain import amount
from dowise.problem import Problem

__all__ = ["Axis", "Row", "Standing", "standing", "unit"]

MOST_ARMS = 12  # that are shown unless all are asked for
_MARGIN = 3.0  # percent of the width on either side, so that no mark is cut


@dataclass(frozen=True)
class Axis:
    """Where numbers stand between 0 and 100 percent of the width."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def at(self, value: float) -> str:
        """The place of a number, as SVG reads it."""
        width = (self.high - self.low) or 1.0
        return f"{_MARGIN + (100 - 2 * _MARGIN) * (value - self.low) / width:.2f}%"

    def labels(self) -> list[tuple[str, str]]:
        """Places and texts of the ticks."""
        return [(self.at(tick), amount(tick)) for tick in self.ticks]


@dataclass(frozen=True)
class Row:
    """One arm."""

    arm: str
    words: str
    mean: float
    low: float
    high: float
    best: float
    plays: int
    plays_in_all: int
    leads: bool


@dataclass(frozen=True)
class Standing:
    """The arms of one context."""

    one: ArmsStatus
    rows: tuple[Row, ...]
    left_out: int
    """How many arms are not among the rows."""
    axis: Axis
    words: str
    """Which looks best, and how sure that is."""
    leaders: int
    """How many arms tie for the best; 1 where one leads."""


def standing(status: Status, one: ArmsStatus, shows_all: bool = False) -> Standing:
    """The arms as they stand: the best mean first, of equals the likeliest to be the best."""
    problem, many = status.problem, len(one.arms)
    worse = problem.payoff.regrets(one.mean)
    order = [int(i) for i in np.lexsort((np.arange(many), -one.best, np.round(worse, 12)))]
    if not shows_all and many > MOST_ARMS:
        likely = sorted(order, key=lambda i: (i != one.leader, -one.best[i], worse[i]))
        order = [i for i in order if i in {*likely[:MOST_ARMS]}]
    same = tied(problem, one)
    in_all = np.sum([other.plays for other in status.contexts], axis=0)
    rows = tuple(
        Row(
            str(one.arms[i]), one.arms[i].in_words(), float(one.mean[i]), float(one.low[i]),
            float(one.high[i]), float(one.best[i]), int(one.plays[i]), int(in_all[i]),
            leads=i in same and len(same) < many,
        )
        for i in order
    )  # fmt: skip
    axis = axis_for(min(row.low for row in rows), max(row.high for row in rows))
    words = leader_in_words(status, one)
    return Standing(one, rows, many - len(rows), axis, words, len(same))


def axis_for(low: float, high: float, about: int = 5) -> Axis:
    """An axis over these numbers, with round ticks.

    >>> axis_for(0.13, 0.92).ticks
    (0.2, 0.4, 0.6, 0.8)
    >>> axis_for(3, 3).ticks
    (3.0,)
    """
    if not high > low:
        return Axis(low - 0.5, high + 0.5, (float(low),))
    rough = (high - low) / about
    size = 10.0 ** floor(log10(rough))
    step = next(size * times for times in (1, 2, 5, 10) if size * times >= rough * (1 - 1e-9))
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return Axis(low, high, tuple(round(i * step, 12) for i in range(first, last + 1)))


def unit(problem: Problem) -> str:
    """What the means are of."""
    net = ", net of cost" if problem.payoff.has_costs else ""
    return f"mean {problem.reward}{net}{', smaller is better' if problem.minimise else ''}"
