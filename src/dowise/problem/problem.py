"""A decision problem: a causal graph, the role of each variable, and the arms worth pulling.

>>> from dowise.graph import CausalGraph
>>> problem = Problem(CausalGraph.parse("Z -> X -> Y; Z -> Y"), reward="Y", non_manipulable="Z")
>>> [str(arm) for arm in problem.arms]
['do()', 'do(X=0)', 'do(X=1)']
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dowise.checks import whole_number
from dowise.errors import DowiseError, suggestion
from dowise.frozen import Frozen
from dowise.graph import CausalGraph
from dowise.problem.arms import all_sets, arms_of, canonical_order, possibly_optimal_sets
from dowise.problem.frame import RecordBatch, parse_frame
from dowise.problem.intervention import Intervention
from dowise.problem.payoff import Payoff
from dowise.problem.record import Record, parse_outcome
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
        self._refuse_two_roles()
        conditioned = graph.condition(self.context)
        self.projected: CausalGraph = conditioned.project(self.non_manipulable)
        """The graph of the manipulable variables and the reward, on which POMISs are found."""

        if domains is not None and not isinstance(domains, Mapping):
            raise DowiseError(f"domains must map names to lists of labels, not {domains!r}")
        given = dict(domains or {})
        if reward_values is not None:
            given.setdefault(self.reward, list(reward_values))
        self.domains: Mapping[str, tuple[str, ...]] = self._checked_domains(given)
        domain = self.domains[self.reward]
        self.payoff = Payoff.of(self.reward, domain, reward_values)
        """What the values of the reward are worth."""
        self.reward_values: Mapping[str, float] = MappingProxyType(
            dict(zip(domain, self.payoff.values.tolist(), strict=True))
        )
        self.arms_kind = arms if isinstance(arms, str) else "custom"
        self.max_arms = max_arms
        self._fixed: dict[Intervention, NDArray[np.int64]] = {}  # only of what was checked
        self.intervention_sets: tuple[frozenset[str], ...]
        self.arms: tuple[Intervention, ...]
        self.intervention_sets, self.arms = self._arms(arms, max_arms)
        self._freeze()

    @property
    def manipulable(self) -> tuple[str, ...]:
        """The variables that can be set, sorted by name."""
        return tuple(name for name in self.projected.variables if name != self.reward)

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Where each variable stands among all, in the order of names."""
        return {name: v for v, name in enumerate(self.graph.variables)}

    @cached_property
    def reward_position(self) -> int:
        """Where the reward stands among all variables."""
        return self.positions[self.reward]

    @cached_property
    def context_positions(self) -> NDArray[np.int64]:
        """Where the context variables stand among all."""
        return np.array([self.positions[name] for name in self.context], dtype=np.int64)

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
        known = self.label_codes.get(name) or self.label_codes[self._known(name, "variable")]
        if (type(value) is str or type(value) is int) and value in known:
            return known[value]
        label = label_of(name, value, self.domains[name])
        return MISSING if label is None else known[label]

    def fixed(self, arm: Intervention) -> NDArray[np.int64]:
        """For each variable the position of the value that the arm sets, MISSING where none.

        The arm must be one that `intervention` has checked.
        """
        found = self._fixed.get(arm)
        if found is None:
            found = np.array([self.code(name, arm.get(name)) for name in self.graph.variables])
            found.setflags(write=False)
            self._fixed[arm] = found
        return found

    def record(
        self, arm: ArmLike, outcome: Mapping[str, object], number: int | None = None
    ) -> Record:
        """What was seen after an arm, as a record; `number` is that of the decision, if any.

        `outcome` maps variables, the context among them, to values; variables that the arm set may
        be absent, and what was not seen is missing. A bad outcome is an error.
        """
        fixed = self._fixed.get(arm) if type(arm) is Intervention else None
        if fixed is None:
            arm = self.intervention(arm)
            fixed = self.fixed(arm)
        assert isinstance(arm, Intervention)
        return Record(self, arm, parse_outcome(self, arm, fixed, outcome), fixed, number)

    def records(self, frame: Any, arm: ArmLike | None = None) -> RecordBatch:
        """A table of past records; see `Belief.update_many`."""
        return parse_frame(self, frame, None if arm is None else self.intervention(arm))

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
    def label_codes(self) -> dict[str, dict[str | int, int]]:
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

    def _refuse_two_roles(self) -> None:
        for shared in sorted({*self.context} & {*self.non_manipulable}):
            raise DowiseError(
                f"{shared} can't be both context and non-manipulable: context is seen before the "
                "choice, non-manipulable after; keep it in one of the two"
            )

    def _checked_domains(
        self, given: Mapping[str, Iterable[object]]
    ) -> Mapping[str, tuple[str, ...]]:
        for name in given:
            self._known(name, "variable in domains")
        return MappingProxyType(
            {name: check_domain(name, given.get(name, ("0", "1"))) for name in self.graph}
        )

    def _arms(
        self, arms: str | Iterable[ArmLike], max_arms: int
    ) -> tuple[tuple[frozenset[str], ...], tuple[Intervention, ...]]:
        max_arms = whole_number("max_arms", max_arms, 1)
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
