"""Who races: policies by name, by what makes them, or with a problem of their own in mind.

The last is for wrong graphs. A world knows what is true; a policy has a problem of its own, with
the same recorded variables, but perhaps without an arrow that is there.

>>> from dowise.problem import load_problem
>>> drawn = On(load_problem("task1"), "ids", label="ids, drawn")
>>> [entrant.label for entrant in entrants_of(["ts", ("mine", "ucb"), drawn])]
['ts', 'mine', 'ids, drawn']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError
from dowise.own_code import fingerprint, is_ours
from dowise.policies import Policy
from dowise.policies.registry import import_named, made_by, make_checked, policy_factory
from dowise.problem import Problem
from dowise.problem.files import problem_text

__all__ = ["Entrant", "Entry", "On", "entrants_of", "places_of_arms"]

Kind = str | Callable[..., Policy]


@dataclass(frozen=True)
class On:
    """A policy that decides in a problem of its own, whatever the problem of the world is.

    The problem has the recorded variables, domains, context and reward of the world's, and arms
    that are among the world's: a world with arms="all" has them all.
    """

    problem: Problem
    policy: Kind
    label: str | None = None
    """Its name in the race; that of the policy unless given."""

    def __post_init__(self) -> None:
        if not isinstance(self.problem, Problem):
            raise DowiseError(f"On({self.problem!r}, …): give a Problem first, then the policy")


Entry = Kind | On | tuple[str, Kind | On]


@dataclass(frozen=True)
class Entrant:
    """A policy in a race: its name there, what makes it, and its own problem if it has one."""

    label: str
    factory: Callable[..., Policy]
    problem: Problem | None = None

    def takes(self, option: str) -> bool:
        """Whether what makes it has an option of this name."""
        return option in self._options

    @cached_property
    def _options(self) -> frozenset[str]:
        return frozenset(signature(self.factory).parameters)

    def make(self, problem: Problem, **options: Any) -> Policy:
        """A fresh one, for a world of this problem."""
        return made_by(self.factory, self.problem or problem, options)

    def check(self, problem: Problem, **options: Any) -> None:
        """Raise if a fresh one can't be made, or does not fit into worlds of this problem."""
        make_checked(self.label, self.factory, self.problem or problem, **options)
        if self.problem is not None:
            try:
                places_of_arms(problem, self.problem)
            except DowiseError as error:
                raise DowiseError(f"the policy {self.label!r}: {error}") from None

    @property
    def is_own(self) -> bool:
        """Whether it is one of the user's own, which may do anything."""
        return not is_ours(self.factory)

    @property
    def is_quick(self) -> bool:
        """Whether it is known that a trial takes it no time to speak of."""
        return not self.is_own and getattr(self.factory, "is_quick", False) is True

    def spec(self) -> dict[str, Any]:
        """For the manifest: what makes it, and its own problem if it has one."""
        found = {
            "made by": f"{self.factory.__module__}:{self.factory.__qualname__}",
            "source": fingerprint(self.factory),
        }
        return found | ({} if self.problem is None else {"problem": problem_text(self.problem)})


def entrants_of(policies: Iterable[Entry]) -> list[Entrant]:
    """What was given as policies, each with a name of its own."""
    found: dict[str, Entrant] = {}
    for given in policies:
        entrant = _entrant(given)
        if entrant.label in found:
            raise DowiseError(f"two policies are called {entrant.label!r}: name each once")
        found[entrant.label] = entrant
    return list(found.values())


def _entrant(given: Entry) -> Entrant:
    label, kind = given if isinstance(given, tuple) and len(given) == 2 else (None, given)
    problem = None
    if isinstance(kind, On):
        problem, label, kind = kind.problem, label or kind.label, kind.policy
    if isinstance(kind, str):
        import_named(kind)
    factory: Any = policy_factory(kind) if isinstance(kind, str) else kind
    if not hasattr(factory, "__qualname__"):
        raise DowiseError(
            f"{kind!r} is no policy: give a name, a class or function that makes one, a "
            "pair (name in this race, policy), or On(problem, policy)"
        )
    name = label or kind
    return Entrant(name if isinstance(name, str) else factory.__name__, factory, problem)


def places_of_arms(world: Problem, own: Problem) -> NDArray[np.int64]:
    """Where each arm of a policy's own problem stands among the arms of the world.

    Raises where what the policy would see or do is not what the world shows and takes.
    """
    if own is world:
        return np.arange(len(world.arms))
    pairs: tuple[tuple[str, object, object], ...] = (
        ("recorded variables", own.graph.variables, world.graph.variables),
        ("context", own.context, world.context),
        ("reward", own.reward, world.reward),
        ("domains", dict(own.domains), dict(world.domains)),
        ("reward_values", dict(own.reward_values), dict(world.reward_values)),
        ("minimise", own.minimise, world.minimise),
    )
    for what, mine, theirs in pairs:
        if mine != theirs:
            raise DowiseError(
                f"its own problem and that of the world differ in {what}, {mine!r} against "
                f"{theirs!r}: only their edges, their arms and what can be set may differ"
            )
    places = {arm: i for i, arm in enumerate(world.arms)}
    for arm in own.arms:
        for name in arm:
            if name not in world.manipulable:
                raise DowiseError(
                    f"{arm} is an arm of its own problem, but {name} can't be set in the world's: "
                    "take the arm out, or let it be set there"
                )
        if arm not in places:
            raise DowiseError(
                f"{arm} is an arm of its own problem, but not of the world's: give that one "
                'arms="all"'
            )
    found = np.array([places[arm] for arm in own.arms])
    for arm, mine, theirs in zip(
        own.arms, own.payoff.costs, world.payoff.costs[found], strict=True
    ):
        if mine != theirs:
            raise DowiseError(
                f"{arm} costs {mine:g} in its own problem and {theirs:g} in the world's: give both "
                "the same costs"
            )
    return found
