"""A decision problem: a causal graph, the role of each variable, and the arms worth pulling.

>>> from dowise.graph import CausalGraph
>>> problem = Problem(CausalGraph.parse("Z -> X -> Y; Z -> Y"), reward="Y", non_manipulable="Z")
>>> [str(arm) for arm in problem.arms]
['do()', 'do(X=0)', 'do(X=1)']
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dowise.checks import share, spelled, text_or_none, whole_number
from dowise.errors import DowiseError, DowiseWarning, kind_of
from dowise.graph import CausalGraph
from dowise.problem.arms import arms_asked_for, canonical_order, found_arms
from dowise.problem.checked import CheckedRecords, check_rows, parse_frame
from dowise.problem.choices import ArmLike, Choices, Role
from dowise.problem.costs import Costs, cheaper_way, checked_costs, prices
from dowise.problem.domains import domains_of
from dowise.problem.edges import checked_prior, seen_edges
from dowise.problem.forbidden import checked_forbidden
from dowise.problem.frame import RecordBatch
from dowise.problem.intervention import Intervention
from dowise.problem.payoff import Payoff
from dowise.problem.positions import Context
from dowise.problem.prior import KnownPrior, Prior, known_prior, plain_prior
from dowise.problem.record import Record, parse_outcome
from dowise.problem.roles import roles_of
from dowise.problem.soft import soft_edges, with_soft_edges

__all__ = ["MAX_ARMS", "MAX_PROGRAM", "ArmLike", "Context", "Problem", "Role", "remade"]

MAX_ARMS = 100_000
# Ten times what `insurance` needs, which is built in half a second and takes a twelfth of a second
# for 1000 draws (docs/performance.md); both grow in proportion.
MAX_PROGRAM = 2_000_000
_LARGEST_PROGRAM = 1_000_000_000  # values of a circuit are numbered by 31 bits


class Problem(Choices):
    """Which variable is the reward, which are seen before the choice, which can't be set.

    `graph` is a `CausalGraph`, or a text as `CausalGraph.parse` reads it.

    `arms` is "pomis" (only what can be optimal), "minimal" (every intervention of which no part is
    without effect), "all" (every intervention on manipulable variables) or a list of arms of your
    own. No arm may contain an assignment that is `forbidden`. `costs` says what setting a variable
    costs, or an arm, {"X": 0.1, "do(Z=1)": 0.3}, in the reward's units: then rewards are net of it.
    Where there are forbidden assignments or costs, `arms` is "minimal" unless told, because the
    POMISs no longer suffice. `reward_values` gives each label of the reward its worth; the default
    is its position in the domain, scaled to [0, 1]. Where the reward's domain is not given, the
    labels of `reward_values` are it. With `minimise` smaller is better: the reward is something
    like a cost. A problem never changes.

    `hidden` names variables of the graph that are never recorded: `drawn` is the graph as given,
    `graph` its latent projection, in which bidirected edges that hidden variables make are certain.
    `manipulable` says what can be set, instead of `non_manipulable`. `edge_prior` is how likely
    edges are to be there: a number for every `<->` without a mark (.9 unless told), or numbers by
    the texts of edges. `soft`, say .1, is the prior of every edge that might have been forgotten;
    `possible` is the graph with all of these, and `edge_priors` lists what is not certain in it.
    `prior` is what a `Belief` of the problem begins with: a number, counts by variable, or the path
    of a TOML file of those.
    `max_program` is how many multiplications a draw of all arms' rewards may take.
    """

    drawn: CausalGraph
    """The graph as it was given, hidden variables included."""
    possible: CausalGraph
    """The graph with all soft edges; the same as `graph` where there are none."""
    projected: CausalGraph
    """The manipulable variables and the reward, on which POMISs are found; without soft edges."""
    edge_priors: Mapping[str, float]
    """How likely each edge of `possible` that is not certain is to be there, by its text."""
    intervention_sets: tuple[frozenset[str], ...]
    payoff: Payoff
    """What the values of the reward are worth, and what each arm costs."""
    costs: Costs
    """What variables and arms cost, by their texts; empty where nothing does."""
    prior: KnownPrior
    """What beliefs begin with, and worlds are drawn from, unless told otherwise."""
    _is_remade = False  # from one that was made before, so that a warning would be the second

    @spelled
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
    ) -> None:
        self.name = text_or_none("name", name)
        self.description = text_or_none("description", description)
        self.drawn = graph = _checked_graph(graph)
        roles = roles_of(graph, reward, context, non_manipulable, manipulable, hidden)
        self.reward, self.context = roles.reward, roles.context
        self.non_manipulable, self.hidden = roles.non_manipulable, roles.hidden
        self.edge_prior = checked_prior(edge_prior, graph, self.hidden)
        self.graph, priors = seen_edges(graph, self.hidden, self.edge_prior)
        self.projected = self.projection(self.graph)
        labels = domains_of(graph, self.reward, domains, reward_values)
        self.hidden_domains = MappingProxyType({name: labels.pop(name) for name in self.hidden})
        self.domains = MappingProxyType(labels)
        self.payoff = Payoff.of(self.reward, labels[self.reward], reward_values, minimise)
        self._fixed, check = {}, self._checked_intervention
        self.forbidden = checked_forbidden(forbidden, check)
        self.costs = checked_costs(costs, self, check)
        self.max_arms = whole_number("max_arms", max_arms, 1)
        self.max_program = whole_number("max_program", max_program, 1, _LARGEST_PROGRAM)
        self.arms_kind, own = arms_asked_for(arms, self.forbidden, self.costs, check)
        self.soft = None if soft is None else share("soft", soft, 0.1)
        self.possible, self.edge_priors = self._possible(priors, own)
        self.prior = known_prior(self, prior)
        self.intervention_sets, self.arms = self._arms(own)
        self.payoff = self.payoff.with_costs(prices(self))
        self._warn_of_missed_arms(arms is None)
        self._freeze()

    @cached_property
    def reward_values(self) -> Mapping[str, float]:
        """What each label of the reward is worth, in the user's units."""
        values = self.payoff.values.tolist()
        return MappingProxyType(dict(zip(self.domains[self.reward], values, strict=True)))

    @property
    def minimise(self) -> bool:
        """Whether smaller rewards are better."""
        return self.payoff.minimise

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

    def checked_records(self, frame: Any, arm: ArmLike | None = None) -> CheckedRecords:
        """The good rows of a table of past records, and what is wrong with the bad ones."""
        return check_rows(self, frame, None if arm is None else self.intervention(arm))

    def save(self, path: str | Path) -> None:
        """Write the problem file (TOML) that `load_problem` reads back."""
        from dowise.problem.files import save_problem

        save_problem(self, path)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Problem) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.drawn, self.reward, self.context, self.non_manipulable, self.hidden))

    def __repr__(self) -> str:
        roles = [f"reward={self.reward!r}"]
        roles += ["minimise=True"] if self.minimise else []
        roles += [f"context={self.context!r}"] if self.context else []
        roles += [f"non_manipulable={self.non_manipulable!r}"] if self.non_manipulable else []
        roles += [f"hidden={self.hidden!r}"] if self.hidden else []
        roles += [f"soft={self.soft:g}"] if self.soft is not None else []
        never = ", ".join(map(str, self.forbidden))
        roles += [f"forbidden=[{never}]"] if self.forbidden else []
        priced = ", ".join(f"{text}: {cost:g}" for text, cost in self.costs.items())
        roles += [f"costs={{{priced}}}"] if self.costs else []
        said = "{…}" if isinstance(self.prior, Mapping) else f"{self.prior:g}"
        roles += [f"prior={said}"] if self.prior != 1.0 else []
        name = f"{self.name}: " if self.name else ""
        sizes = f"{len(self.graph)} variables, {', '.join(roles)}, {len(self.arms)} arms"
        return f"<Problem {name}{sizes}>"

    def __reduce__(self) -> tuple[Any, ...]:
        prior = self.edge_prior
        return remade, (
            {
                "graph": self.drawn,
                "reward": self.reward,
                "context": self.context,
                "non_manipulable": self.non_manipulable,
                "domains": {**self.domains, **self.hidden_domains},
                "reward_values": dict(self.reward_values),
                "arms": self.arms if self.arms_kind == "custom" else self.arms_kind,
                "max_arms": self.max_arms,
                "name": self.name,
                "description": self.description,
                "minimise": self.minimise,
                "hidden": self.hidden,
                "edge_prior": dict(prior) if isinstance(prior, Mapping) else prior,
                "soft": self.soft,
                "max_program": self.max_program,
                "forbidden": self.forbidden,
                "prior": plain_prior(self.prior),
                "costs": dict(self.costs),
            },
        )

    def _key(self) -> tuple[Any, ...]:
        roles = self.drawn, self.reward, self.context, self.non_manipulable, self.hidden
        doubts = dict(self.edge_priors), self.soft
        domains = dict(self.domains), dict(self.hidden_domains)
        worth = dict(self.reward_values), self.minimise
        arms = self.forbidden, self.arms, self.payoff.costs.tolist()
        return *roles, *doubts, *domains, *worth, *arms, self.prior, self.max_program

    def projection(self, graph: CausalGraph) -> CausalGraph:
        """What is left of a graph with these variables for choosing where to intervene."""
        return graph.condition(self.context).project(self.non_manipulable)

    def _possible(
        self, priors: dict[str, float], own: list[Intervention] | None
    ) -> tuple[CausalGraph, Mapping[str, float]]:
        """The graph with its soft edges, and the priors of all that is not certain in it."""
        graph = self.graph
        if self.soft is not None:
            settable = self.manipulable if own is None else frozenset().union(*own)
            edges = soft_edges(graph, self.reward, self.context, settable)
            graph, priors = with_soft_edges(graph, priors, self.soft, edges)
        return graph, MappingProxyType(priors)

    def _arms(
        self, own: list[Intervention] | None
    ) -> tuple[tuple[frozenset[str], ...], tuple[Intervention, ...]]:
        if own is not None:
            return canonical_order(own, self.domains, self.max_arms)
        graphs = [self.projected]
        graphs += [self.projection(self.possible)] if self.soft is not None else []
        found = found_arms(
            self.arms_kind, graphs, self.reward, self.domains, self.forbidden, self.max_arms
        )
        if not found[1]:  # only of POMISs: do() is minimal, and never forbidden
            raise DowiseError(
                "all arms that could be optimal are forbidden: leave arms = 'pomis' out, and there "
                "are others"
            )
        return found

    def _warn_of_missed_arms(self, is_default: bool) -> None:
        """Where the best of all permitted interventions need not be an arm, say so."""
        if self._is_remade:
            return
        why = ["forbidden assignments"] * bool(self.forbidden) + ["costs"] * self.payoff.has_costs
        text = ""
        if self.arms_kind == "pomis" and why:
            text = (
                f"with {' and '.join(why)} the best arm need not be one of those that could be "
                "optimal without them: leave arms = 'pomis' out, and it is among the arms"
            )
        elif is_default and (found := cheaper_way(self)) is not None:
            arm, other = found
            text = (
                f"{arm} costs {self.costs.of(arm):g}, but {other}, which does the same, only "
                f"{self.costs.of(other):g}, what its variables cost: arms = 'all' has such arms; "
                "say arms = 'minimal' to do without, or give the variables costs"
            )
        if text:
            warnings.warn(text, DowiseWarning, stacklevel=4)


def _checked_graph(graph: object) -> CausalGraph:
    if isinstance(graph, str):
        return CausalGraph.parse(graph)
    if not isinstance(graph, CausalGraph):
        raise DowiseError(
            f"the graph must be a CausalGraph, not {kind_of(graph)}: "
            "make one with CausalGraph.parse(text) or CausalGraph.from_networkx(graph)"
        )
    return graph


def remade(options: dict[str, Any]) -> Problem:
    """A problem once more, from what it was made of: for pickle, copies and journals.

    What there was to warn of was said before.
    """
    problem = Problem.__new__(Problem)
    problem._is_remade = True
    problem.__init__(**options)  # type: ignore[misc]
    return problem
