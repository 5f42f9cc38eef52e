"""How the arms came to stand as they do: the numbers of the charts, and of their tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dowise.experiment.history import History
from dowise.plain import amount, plain
from dowise.problem import Problem
from dowise.service.pages.standing import unit

__all__ = ["Chart", "charts"]

MOST_LINES = 6  # arms that have a colour of their own
OTHERS = "all others"


@dataclass(frozen=True)
class Chart:
    """Lines over the number of outcomes."""

    title: str
    along: str
    x: list[int]
    series: list[dict[str, Any]]
    """Each with name, values, colour (1, 2, … or "others") and whether it leads."""
    range: list[float] | None = None
    """Of the y axis; None where it follows the numbers."""

    def as_dict(self) -> dict[str, Any]:
        """For the page's script."""
        page: dict[str, Any] = plain(self)
        return page

    def rows(self) -> list[list[str]]:
        """The same numbers as a table: outcomes, then each line."""
        return [
            [f"{outcomes:,}", *(amount(one["values"][i]) for one in self.series)]
            for i, outcomes in enumerate(self.x)
        ]


def charts(problem: Problem, past: History, leader: int) -> list[Chart]:
    """P(best), the means and what stopping costs, in the first context of a history."""
    last = _last_of_each(past.outcomes)
    best, mean = past.best[last, 0], past.mean[last, 0]
    x = [int(count) for count in past.outcomes[last]]
    along = "decisions with an outcome"
    order = np.lexsort((np.arange(len(past.arms)), -best[-1], -best.max(axis=0)))
    arms = [leader, *(int(a) for a in order if a != leader)][:MOST_LINES]
    is_whole = len(past.arms) <= MOST_LINES  # then an arm has its colour in every context
    lines = [
        {"name": str(past.arms[a]), "colour": (a if is_whole else i) + 1, "leads": a == leader}
        for i, a in enumerate(arms)
    ]
    chances = [{**line, "values": best[:, a]} for line, a in zip(lines, arms, strict=True)]
    if len(arms) < len(past.arms):
        rest = np.clip(1 - best[:, arms].sum(axis=1), 0, 1)
        chances.append({"name": OTHERS, "colour": "others", "leads": False, "values": rest})
    means = [{**line, "values": mean[:, a]} for line, a in zip(lines, arms, strict=True)]
    cost = {"name": "cost a round", "colour": 1, "leads": True, "values": past.stopping[last, 0]}
    named = unit(problem)
    return [
        Chart("How likely each arm is to be the best", along, x, chances, [0, 1]),
        Chart(f"{named[0].upper()}{named[1:]}", along, x, means),
        Chart("Expected regret of stopping, a round", along, x, [cost]),
    ]


def _last_of_each(outcomes: Any) -> Any:
    """The last place of each number of outcomes."""
    is_last = np.append(outcomes[1:] != outcomes[:-1], True)
    return np.flatnonzero(is_last)
