"""A world with true CPTs: it shows contexts, plays arms, and knows what each of them costs.

>>> from dowise import CausalGraph, Problem
>>> problem = Problem(CausalGraph.parse("X -> Y; X <-> Y"), reward="Y")
>>> world = Environment(
...     problem,
...     {"U": [0.5, 0.5], "X": [[1, 0], [0, 1]], "Y": [[[0.9, 0.1], [0.6, 0.4]], [[0, 1], [1, 0]]]},
...     graph=CausalGraph.parse("U -> X -> Y; U -> Y"),  # U is not in the problem: it is hidden
... )
>>> world.means().tolist()
[0.05, 0.55, 0.2]
>>> world.play("do(X=0)", None, rng=0), world.best_arm()
({'X': '0', 'Y': '1'}, Intervention({'X': '0'}))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dowise._core.kernels import lazy_kernels
from dowise._core.rng import Random, generator
from dowise.environments.cpts import validate_cpts, validate_graph
from dowise.environments.hidden_context import ContextReversal, context_reversal, flat_entries
from dowise.errors import DowiseError, type_name
from dowise.graph import CausalGraph
from dowise.graph.formats.bif import Network, write_bif
from dowise.model import Codes
from dowise.model.sampler import Mechanism
from dowise.problem import Intervention, Problem
from dowise.problem.problem import ArmLike, Context

Tables = Mapping[str, NDArray[np.float64]]

_kernels = lazy_kernels("dowise.model.kernels")

_MAX_CONTEXTS = 4096  # whose turned CPTs are kept


class Environment:
    """A problem whose CPTs are known to the world, though not to the one who decides.

    `cpts[v]` has one axis for each of `graph.parents(v)`, in that order, and a last one for `v`;
    its rows sum to 1, and zeros and ones are welcome. `graph` is the problem's own as drawn unless
    given: a DAG over observed and hidden variables. Those that are not in `problem.graph` are
    hidden: they take as many values as the last axis of their CPT is long, no outcome shows them,
    and once they are projected out the problem's graph must be what is left, bidirected edges
    included. Edges that the problem calls doubtful may be there or not.
    """

    def __init__(
        self,
        problem: Problem,
        cpts: Mapping[str, ArrayLike],
        graph: CausalGraph | None = None,
    ) -> None:
        if not isinstance(problem, Problem):
            raise DowiseError(f"a world needs a Problem, not {type_name(problem)}")
        if not isinstance(cpts, Mapping):
            raise DowiseError(f"cpts must map each variable to its table, not be {cpts!r}")
        graph = validate_graph(problem, problem.drawn if graph is None else graph)
        tables = validate_cpts(problem, graph, cpts)
        hidden = {name: tables[name].shape[-1] for name in graph if name not in problem.graph}
        reversal = context_reversal(problem, graph, hidden)
        flat, whole = _flat_and_whole({v: table[None] for v, table in tables.items()}, reversal)
        self._begin(problem, graph, reversal, flat, whole)

    @classmethod
    def from_tables(
        cls, problem: Problem, graph: CausalGraph, tables: Tables, reversal: ContextReversal
    ) -> list[Environment]:
        """Worlds of tables that were drawn to fit: they need no check.

        The first axis of every table are the worlds.
        """
        flat, whole = _flat_and_whole(tables, reversal)
        worlds = [cls.__new__(cls) for _ in flat]
        for i, world in enumerate(worlds):
            world._begin(problem, graph, reversal, flat[i : i + 1], whole[i : i + 1])
        return worlds

    def _begin(
        self,
        problem: Problem,
        graph: CausalGraph,
        reversal: ContextReversal,
        flat: NDArray[np.float64],
        whole: NDArray[np.float64],
    ) -> None:
        """`flat` and `whole` have the entries of one world, in their one row."""
        self.problem = problem
        self.graph = graph
        """The DAG of all variables, the hidden ones included."""
        self.hidden = reversal.hidden
        """The variables that no outcome shows, sorted by name."""
        self._reversal = reversal
        self._flat: NDArray[np.float64] = flat[0]
        self._whole: NDArray[np.float64] = whole[0]
        self._turned = reversal.turned._replace(entries=flat)
        self._given: dict[Codes, NDArray[np.float64] | None] = {}
        self._means: dict[Codes, NDArray[np.float64]] = {}

    @classmethod
    def from_bif(
        cls,
        path: str | Path,
        reward: str | None = None,
        context: str | Iterable[str] | None = None,
        non_manipulable: str | Iterable[str] | None = None,
        reward_values: Mapping[str, float] | None = None,
        hidden: str | Iterable[str] = (),
        arms: str | Iterable[ArmLike] = "pomis",
        minimise: bool | None = None,
    ) -> Environment:
        """The world of a Bayesian network: a .bif file, or a built-in one such as "asia".

        A file needs at least a `reward`; with `minimise` smaller is better. A built-in network has
        roles of its own; each that is given here takes the place of its own. `hidden` variables of
        the network stay out of the problem, whose graph is the latent projection.
        """
        from dowise.environments.networks import read_world

        roles = (reward, context, non_manipulable, reward_values, hidden, arms, minimise)
        return cls(*read_world(path, *roles))

    @property
    def network(self) -> Network:
        """The world as a Bayesian network; hidden variables without labels have 0, 1, …."""
        labels = {**self.problem.hidden_domains, **self.problem.domains}
        positions = {name: range(self._cpts[name].shape[-1]) for name in self.hidden}
        unnamed = {name: tuple(map(str, places)) for name, places in positions.items()}
        domains = {name: labels.get(name) or unnamed[name] for name in self.graph}
        return Network(self.graph, domains, self.cpts)

    def to_bif(self, path: str | Path) -> None:
        """Write the network to a BIF file, which `from_bif` reads back to the last bit."""
        write_bif(self.network, path)

    @property
    def cpts(self) -> dict[str, NDArray[np.float64]]:
        """The true CPTs, those of the hidden variables included, as copies."""
        return {name: table.copy() for name, table in self._cpts.items()}

    @cached_property
    def _cpts(self) -> Tables:
        return {name: self._reversal.whole.view(self._whole, name) for name in self.graph}

    def draw_context(self, rng: Random) -> dict[str, str]:
        """What is seen before the choice; empty where the problem has no context."""
        uniforms = generator(rng).random((1, len(self.graph)))
        (codes,) = self._contexts(uniforms)
        return self.problem.context_labels(codes.tolist())

    def draw_contexts(self, rounds: int, rng: Random) -> NDArray[np.int64]:
        """The contexts that so many calls of `draw_context` show, as positions of labels.

        An array (rounds, context variables).
        """
        return self._contexts(generator(rng).random((rounds, len(self.graph))))

    def _contexts(self, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        contexts = np.empty((len(uniforms), len(self.problem.context)), dtype=np.int64)
        _kernels.sample_contexts(self._forwards, uniforms, contexts)
        return contexts

    @cached_property
    def _forwards(self) -> Mechanism:
        return self._reversal.forwards._replace(entries=self._whole[None])

    def play(self, arm: ArmLike, context: Context, rng: Random) -> dict[str, str]:
        """Everything that is seen after an intervention in this context, what it set included.

        Each play stands alone: hidden causes of the context are drawn from their posterior given
        the context, all else forwards.
        """
        played = self.problem.intervention(arm)
        codes = self.problem.context_codes(context)
        drawn = self._reversal.model.problem.fixed(played).copy()
        drawn[self._turned.context] = codes
        uniforms = generator(rng).random(len(drawn))
        world, entries = self._turned, self._flat_given(codes)
        _kernels.sample_record(
            entries, drawn, world.order, world.starts, world.strides, world.sizes, uniforms
        )
        domains = self.problem.domains.items()
        labels = zip(domains, drawn[self._turned.observed].tolist(), strict=True)
        return {name: domain[code] for (name, domain), code in labels}

    def means(self, context: Context = None) -> NDArray[np.float64]:
        """μ(a, c): the true mean of every arm, E[Y | do(a), C = c] net of cost, exact.

        In the user's units.
        """
        codes = self.problem.context_codes(context)
        if codes not in self._means:
            if len(self._means) == _MAX_CONTEXTS:
                self._means.clear()
            shares = self._reversal.model.distributions(self._flat_given(codes), codes)
            payoff = self.problem.payoff
            self._means[codes] = payoff.net(shares @ payoff.values)
        return self._means[codes].copy()

    def means_in(self, contexts: Sequence[Codes]) -> NDArray[np.float64]:
        """The same in several contexts, given by positions of labels: (contexts, arms)."""
        return means_in_worlds([self], [contexts])

    def best_arm(self, context: Context = None) -> Intervention:
        """Π*(c); ties go to the first arm."""
        return self.problem.arms[self.problem.payoff.best_of(self.means(context))]

    def optimal_map(self) -> OptimalMap:
        """Π*: from every context to its best arm; see `OptimalMap`."""
        return OptimalMap(self)

    def regret(self, arm: ArmLike, context: Context = None) -> float:
        """How far μ(a, c), net, is from the best μ*(c), under the true CPTs; never negative."""
        regrets = self.problem.payoff.regrets(self.means(context))
        return float(regrets[self.problem.arm_index(arm)])

    def __repr__(self) -> str:
        return f"<Environment of {self.problem!r}>"

    def mechanism(self, contexts: Iterable[Codes]) -> Mechanism:
        """What compiled loops need to play in these contexts."""
        if not self._reversal.causes:
            return self._turned
        return self._turned._replace(entries=np.array([self._flat_given(c) for c in contexts]))

    def can_occur(self, context: Context) -> bool:
        """Whether rewards in this context are defined.

        They are not where a hidden cause of the context would have to take a value that it can't.
        Without such causes rewards in a context of probability 0 are defined all the same.
        """
        return self._posterior(self.problem.context_codes(context)) is not None

    def _posterior(self, codes: Codes) -> NDArray[np.float64] | None:
        """The CPTs of the turned DAG under this context, flat; None where it can't occur."""
        if not self._reversal.causes:
            return self._flat
        if codes not in self._given:
            if len(self._given) == _MAX_CONTEXTS:
                self._given.clear()
            turned = self._reversal.turn(self._whole, codes)
            flat = None
            if turned is not None:
                flat = self._flat.copy()
                for name, table in turned.items():
                    self._reversal.model.factors.view(flat, name)[...] = table
            self._given[codes] = flat
        return self._given[codes]

    def _flat_given(self, codes: Codes) -> NDArray[np.float64]:
        flat = self._posterior(codes)
        if flat is None:
            labels = self.problem.context_labels(codes)
            shown = ", ".join(f"{v}={label}" for v, label in labels.items())
            raise DowiseError(
                f"the context {shown} has probability 0 in this world, so what would follow is "
                "not defined: take contexts from draw_context"
            )
        return flat


def means_in_worlds(
    worlds: Sequence[Environment], contexts: Sequence[Sequence[Codes]]
) -> NDArray[np.float64]:
    """What `means_in` gives for each of these worlds of one problem, in contexts of its own.

    One behind the other, (contexts, arms); all at once, where the worlds have one graph.
    """
    reversal, payoff = worlds[0]._reversal, worlds[0].problem.payoff
    if any(world._reversal is not reversal for world in worlds):
        found = [world.means_in(own) for world, own in zip(worlds, contexts, strict=True)]
        return np.concatenate(found)
    pairs = [(world, codes) for world, own in zip(worlds, contexts, strict=True) for codes in own]
    entries = [world._flat_given(codes) for world, codes in pairs]
    parts = reversal.model.distributions_in(entries, [codes for _, codes in pairs])
    return payoff.net(np.concatenate([part @ payoff.values for part in parts]))


def _flat_and_whole(
    tables: Tables, reversal: ContextReversal
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The entries of the turned DAG and of the DAG as it is: (worlds, entries) each."""
    flat = flat_entries(reversal.model.factors, reversal.unturned(tables))
    return flat, flat_entries(reversal.whole, tables) if reversal.causes else flat


class OptimalMap(Mapping[tuple[str, ...], Intervention]):
    """Π*: the best arm of every context, worked out when it is asked for.

    A key is the tuple of the context's labels, in the order of `problem.context`; without context
    the only key is (). Contexts that a world with hidden variables rules out are left out.
    """

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        problem = environment.problem
        self._domains = [problem.domains[name] for name in problem.context]

    def __getitem__(self, labels: tuple[str, ...]) -> Intervention:
        try:
            context = dict(zip(self._environment.problem.context, labels, strict=True))
            if self._environment.can_occur(context):
                return self._environment.best_arm(context)
        except (TypeError, ValueError, DowiseError):
            pass
        raise KeyError(labels)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        for labels in product(*self._domains):
            context = dict(zip(self._environment.problem.context, labels, strict=True))
            if self._environment.can_occur(context):
                yield labels

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<OptimalMap of {', '.join(self._environment.problem.context) or 'no context'}>"


_METHODS = ("draw_context", "play", "means", "best_arm", "regret")


class World(Protocol):
    """The promises that `check_environment` holds a world to."""

    @property
    def problem(self) -> Problem:
        """What is to be decided in it."""

    def draw_context(self, rng: Random) -> dict[str, str]:
        """A label for each context variable."""

    def play(self, arm: ArmLike, context: Context, rng: Random) -> dict[str, str]:
        """A label for each observed variable; the same for the same seed, whatever came before."""

    def means(self, context: Context = None) -> NDArray[np.float64]:
        """The true mean reward of every arm in this context, net: `problem.payoff.net(gross)`."""

    def best_arm(self, context: Context = None) -> Intervention:
        """The first arm with the best net mean: the largest, or the smallest with `minimise`."""

    def regret(self, arm: ArmLike, context: Context = None) -> float:
        """How far the arm's mean is from the best one; never negative."""


def world_defect(world: object) -> str | None:
    """What keeps something from being a world at first sight, in words; None where nothing does.

    Whether it keeps its promises only `check_environment` can say.
    """
    if isinstance(world, type):
        return f"to be made first: {world.__name__}(…), not the class itself"
    if not isinstance(getattr(world, "problem", None), Problem):
        return "a Problem as its attribute problem"
    missing = (name for name in _METHODS if not callable(getattr(world, name, None)))
    return next((f"a method {name}" for name in missing), None)
