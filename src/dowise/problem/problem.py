"""A decision problem: a causal graph, the role of each variable, and the arms worth pulling.

>>> from dowise.graph import CausalGraph
>>> problem = Problem(CausalGraph.parse("Z -> X -> Y; Z -> Y"), reward="Y", non_manipulable="Z")
>>> [str(arm) for arm in problem.arms]
['do()', 'do(X=0)', 'do(X=1)']
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from numbers import Real
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from dowise.errors import DowiseError, suggestion
from dowise.frozen import Frozen
from dowise.graph import CausalGraph
from dowise.problem.arms import all_sets, arms_of, canonical_order, possibly_optimal_sets
from dowise.problem.intervention import Intervention
from dowise.problem.values import MISSING, as_mapping, check_domain, label_of

__all__ = ["Problem"]

ArmLike = Intervention | Mapping[str, object] | str
Context = Mapping[str, object] | None
Role = Literal["reward", "context", "non_manipulable", "manipulable"]

MAX_ARMS = 100_000


class Problem(Frozen):
    """Which variable is the reward, which are seen before the choice, which can't be set.

    `arms` is "pomis" (only what can be optimal), "all" (every intervention on manipulable
    variables) or a list of arms of your own. `reward_values` gives each label of the reward its
    worth; the default is its position in the domain, scaled to [0, 1]. Where the reward's domain is
    not given, the labels of `reward_values` are it. A problem never changes.
    """

    def __init__(
        self,
        graph: CausalGraph,
        reward: str,
        context: str | Iterable[str] = (),
        non_manipulable: str | Iterable[str] = (),
        domains: Mapping[str, Iterable[object]] | None = None,
        reward_values: Mapping[str, float] | None = None,
        arms: str | Iterable[ArmLike] = "pomis",
        max_arms: int = MAX_ARMS,
        name: str | None = None,
        description: str | None = None,
    ) -> None:
        if not isinstance(graph, CausalGraph):
            raise DowiseError(
                f"the graph must be a CausalGraph, not a {type(graph).__name__}: "
                "make one with CausalGraph.parse(text) or CausalGraph.from_networkx(graph)"
            )
        self.graph = graph
        self.name = name
        self.description = description
        self.reward = self._known(reward, "reward")
        self.context = self._role("context", context)
        self.non_manipulable = self._role("non-manipulable", non_manipulable)
        for shared in sorted({*self.context} & {*self.non_manipulable}):
            raise DowiseError(
                f"{shared} can't be both context and non-manipulable: context is seen before the "
                "choice, non-manipulable after; keep it in one of the two"
            )
        conditioned = graph.condition(self.context)
        self.projected: CausalGraph = conditioned.project(self.non_manipulable)
        """The graph of the manipulable variables and the reward, on which POMISs are found."""

        if domains is not None and not isinstance(domains, Mapping):
            raise DowiseError(f"domains must map names to lists of labels, not {domains!r}")
        given = dict(domains or {})
        if reward_values is not None:
            given.setdefault(self.reward, list(reward_values))
        self.domains: Mapping[str, tuple[str, ...]] = self._checked_domains(given)
        self.reward_values: Mapping[str, float] = self._checked_values(reward_values)
        self.arms_kind = arms if isinstance(arms, str) else "custom"
        self.max_arms = max_arms
        self.intervention_sets: tuple[frozenset[str], ...]
        self.arms: tuple[Intervention, ...]
        self.intervention_sets, self.arms = self._arms(arms, max_arms)
        self._freeze()

    @property
    def manipulable(self) -> tuple[str, ...]:
        """The variables that can be set, sorted by name."""
        return tuple(name for name in self.projected.variables if name != self.reward)

    @property
    def scaled_rewards(self) -> tuple[float, ...]:
        """What each value of the reward is worth, scaled so that the worst is 0 and the best 1."""
        worth = self.reward_values.values()
        lowest, span = min(worth), max(worth) - min(worth)
        return tuple((value - lowest) / span for value in worth)

    def role(self, name: str) -> Role:
        """The role of a variable."""
        self._known(name, "variable")
        if name == self.reward:
            return "reward"
        if name in self.context:
            return "context"
        return "non_manipulable" if name in self.non_manipulable else "manipulable"

    def intervention(self, arm: ArmLike) -> Intervention:
        """An intervention on manipulable variables, checked: an arm, a mapping or `do(X=1)`."""
        if isinstance(arm, Intervention) and arm in self._arm_positions:
            return arm
        return self._checked_intervention(arm)

    def _checked_intervention(self, arm: ArmLike) -> Intervention:
        settings: Mapping[str, object]
        if isinstance(arm, str):
            settings = Intervention.parse(arm)
        elif isinstance(arm, Mapping):
            settings = arm
        else:
            raise DowiseError(
                f"{arm!r} is not an intervention: give a mapping such as {{'X': 1}} or 'do(X=1)'"
            )
        labels: dict[str, object] = {}
        for name, value in settings.items():
            self._known(name, "variable")
            if name not in self.manipulable:
                role = self.role(name).replace("_", "-").replace("reward", "the reward")
                raise DowiseError(f"{name} can't be set: it is {role}")
            labels[name] = label_of(name, value, self.domains[name])
        return Intervention(labels)

    def arm_index(self, arm: ArmLike) -> int:
        """Where an arm stands in `arms`."""
        checked = self.intervention(arm)
        try:
            return self._arm_positions[checked]
        except KeyError:
            raise DowiseError(
                f"{checked} is not one of the {len(self.arms)} arms of this problem; "
                "`dowise arms` lists them"
            ) from None

    def code(self, name: str, value: object) -> int:
        """The position of a value in the variable's domain, or MISSING (−1) where it is missing."""
        known = self._codes.get(name) or self._codes[self._known(name, "variable")]
        if (type(value) is str or type(value) is int) and value in known:
            return known[value]
        label = label_of(name, value, self.domains[name])
        return MISSING if label is None else known[label]

    def context_codes(self, context: Context) -> tuple[int, ...]:
        """The positions of the context's values, in the order of names; all must be there."""
        given = as_mapping(context, "the context")
        for name in given:
            if name not in self.context:
                raise DowiseError(
                    f"{name!r} is not a context variable{suggestion(str(name), self.context)}"
                )
        codes = tuple(self.code(name, given.get(name)) for name in self.context)
        if MISSING in codes:
            raise DowiseError(
                f"the context has no value for {self.context[codes.index(MISSING)]}: give all of "
                f"{', '.join(self.context)}"
            )
        return codes

    def context_labels(self, codes: Iterable[int]) -> dict[str, str]:
        """The context with these positions, the way back from `context_codes`."""
        pairs = zip(self.context, codes, strict=True)
        return {name: self.domains[name][code] for name, code in pairs}

    def save(self, path: str | Path) -> None:
        """Write the problem file (TOML) that `load_problem` reads back."""
        from dowise.problem.files import save_problem

        save_problem(self, path)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Problem) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.graph, self.reward, self.context, self.non_manipulable))

    def __repr__(self) -> str:
        roles = [f"reward={self.reward!r}"]
        roles += [f"context={self.context!r}"] if self.context else []
        roles += [f"non_manipulable={self.non_manipulable!r}"] if self.non_manipulable else []
        name = f"{self.name}: " if self.name else ""
        sizes = f"{len(self.graph)} variables, {', '.join(roles)}, {len(self.arms)} arms"
        return f"<Problem {name}{sizes}>"

    def __reduce__(self) -> tuple[Any, ...]:
        arms = self.arms if self.arms_kind == "custom" else self.arms_kind
        return Problem, (
            self.graph, self.reward, self.context, self.non_manipulable, dict(self.domains),
            dict(self.reward_values), arms, self.max_arms, self.name, self.description,
        )  # fmt: skip

    @cached_property
    def _arm_positions(self) -> dict[Intervention, int]:
        return {arm: i for i, arm in enumerate(self.arms)}

    @cached_property
    def _codes(self) -> dict[str, dict[str | int, int]]:
        """For each variable the positions of its labels, and of the ints that they are texts of."""
        codes: dict[str, dict[str | int, int]] = {}
        for name, domain in self.domains.items():
            codes[name] = {label: i for i, label in enumerate(domain)}
            codes[name] |= {i: codes[name][str(i)] for i in range(len(domain)) if str(i) in domain}
        return codes

    def _key(self) -> tuple[Any, ...]:
        roles = self.graph, self.reward, self.context, self.non_manipulable
        return *roles, dict(self.domains), dict(self.reward_values), self.arms, self.name

    def _known(self, name: str, role: str) -> str:
        if not isinstance(name, str) or name not in self.graph:
            variables = self.graph.variables
            raise DowiseError(
                f"unknown {role} {name!r}{suggestion(str(name), variables)}: "
                f"the graph's variables are {', '.join(variables)}"
            )
        return name

    def _role(self, role: str, names: str | Iterable[str] | None) -> tuple[str, ...]:
        names = (names,) if isinstance(names, str) else names or ()
        for name in names:
            self._known(name, f"{role} variable")
            if name == self.reward:
                raise DowiseError(f"{name} can't be both reward and {role}: give it one role")
        return tuple(sorted(set(names)))

    def _checked_domains(
        self, given: Mapping[str, Iterable[object]]
    ) -> Mapping[str, tuple[str, ...]]:
        for name in given:
            self._known(name, "variable in domains")
        return MappingProxyType(
            {name: check_domain(name, given.get(name, ("0", "1"))) for name in self.graph}
        )

    def _checked_values(self, given: Mapping[str, float] | None) -> Mapping[str, float]:
        domain = self.domains[self.reward]
        if given is None:
            return MappingProxyType(
                {label: i / (len(domain) - 1) for i, label in enumerate(domain)}
            )
        if not isinstance(given, Mapping):
            raise DowiseError(
                f"reward_values must map each label of {self.reward} to a number, not {given!r}"
            )
        values: dict[str, float] = {}
        for key, value in given.items():
            label = label_of(self.reward, key, domain)
            if label is None or label in values:
                raise DowiseError(f"reward_values names {key!r} more than once or not by a label")
            values[label] = _finite(value, label)
        for label in domain:
            if label not in values:
                raise DowiseError(f"reward_values has no number for {self.reward}={label}: add one")
        if len(set(values.values())) == 1:
            raise DowiseError(
                f"every value of {self.reward} is worth the same: there is nothing to decide; "
                "give its labels different reward_values"
            )
        span, largest = max(values.values()) - min(values.values()), max(map(abs, values.values()))
        if not math.isfinite(span) or span < 1e-9 * largest:
            raise DowiseError(
                f"the reward values of {self.reward} are too far from 0 for their differences to "
                "be told apart, or too far apart: shift or scale them"
            )
        return MappingProxyType({label: values[label] for label in domain})

    def _arms(
        self, arms: str | Iterable[ArmLike], max_arms: int
    ) -> tuple[tuple[frozenset[str], ...], tuple[Intervention, ...]]:
        if isinstance(max_arms, bool) or not isinstance(max_arms, int) or max_arms < 1:
            raise DowiseError(f"max_arms={max_arms!r} must be a whole number of at least 1")
        if isinstance(arms, Mapping) or not isinstance(arms, Iterable):
            raise DowiseError(f"arms={arms!r}: give a list of arms, 'pomis' or 'all'")
        if not isinstance(arms, str):
            own = [self._checked_intervention(arm) for arm in arms]
            if len(own) > max_arms:
                raise DowiseError(f"{len(own):,} arms were given, and max_arms is {max_arms:,}")
            return canonical_order(own, self.domains)
        if arms == "pomis":
            sets = possibly_optimal_sets(self.projected, self.reward, self.domains, max_arms)
        elif arms == "all":
            sets = all_sets(self.manipulable, self.domains, max_arms)
        else:
            raise DowiseError(
                f"arms={arms!r}: say 'pomis', 'all', or give a list of arms such as ['do(X=1)']"
            )
        return sets, tuple(arms_of(sets, self.domains))


def _finite(value: object, label: str) -> float:
    """A number of any kind, NumPy's among them, as a float."""
    if isinstance(value, Real) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise DowiseError(f"the reward value of {label!r} must be a number, not {str(value)[:40]!r}")
