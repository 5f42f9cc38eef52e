"""Decision problems: a causal graph, the role of each variable, and the arms to choose from.

>>> from dowise.graph import CausalGraph
>>> problem = Problem(CausalGraph.parse("Z -> X -> Y; Z -> Y"), reward="Y", non_manipulable="Z")
>>> [str(arm) for arm in problem.arms]
['do()', 'do(X=0)', 'do(X=1)']
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from functools import cached_property
from inspect import signature
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from dowise._core.frozen import Frozen
from dowise._core.types import IntArray
from dowise._core.validation import (
    check_fraction,
    check_integer,
    check_optional_text,
    suggest_keywords,
)
from dowise.errors import DowiseError, DowiseWarning, suggestion, type_name
from dowise.graph import CausalGraph
from dowise.graph.transforms import FactorOrder
from dowise.problem.arms import (
    arms_from_user,
    enumerate_arms,
    find_forbidden,
    forbidden_from_user,
    order_arms,
)
from dowise.problem.domains import (
    MISSING,
    as_mapping,
    domains_from_user,
    find_label,
    known_variable,
    label_of,
    not_settable,
    roles_from_user,
)
from dowise.problem.edge_priors import (
    describe_left,
    edge_prior_from_user,
    observed_edges,
    soft_edges,
)
from dowise.problem.intervention import Intervention
from dowise.problem.order import order_by_names, order_from_user, ranks_of, soft_order
from dowise.problem.payoff import Payoff, arm_costs, cheaper_equivalent, costs_from_user
from dowise.problem.prior import Prior, plain_prior, prior_from_user
from dowise.problem.record import Record, RecordBatch, parse_outcome
from dowise.problem.tables import CheckedRecords, check_rows, parse_frame

MAX_ARMS = 100_000
EDGE_RULES = 2  # the newest rules for doubtful edges
# Ten times the size of `insurance`, which is built in half a second and takes a twelfth of a second
# for 1000 draws (docs/design/performance.md); both grow in proportion.
MAX_PROGRAM = 2_000_000
_MAX_PROGRAM_LIMIT = 1_000_000_000  # values of a circuit are numbered by 31 bits
_MAX_CACHED_CONTEXTS = 1024  # contexts whose labels are cached
_COMPARED = (
    *("drawn", "reward", "context", "non_manipulable", "hidden", "edge_priors", "soft", "domains"),
    *("hidden_domains", "reward_values", "minimise", "forbidden", "arms", "prior", "max_program"),
    *("stated_order", "edge_rules"),
)

ArmLike = Intervention | Mapping[str, object] | str
Context = Mapping[str, object] | None
Role = Literal["reward", "context", "non_manipulable", "manipulable"]


class Problem(Frozen):
    """Causal decision problem: a graph, the roles and domains of its variables, and the arms.

    A problem is immutable.

    Parameters
    ----------
    graph : CausalGraph or str
        Causal graph, or its text form (see `CausalGraph.parse`).
    reward : str
        Name of the reward variable.
    context : str or iterable of str
        Variables that are known before the choice, closed under ancestors.
    non_manipulable : str or iterable of str
        Variables that are observed after the choice and can't be set.
    domains : mapping of str to iterable, optional
        Ordered labels of each variable. The default is two values, 0 and 1.
    reward_values : mapping of str to float, optional
        Value of each label of the reward. The default is its index in the domain, scaled to [0, 1].
        If the reward has no domain, the labels of `reward_values` are its domain.
    arms : {"pomis", "minimal", "all"} or iterable of arms, optional
        "pomis": interventions that can be optimal. "minimal": interventions of which no part is
        without effect. "all": every intervention on manipulable variables. Or a list of custom
        arms. The default is "pomis", or "minimal" if there are forbidden assignments or costs,
        because then the POMISs do not suffice.
    max_arms : int
        Largest number of arms.
    name, description : str, optional
        Shown in output.
    minimise : bool
        True if smaller rewards are better.
    hidden : str or iterable of str
        Variables of the graph that are never recorded. They are projected out; bidirected edges
        that arise from them are certain.
    manipulable : str or iterable of str, optional
        Variables that can be set, as an alternative to `non_manipulable`.
    edge_prior : float or mapping of str to float, optional
        Prior probability of edges: a number for every `<->` without a mark (default 0.9), or
        numbers by edge text.
    soft : float, optional
        Prior of every absent edge that could exist, such as 0.1.
    max_program : int
        Largest number of multiplications for one draw of all arms' rewards.
    forbidden : arm or iterable of arms
        Assignments that no arm may contain.
    prior : float, mapping or path, optional
        Prior that a `Belief` starts with: "flat" (the default), "pooled", a number of counts,
        counts by variable, or the path of a TOML file with such counts.
    costs : mapping of str to float, optional
        Cost of setting a variable or of an arm, such as {"X": 0.1, "do(Z=1)": 0.3}, in the units
        of the reward. Rewards are then net of costs.
    order : iterable of str, optional
        All recorded variables in the order in which they get their values, the context first. The
        default follows from the graph. It decides which absent arrows are soft.
    edge_rules : {2, 1}
        Rules for doubtful and soft edges. 1 is for experiments that began before 2 existed: hidden
        causes have wide tables alone, and names decide more about `order`.

    Attributes
    ----------
    drawn : CausalGraph
        Graph as passed, hidden variables included.
    graph : CausalGraph
        Graph of the recorded variables: `drawn` with hidden variables projected out.
    possible : CausalGraph
        `graph` with all soft edges.
    projected : CausalGraph
        Manipulable variables and the reward, without soft edges, for finding POMISs.
    edge_priors : mapping of str to float
        Prior of each edge of `possible` that is not certain.
    left_to_evidence : tuple of str
        Absent edges that are not soft, because they would be too many. The evidence judges them.
    settable : frozenset of str
        Variables that arms may set: those of custom arms, or all manipulable ones.
    domains, hidden_domains : mapping of str to tuple of str
        Labels of the recorded and of the hidden variables.
    arms : tuple of Intervention
        Arms in canonical order: by size of the set, then names, then values.
    intervention_sets : tuple of frozenset of str
        Distinct sets of variables of the arms, in canonical order.
    payoff : Payoff
        Values of the reward and costs of the arms.

    Raises
    ------
    DowiseError
        If the roles contradict each other, a name or label is unknown, or there are too many arms.

    Examples
    --------
    >>> problem = Problem("Z -> X -> Y; Z -> Y", reward="Y", domains={"X": ["low", "high"]})
    >>> [str(arm) for arm in problem.arms]
    ['do(X=low, Z=0)', 'do(X=low, Z=1)', 'do(X=high, Z=0)', 'do(X=high, Z=1)']
    """

    _fixed: dict[Intervention, IntArray]  # checked interventions only
    _is_rebuilt = False  # from pickle, a copy or a journal: do not repeat warnings

    @suggest_keywords
    def __init__(
        self,
        graph: CausalGraph | str,
        reward: str,
        context: str | Iterable[str] = (),
        non_manipulable: str | Iterable[str] = (),
        domains: Mapping[str, Iterable[object]] | None = None,
        reward_values: Mapping[str, float] | None = None,
        arms: str | Iterable[ArmLike] | None = None,
        max_arms: int = MAX_ARMS,
        name: str | None = None,
        description: str | None = None,
        minimise: bool = False,
        *,
        hidden: str | Iterable[str] = (),
        manipulable: str | Iterable[str] | None = None,
        edge_prior: float | Mapping[str, float] | None = None,
        soft: float | None = None,
        max_program: int = MAX_PROGRAM,
        forbidden: ArmLike | Iterable[ArmLike] = (),
        prior: Prior | None = None,
        costs: Mapping[str, float] | None = None,
        order: Iterable[str] | None = None,
        edge_rules: int = EDGE_RULES,
    ) -> None:
        self.name = check_optional_text("name", name)
        self.description = check_optional_text("description", description)
        if isinstance(graph, str):
            graph = CausalGraph.parse(graph)
        if not isinstance(graph, CausalGraph):
            raise DowiseError(
                f"the graph must be a CausalGraph, not {type_name(graph)}: "
                "make one with CausalGraph.parse(text) or CausalGraph.from_networkx(graph)",
                code="invalid-type",
            )
        self.drawn = graph
        roles = roles_from_user(
            graph,
            reward,
            context=context,
            non_manipulable=non_manipulable,
            manipulable=manipulable,
            hidden=hidden,
        )
        self.reward, self.context = roles.reward, roles.context
        self.non_manipulable, self.hidden = roles.non_manipulable, roles.hidden
        self.edge_prior = edge_prior_from_user(edge_prior, graph, self.hidden)
        self.graph, priors = observed_edges(graph, self.hidden, self.edge_prior)
        self.projected = self.projection(self.graph)
        labels = domains_from_user(graph, self.reward, domains, reward_values)
        self.hidden_domains = MappingProxyType({name: labels.pop(name) for name in self.hidden})
        self.domains = MappingProxyType(labels)
        self.payoff = Payoff.from_user(self.reward, labels[self.reward], reward_values, minimise)
        self._fixed, check = {}, self._checked_intervention
        self.forbidden = forbidden_from_user(forbidden, check)
        self.costs = costs_from_user(costs, self, check)
        self.max_arms = check_integer("max_arms", max_arms, 1)
        self.max_program = check_integer("max_program", max_program, 1, _MAX_PROGRAM_LIMIT)
        self.arms_kind, custom = arms_from_user(arms, self.forbidden, self.costs, check)
        self.soft = None if soft is None else check_fraction("soft", soft, 0.1)
        self.settable = frozenset(self.manipulable if custom is None else chain(*custom))
        self.stated_order = order_from_user(order, self.graph, self.context, self.hidden)
        self.edge_rules = check_integer("edge_rules", edge_rules, 1, EDGE_RULES)
        self.possible = self.graph
        self.left_to_evidence: tuple[str, ...] = ()
        if self.soft is not None:
            taken, self.left_to_evidence = soft_edges(
                self.graph, self._soft_order(), self.reward, self.context, self.settable, priors
            )
            self.possible = self.graph.with_edges(taken)
            priors = dict(sorted({**priors, **dict.fromkeys(taken, self.soft)}.items()))
        if not priors:
            self.edge_rules = EDGE_RULES  # they make no difference
        self.edge_priors = MappingProxyType(priors)
        self.prior = prior_from_user(self, prior)
        self.states_prior = prior is not None
        """True if the user stated the prior, so that the policy "best" does not choose it."""
        self.intervention_sets, self.arms = self._sets_and_arms(custom)
        self.payoff = self.payoff.with_costs(arm_costs(self))
        if not self._is_rebuilt:
            self._warn_of_missing_arms(is_default=arms is None)
            if self.left_to_evidence:
                warnings.warn(describe_left(self.left_to_evidence), DowiseWarning, stacklevel=3)
        self._freeze()

    # -- roles, labels and indices --------------------------------------------------------------

    @cached_property
    def manipulable(self) -> tuple[str, ...]:
        """Variables that can be set, sorted by name."""
        fixed = {self.reward, *self.context, *self.non_manipulable}
        return tuple(name for name in self.graph.variables if name not in fixed)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Order of the recorded variables along which factors are written, causes first."""
        if self.soft is not None and self.edge_rules > 1:
            return self._soft_order()
        ranks = None
        if self.edge_priors and self.edge_rules > 1:
            ranks = ranks_of(self.graph, self.reward, self.settable)
        order = FactorOrder(self.possible, self.context, self.reward, self.stated_order, ranks)
        return tuple(self.possible.variables[v] for v in order.variables)

    def _soft_order(self) -> tuple[str, ...]:
        """Return the order along which absent arrows are soft."""
        if self.stated_order is not None:
            return self.stated_order
        if self.edge_rules == 1:
            return order_by_names(self.graph, self.reward, self.context)
        return soft_order(self.graph, self.reward, self.context, self.settable)

    def role(self, name: str) -> Role:
        """Return the role of a variable.

        Parameters
        ----------
        name : str
            Name of a recorded variable.

        Returns
        -------
        {"reward", "context", "non_manipulable", "manipulable"}
            Role of the variable.

        Raises
        ------
        DowiseError
            If the variable is unknown or hidden.

        Examples
        --------
        >>> Problem("C -> X -> Y", reward="Y", context="C").role("C")
        'context'
        """
        self._known(name, "variable")
        if name == self.reward:
            return "reward"
        if name in self.context:
            return "context"
        return "non_manipulable" if name in self.non_manipulable else "manipulable"

    @cached_property
    def reward_values(self) -> Mapping[str, float]:
        """Value of each label of the reward, in the user's units."""
        values = self.payoff.values.tolist()
        return MappingProxyType(dict(zip(self.domains[self.reward], values, strict=True)))

    @property
    def minimise(self) -> bool:
        """True if smaller rewards are better."""
        return self.payoff.minimise

    @cached_property
    def positions(self) -> Mapping[str, int]:
        """Index of each variable among all, in the order of names."""
        return {name: v for v, name in enumerate(self.graph.variables)}

    @cached_property
    def reward_position(self) -> int:
        """Index of the reward among all variables."""
        return self.positions[self.reward]

    @cached_property
    def context_positions(self) -> IntArray:
        """Indices of the context variables among all variables."""
        return np.array([self.positions[name] for name in self.context], dtype=np.int64)

    @cached_property
    def label_codes(self) -> dict[str, dict[str | int, int]]:
        """Code of each label of each variable; small ints are accepted in place of their text."""
        codes: dict[str, dict[str | int, int]] = {}
        for name, domain in self.domains.items():
            codes[name] = {label: i for i, label in enumerate(domain)}
            codes[name] |= {i: domain.index(str(i)) for i in range(len(domain)) if str(i) in domain}
        return codes

    def find_code(self, name: str, text: str) -> int | None:
        """Return the code of the label that a text denotes, or None if there is no such label.

        Parameters
        ----------
        name : str
            Name of a variable.
        text : str
            Label, or a number equal to one ("1.0" for "1").

        Returns
        -------
        int or None
            Index of the label in the variable's domain.

        Examples
        --------
        >>> problem = Problem("X -> Y", reward="Y")
        >>> problem.find_code("X", "1.0"), problem.find_code("X", "2")
        (1, None)
        """
        code = self.label_codes[name].get(text)
        if code is not None:
            return code
        label = find_label(text, self.domains[name])
        return None if label is None else self.label_codes[name][label]

    def code(self, name: str, value: object) -> int:
        """Return the index of a value in the variable's domain, or MISSING (−1).

        Parameters
        ----------
        name : str
            Name of a variable.
        value : object
            Value of the variable; None means that it is missing.

        Returns
        -------
        int
            Index of the value, or −1 if it is missing.

        Raises
        ------
        DowiseError
            If the variable is unknown or hidden, or has no such value.

        Examples
        --------
        >>> problem = Problem("X -> Y", reward="Y", domains={"X": ["low", "high"]})
        >>> problem.code("X", "high"), problem.code("X", None)
        (1, -1)
        """
        codes = self.label_codes.get(name) or self.label_codes[self._known(name, "variable")]
        if (type(value) is str or type(value) is int) and value in codes:
            return codes[value]
        label = label_of(name, value, self.domains[name])
        return MISSING if label is None else codes[label]

    def context_codes(self, context: Context) -> tuple[int, ...]:
        """Return the codes of the context's values, in the order of names.

        Parameters
        ----------
        context : mapping of str to object or None
            Value of each context variable. None is the empty context.

        Returns
        -------
        tuple of int
            Index of each value in the domain of its variable.

        Raises
        ------
        DowiseError
            If a value is missing or not in its domain, or a name is not a context variable.

        Examples
        --------
        >>> domains = {"C": ["low", "high"]}
        >>> problem = Problem("C -> X -> Y", reward="Y", context="C", domains=domains)
        >>> problem.context_codes({"C": "high"})
        (1,)
        """
        values = as_mapping(context, "the context")
        if len(values) != len(self.context):
            self._check_context_names(values)
        codes = tuple([self.code(name, values.get(name)) for name in self.context])
        if MISSING in codes:
            self._check_context_names(values)
            raise DowiseError(
                f"the context has no value for {self.context[codes.index(MISSING)]}: pass values "
                f"for all of {', '.join(self.context)}",
                code="missing-value",
            )
        return codes

    def _check_context_names(self, context: Mapping[str, object]) -> None:
        for name in context:
            if name not in self.context:
                raise DowiseError(
                    f"{name!r} is not a context variable{suggestion(str(name), self.context)}",
                    code="unknown-variable",
                )

    def context_labels(self, codes: Iterable[int]) -> dict[str, str]:
        """Return the context with these codes. Inverse of `context_codes`.

        Parameters
        ----------
        codes : iterable of int
            Code of each context variable's value, in the order of names.

        Returns
        -------
        dict of str to str
            Label of each context variable.

        Examples
        --------
        >>> domains = {"C": ["low", "high"]}
        >>> problem = Problem("C -> X -> Y", reward="Y", context="C", domains=domains)
        >>> problem.context_labels([1])
        {'C': 'high'}
        """
        labels = self._context_cache.get(key := tuple(codes))
        if labels is None:
            if len(self._context_cache) >= _MAX_CACHED_CONTEXTS:
                self._context_cache.clear()
            pairs = zip(self.context, key, strict=True)
            labels = {name: self.domains[name][code] for name, code in pairs}
            self._context_cache[key] = labels
        return labels.copy()

    @cached_property
    def _context_cache(self) -> dict[tuple[int, ...], dict[str, str]]:
        return {}

    def _known(self, name: str, role: str) -> str:
        return known_variable(self.graph, name, role, self.hidden)

    # -- arms and interventions -----------------------------------------------------------------

    def intervention(self, arm: ArmLike) -> Intervention:
        """Validate an intervention on manipulable variables.

        Parameters
        ----------
        arm : Intervention, mapping or str
            Intervention, mapping from variable to value, or text such as "do(X=1)".

        Returns
        -------
        Intervention
            It need not be one of the arms.

        Raises
        ------
        DowiseError
            If a variable is unknown or can't be set, or a value is not in its domain.

        Examples
        --------
        >>> Problem("X -> Y", reward="Y").intervention({"X": True})
        Intervention({'X': '1'})
        """
        if isinstance(arm, Intervention) and arm in self.arm_positions:
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
                f"{arm!r} is not an intervention: pass a mapping such as {{'X': 1}} or 'do(X=1)'",
                code="invalid-type",
            )
        labels: dict[str, object] = {}
        for name, value in settings.items():
            self._known(name, "variable")
            if name not in self.manipulable:
                raise DowiseError(not_settable(name, self.role(name)), code="not-manipulable")
            labels[name] = label_of(name, value, self.domains[name])
        return Intervention(labels)

    @cached_property
    def arm_positions(self) -> Mapping[Intervention, int]:
        """Index of each arm in `arms`."""
        return {arm: i for i, arm in enumerate(self.arms)}

    def arm_index(self, arm: ArmLike) -> int:
        """Return the index of an arm in `arms`.

        Parameters
        ----------
        arm : Intervention, mapping or str
            Intervention, mapping from variable to value, or text such as "do(X=1)".

        Returns
        -------
        int
            Index of the arm, from 0.

        Raises
        ------
        DowiseError
            If it is not an arm, or not a valid intervention.

        Examples
        --------
        >>> Problem("X -> Y", reward="Y").arm_index("do(X=1)")
        1
        """
        checked = self.intervention(arm)
        if checked not in self.arm_positions:
            raise DowiseError(self.not_an_arm(checked), code="unknown-arm")
        return self.arm_positions[checked]

    def not_an_arm(self, arm: Intervention) -> str:
        """Return the message that an intervention is not one of the arms.

        Parameters
        ----------
        arm : Intervention
            Intervention that is not an arm.

        Returns
        -------
        str
            Message for an error; it names the forbidden assignment if there is one.

        Examples
        --------
        >>> problem = Problem("Z -> X -> Y", reward="Y", forbidden="do(X=1)")
        >>> problem.not_an_arm(Intervention({"X": 1, "Z": 0}))
        'do(X=1, Z=0) is forbidden: it contains do(X=1)'
        """
        excluded = find_forbidden(arm, self.forbidden)
        if excluded is not None:
            return f"{arm} is forbidden" + (f": it contains {excluded}" if arm != excluded else "")
        return (
            f"{arm} is not one of the {len(self.arms)} arms of this problem; "
            "`dowise arms` lists them"
        )

    def fixed(self, arm: Intervention) -> IntArray:
        """Return the code that the arm sets, or MISSING, for each variable.

        Parameters
        ----------
        arm : Intervention
            Intervention that has been validated by `intervention`.

        Returns
        -------
        array of int
            Codes in the order of names; the array is read-only.

        Examples
        --------
        >>> problem = Problem("Z -> X -> Y", reward="Y")
        >>> problem.fixed(problem.intervention("do(X=1)")).tolist()
        [1, -1, -1]
        """
        codes = self._fixed.get(arm)
        if codes is None:
            codes = np.array([self.code(name, arm.get(name)) for name in self.graph.variables])
            codes.setflags(write=False)
            self._fixed[arm] = codes
        return codes

    def projection(self, graph: CausalGraph) -> CausalGraph:
        """Condition on the context and project out non-manipulable variables.

        Parameters
        ----------
        graph : CausalGraph
            Graph over the recorded variables, such as `graph` or `possible`.

        Returns
        -------
        CausalGraph
            Graph of the manipulable variables and the reward.

        Raises
        ------
        DowiseError
            If the graph lacks a context variable or a non-manipulable one, or a cause of a context
            variable is not context.

        Examples
        --------
        >>> problem = Problem("Z -> X -> Y; Z -> Y", reward="Y", non_manipulable="Z")
        >>> problem.projection(problem.graph)
        CausalGraph.parse('X -> Y; X <-> Y')
        """
        return graph.condition(self.context).project(self.non_manipulable)

    def _sets_and_arms(
        self, custom: list[Intervention] | None
    ) -> tuple[tuple[frozenset[str], ...], tuple[Intervention, ...]]:
        if custom is not None:
            return order_arms(custom, self.domains, self.max_arms)
        graphs = [self.projected]
        graphs += [self.projection(self.possible)] if self.soft is not None else []
        sets, arms = enumerate_arms(
            self.arms_kind,
            graphs,
            reward=self.reward,
            domains=self.domains,
            forbidden=self.forbidden,
            max_arms=self.max_arms,
        )
        if not arms:  # only with POMISs: do() is minimal and can't be forbidden
            raise DowiseError(
                "all arms that could be optimal are forbidden: leave out arms = 'pomis' to use "
                "other arms",
                code="no-arms",
            )
        return sets, arms

    def _warn_of_missing_arms(self, is_default: bool) -> None:
        """Warn if the best permitted intervention need not be one of the arms."""
        reasons = ["forbidden assignments"] * bool(self.forbidden)
        reasons += ["costs"] * self.payoff.has_costs
        text = ""
        if self.arms_kind == "pomis" and reasons:
            text = (
                f"with {' and '.join(reasons)} the best arm need not be one of those that could be "
                "optimal without them: leave out arms = 'pomis' to include it"
            )
        elif is_default and (pair := cheaper_equivalent(self)) is not None:
            arm, cheaper = pair
            text = (
                f"{arm} costs {self.costs.of(arm):g}, but {cheaper}, which has the same effect, "
                f"costs only {self.costs.of(cheaper):g}, the sum over its variables: use "
                "arms = 'all' to include such arms, arms = 'minimal' to leave them out, or add "
                "costs of variables"
            )
        if text:
            warnings.warn(text, DowiseWarning, stacklevel=4)

    # -- records --------------------------------------------------------------------------------

    def record(
        self, arm: ArmLike, outcome: Mapping[str, object], number: int | None = None
    ) -> Record:
        """Parse and validate an outcome.

        Parameters
        ----------
        arm : Intervention, mapping or str
            Intervention that was played.
        outcome : mapping of str to object
            Observed values, the context included. Variables that the arm set may be left out;
            other variables that are left out are missing.
        number : int, optional
            Number of the decision that the outcome belongs to.

        Returns
        -------
        Record

        Raises
        ------
        DowiseError
            If a name or value is unknown, or a value contradicts the arm.

        Examples
        --------
        >>> Problem("Z -> X -> Y", reward="Y").record("do(X=1)", {"Y": 0})
        <Record of do(X=1): {'X': '1', 'Y': '0'}>
        """
        fixed = self._fixed.get(arm) if type(arm) is Intervention else None
        if fixed is None:
            arm = self.intervention(arm)
            fixed = self.fixed(arm)
        assert isinstance(arm, Intervention)
        return Record(self, arm, parse_outcome(self, arm, fixed, outcome), fixed, number)

    def records(self, frame: Any, arm: ArmLike | None = None) -> RecordBatch:
        """Read a table of records, one row per record.

        Parameters
        ----------
        frame : pandas.DataFrame, pyarrow.Table or mapping of str to list
            Columns by variable. A column `arm` has the arms as text.
        arm : Intervention, mapping or str, optional
            Arm of all rows, if there is no column `arm`. The default is do().

        Returns
        -------
        RecordBatch

        Raises
        ------
        DowiseError
            If a column is unknown or a row is invalid.

        Examples
        --------
        >>> Problem("X -> Y", reward="Y").records({"arm": ["do()", "do(X=1)"], "Y": [0, 1]})
        <RecordBatch of 2 records>
        """
        return parse_frame(self, frame, None if arm is None else self.intervention(arm))

    def checked_records(self, frame: Any, arm: ArmLike | None = None) -> CheckedRecords:
        """Read the good rows of a table of records, and the reasons why others are bad.

        Parameters
        ----------
        frame, arm
            See `records`.

        Returns
        -------
        CheckedRecords
            Records of the good rows in `batch`, and the first bad rows in `bad`.

        Raises
        ------
        DowiseError
            If a column is unknown, or something else is wrong with the table as a whole.

        Examples
        --------
        >>> Problem("X -> Y", reward="Y").checked_records({"X": [0, 7], "Y": [0, 1]})
        <CheckedRecords: 1 good rows, 1 bad>
        """
        return check_rows(self, frame, None if arm is None else self.intervention(arm))

    # -- files, equality and copies -------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the problem to a TOML file. `load_problem` reads it.

        Parameters
        ----------
        path : str or Path
            Path of the file. If it ends in .gz, the file is compressed.

        Raises
        ------
        DowiseError
            If the file can't be written.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from dowise.problem import load_problem
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "problem.toml")
        ...     Problem("X -> Y", reward="Y").save(path)
        ...     [str(arm) for arm in load_problem(path).arms]
        ['do(X=0)', 'do(X=1)']
        """
        from dowise.problem.problem_file import save_problem

        save_problem(self, path)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Problem):
            return NotImplemented
        is_same = all(getattr(self, name) == getattr(other, name) for name in _COMPARED)
        return is_same and np.array_equal(self.payoff.costs, other.payoff.costs)

    def __hash__(self) -> int:
        return hash((self.drawn, self.reward, self.context, self.non_manipulable, self.hidden))

    def __repr__(self) -> str:
        parts = [f"{len(self.graph)} variables"]
        for name in ("reward", "minimise", "context", "non_manipulable", "hidden", "soft"):
            value = getattr(self, name)
            parts += [f"{name}={value!r}"] if value else []
        parts += [f"forbidden=[{', '.join(map(str, self.forbidden))}]"] if self.forbidden else []
        costs = ", ".join(f"{text}: {cost:g}" for text, cost in self.costs.items())
        parts += [f"costs={{{costs}}}"] if self.costs else []
        is_number = isinstance(self.prior, float)
        prior = f"{self.prior:g}" if is_number else "{…}" if self.prior != "pooled" else "pooled"
        parts += [f"prior={prior}"] if self.prior != 1.0 else []
        parts += [f"{len(self.arms)} arms"]
        return f"<Problem {f'{self.name}: ' if self.name else ''}{', '.join(parts)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        # Read-only mappings can't be pickled.
        plain = {
            "graph": self.drawn,
            "domains": {**self.domains, **self.hidden_domains},
            "reward_values": dict(self.reward_values),
            "arms": self.arms if self.arms_kind == "custom" else self.arms_kind,
            "manipulable": None,  # non_manipulable implies it
            "order": self.stated_order,
            "edge_prior": plain_prior(self.edge_prior),
            "prior": plain_prior(self.prior) if self.states_prior else None,
            "costs": dict(self.costs),
        }
        names = signature(Problem).parameters
        options = {name: plain[name] if name in plain else getattr(self, name) for name in names}
        return rebuild_problem, (options,)


def rebuild_problem(options: dict[str, Any]) -> Problem:
    """Rebuild a problem from its options without warnings: for pickle, copies and journals."""
    problem = Problem.__new__(Problem)
    problem._is_rebuilt = True
    problem.__init__(**options)  # type: ignore[misc]
    return problem
