"""What to do about a reward program that is too large, found by trying what would make it smaller.

The cost of a program is known before it is built. So the roles of the variables that are most
entangled, those of the largest table on the way, are changed one at a time: *observed* before the
choice, together with its causes (context), a variable is no axis any more; *hidden* it is gone, but
ties its effects together, which may cost more than it saves. What is advised has been tried.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from math import inf
from typing import Any, Literal

from dowise.errors import DowiseError
from dowise.model.factors import Factors
from dowise.model.plans import Plans
from dowise.problem import Problem
from dowise.problem.problem import remade

__all__ = ["Remedy", "remedies", "too_large", "too_large_at_once"]

_BYTES = 100  # that building a program takes for each multiplication, measured with `water`
_MOST = 1e9  # the largest program that may be asked for
_TOLD = 3  # of each kind
_EFFORT = 20_000  # pairs of variables in all that is tried: about a second
_ARMS = 50  # take as long as a variable
_FEWEST = 4


@dataclass(frozen=True)
class Remedy:
    """These variables in this role, and so many multiplications are left."""

    role: Literal["hidden", "context"]
    names: tuple[str, ...]
    multiplications: float

    def applied(self, problem: Problem) -> Problem:
        """The problem with the variables in this role."""
        _, (options,) = problem.__reduce__()
        others = [name for name in problem.non_manipulable if name not in self.names]
        roles: dict[str, Any] = {"non_manipulable": others}
        roles[self.role] = (*getattr(problem, self.role), *self.names)
        return remade({**options, **roles})


def remedies(plans: Plans) -> list[Remedy]:
    """The changes of one variable's role after which the program is small enough, cheapest first.

    Variables that some arm sets keep their role: that they can be set is the point.
    """
    problem = plans.problem
    size = len(problem.graph) + len(problem.arms) // _ARMS
    tries = max(_FEWEST, _EFFORT // size**2)
    found = [_tried(problem, remedy) for remedy in islice(_candidates(plans), tries)]
    fitting = (x for x in found if x.multiplications <= problem.max_program)
    return sorted(fitting, key=lambda x: (len(x.names), x.multiplications, x.names))


def _candidates(plans: Plans) -> Iterator[Remedy]:
    problem = plans.problem
    dearest = max(plans.of.values(), key=lambda plan: plan.multiplications)
    is_set = frozenset().union(*problem.intervention_sets) | {problem.reward}
    for v in sorted(dearest.largest, key=lambda v: (-plans.sizes[v], v)):
        name = plans.factors.variables[v]
        if name not in is_set:
            yield Remedy("hidden", (name,), inf)
        causes = problem.graph.ancestors([name])
        if not causes & is_set:
            yield Remedy("context", tuple(sorted(causes - {*problem.context})), inf)


def _tried(problem: Problem, remedy: Remedy) -> Remedy:
    """The same with what is left to be multiplied; infinite where the roles don't fit together."""
    try:
        changed = remedy.applied(problem)
        cost = Plans(changed, Factors(changed)).multiplications
    except DowiseError:
        cost = inf
    return Remedy(remedy.role, remedy.names, cost)


def too_large(plans: Plans) -> str:
    """That the program of a problem is too large, and what helps, in words."""
    cost, limit = plans.multiplications, plans.problem.max_program
    found = remedies(plans)
    ways = [*_in_words(found, "hidden", "and record no longer")]
    ways += [*_in_words(found, "context", "where it is seen before the choice")]
    if not ways:
        ways = ["make domains smaller, cut edges that hardly matter"]
    if cost <= _MOST:
        more = f"{_rounded_up(cost):,}".replace(",", "_")
        ways = [f"raise it, max_program = {more} ({_bytes(cost)} while it is built)", *ways]
    return (
        f"the rewards of this problem take about {cost:.2g} multiplications a draw, and "
        f"max_program is {limit:,}: {'; or '.join(ways)}; or take a policy that learns from "
        "rewards alone, such as ucb, which needs none of this"
    )


def too_large_at_once(plans: Plans, cells: float) -> str:
    """That even one world's means can't be computed, in words."""
    return (
        f"the means of all arms take about {plans.multiplications:.2g} multiplications and a table "
        f"of {cells:.2g} numbers in each world, too much for a race: name fewer arms, make domains "
        "smaller or cut edges that hardly matter"
    )


def _in_words(found: Iterable[Remedy], role: str, what: str) -> Iterator[str]:
    """What more of this role would do, and alternatives to that."""
    own = [remedy.names for remedy in found if remedy.role == role][:_TOLD]
    if own:
        lists = " or ".join(json.dumps(list(names), ensure_ascii=False) for names in own)
        yield f"add to {role}, {what}, {lists}"


def _rounded_up(cost: float) -> int:
    """Two digits, and not less."""
    digit: int = 10 ** max(0, len(str(int(cost))) - 2)
    return (int(cost) // digit + 1) * digit


def _bytes(cost: float) -> str:
    size = _BYTES * cost
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
