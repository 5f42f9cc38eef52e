"""Worlds with true CPTs: contexts, outcomes of arms, means and regrets.

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
from numpy.typing import ArrayLike

from dowise._core.kernels import lazy_kernels
from dowise._core.rng import Random, generator
from dowise._core.types import FloatArray, IntArray
from dowise.environments.cpts import validate_cpts, validate_graph
from dowise.environments.hidden_context import ContextReversal, context_reversal, flat_entries
from dowise.errors import DowiseError, type_name
from dowise.graph import CausalGraph
from dowise.graph.formats.bif import Network, write_bif
from dowise.model import Codes
from dowise.model.sampler import Mechanism
from dowise.problem import Intervention, Problem
from dowise.problem.problem import ArmLike, Context

Tables = Mapping[str, FloatArray]

_kernels = lazy_kernels("dowise.model.kernels")

_MAX_CACHED_CONTEXTS = 4096


class Environment:
    """A problem with true CPTs, which policies do not know.

    Parameters
    ----------
    problem : Problem
    cpts : mapping of str to array
        `cpts[v]` has one axis for each of `graph.parents(v)`, in that order, and a last one for
        `v`. Its rows sum to 1; zeros and ones are allowed.
    graph : CausalGraph, optional
        DAG over observed and hidden variables; the problem's graph by default. Variables that are
        not in `problem.graph` are hidden: outcomes do not show them, and with them projected out
        the graph must equal the problem's, bidirected edges included. Doubtful edges of the
        problem may be present or absent.

    Raises
    ------
    DowiseError
        If an argument has the wrong type ("invalid-type"), the graph does not match the problem
        ("wrong-problem", "unknown-variable", "bidirected-edge"), or a table is missing
        ("missing-value"), has the wrong shape ("invalid-shape") or rows that are not probabilities
        ("invalid-number").

    Examples
    --------
    >>> from dowise import CausalGraph, Problem
    >>> problem = Problem(CausalGraph.parse("X -> Y"), reward="Y")
    >>> Environment(problem, {"X": [0.5, 0.5], "Y": [[0.9, 0.1], [0.2, 0.8]]}).best_arm()
    Intervention({'X': '1'})
    """

    def __init__(
        self,
        problem: Problem,
        cpts: Mapping[str, ArrayLike],
        graph: CausalGraph | None = None,
    ) -> None:
        if not isinstance(problem, Problem):
            raise DowiseError(
                f"a world needs a Problem, not {type_name(problem)}", code="invalid-type"
            )
        graph = validate_graph(problem, problem.drawn if graph is None else graph)
        tables = validate_cpts(problem, graph, cpts)
        hidden = {name: tables[name].shape[-1] for name in graph if name not in problem.graph}
        reversal = context_reversal(problem, graph, hidden)
        flat, whole = _flat_and_whole({v: table[None] for v, table in tables.items()}, reversal)
        self._set(problem, graph, reversal, flat, whole)

    @classmethod
    def from_tables(
        cls, problem: Problem, graph: CausalGraph, tables: Tables, reversal: ContextReversal
    ) -> list[Environment]:
        """Create worlds from valid tables.

        Parameters
        ----------
        problem : Problem
            Problem of all worlds.
        graph : CausalGraph
            DAG over observed and hidden variables.
        tables : mapping of str to numpy.ndarray
            CPTs whose first axis has the worlds; they are not validated.
        reversal : ContextReversal
            Reversal of hidden causes of the context, from `context_reversal`.

        Returns
        -------
        list of Environment
            One world for each entry of the first axis.

        Examples
        --------
        >>> import numpy as np
        >>> from dowise import make_environment
        >>> from dowise.environments.hidden_context import context_reversal
        >>> world = make_environment("task1", seed=0)
        >>> tables = {name: np.array([table, table]) for name, table in world.cpts.items()}
        >>> reversal = context_reversal(world.problem, world.graph, {})
        >>> len(Environment.from_tables(world.problem, world.graph, tables, reversal))
        2
        """
        flat, whole = _flat_and_whole(tables, reversal)
        worlds = [cls.__new__(cls) for _ in flat]
        for i, world in enumerate(worlds):
            world._set(problem, graph, reversal, flat[i : i + 1], whole[i : i + 1])
        return worlds

    def _set(
        self,
        problem: Problem,
        graph: CausalGraph,
        reversal: ContextReversal,
        flat: FloatArray,
        whole: FloatArray,
    ) -> None:
        """Set the attributes; `flat` and `whole` have one row, the entries of this world."""
        self.problem = problem
        self.graph = graph
        """DAG of all variables, hidden ones included."""
        self.hidden = reversal.hidden
        """Variables that outcomes do not show, sorted by name."""
        self._reversal = reversal
        self._flat: FloatArray = flat[0]
        self._whole: FloatArray = whole[0]
        self._reversed = reversal.reversed._replace(entries=flat)
        self._entries_by_context: dict[Codes, FloatArray | None] = {}
        self._means: dict[Codes, FloatArray] = {}

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
        """Create the world of a Bayesian network.

        Parameters
        ----------
        path : str or Path
            A .bif file, or the name of a built-in network such as "asia", which has default roles.
        reward : str, optional
            Required for a file.
        context, non_manipulable, reward_values, arms, minimise
            As for `Problem`.
        hidden : str or iterable of str
            Variables that are left out of the problem, whose graph is the latent projection.

        Returns
        -------
        Environment

        Raises
        ------
        DowiseError
            If there is no such network ("unknown-problem") or no reward ("missing-value").

        Examples
        --------
        >>> Environment.from_bif("asia").problem.name
        'asia'
        """
        from dowise.environments.networks import read_world

        problem, cpts, graph = read_world(
            path, reward, context, non_manipulable, reward_values, hidden, arms, minimise
        )
        return cls(problem, cpts, graph)

    @property
    def network(self) -> Network:
        """Bayesian network of the world; hidden variables without labels have 0, 1, …."""
        labels = {**self.problem.hidden_domains, **self.problem.domains}
        sizes = {name: self._cpts[name].shape[-1] for name in self.graph}
        domains = {
            name: labels.get(name) or tuple(map(str, range(sizes[name]))) for name in self.graph
        }
        return Network(self.graph, domains, self.cpts)

    def to_bif(self, path: str | Path) -> None:
        """Write the network to a BIF file, which `from_bif` reads back to the last bit.

        Parameters
        ----------
        path : str or Path
            The file.

        Raises
        ------
        DowiseError
            If the file can't be written.

        Examples
        --------
        >>> import tempfile
        >>> from dowise import make_environment
        >>> world = make_environment("task1", seed=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     world.to_bif(f"{folder}/world.bif")
        ...     copied = Environment.from_bif(f"{folder}/world.bif", reward="Y")
        >>> bool((copied.cpts["Y"] == world.cpts["Y"]).all())
        True
        """
        write_bif(self.network, path)

    @property
    def cpts(self) -> dict[str, FloatArray]:
        """Copies of the true CPTs, hidden variables included."""
        return {name: table.copy() for name, table in self._cpts.items()}

    @cached_property
    def _cpts(self) -> Tables:
        return {name: self._reversal.whole.view(self._whole, name) for name in self.graph}

    def draw_context(self, rng: Random) -> dict[str, str]:
        """Draw a context.

        Parameters
        ----------
        rng : int or numpy.random.Generator
            Seed or source of random numbers.

        Returns
        -------
        dict of str to str
            Label of each context variable; empty if the problem has none.

        Raises
        ------
        DowiseError
            If `rng` is neither a seed nor a generator.

        Examples
        --------
        >>> from dowise import make_environment
        >>> world = make_environment("task2", seed=0)
        >>> world.draw_context(rng=0)
        {'C': '1'}
        """
        uniforms = generator(rng).random((1, len(self.graph)))
        (codes,) = self._contexts(uniforms)
        return self.problem.context_labels(codes.tolist())

    def draw_contexts(self, rounds: int, rng: Random) -> IntArray:
        """Draw the contexts of several calls of `draw_context`, as indices of labels.

        Parameters
        ----------
        rounds : int
            Number of contexts.
        rng : int or numpy.random.Generator
            Seed or source of random numbers.

        Returns
        -------
        numpy.ndarray
            Indices: (rounds, context variables).

        Raises
        ------
        DowiseError
            If `rng` is neither a seed nor a generator.

        Examples
        --------
        >>> from dowise import make_environment
        >>> world = make_environment("task2", seed=0)
        >>> world.draw_contexts(3, rng=2).tolist()
        [[0], [1], [1]]
        """
        return self._contexts(generator(rng).random((rounds, len(self.graph))))

    def _contexts(self, uniforms: FloatArray) -> IntArray:
        contexts = np.empty((len(uniforms), len(self.problem.context)), dtype=np.int64)
        _kernels.sample_contexts(self._forward, uniforms, contexts)
        return contexts

    @cached_property
    def _forward(self) -> Mechanism:
        return self._reversal.forward._replace(entries=self._whole[None])

    def play(self, arm: ArmLike, context: Context, rng: Random) -> dict[str, str]:
        """Draw the outcome of an arm in a context.

        Plays are independent: hidden causes of the context are drawn from their posterior given the
        context, all other variables forward.

        Parameters
        ----------
        arm : Intervention, mapping or str
            The intervention, such as "do(X=1)".
        context : mapping, optional
            Values of all context variables; None if the problem has none.
        rng : int or numpy.random.Generator
            Seed or source of random numbers.

        Returns
        -------
        dict of str to str
            Label of every observed variable.

        Raises
        ------
        DowiseError
            If the arm or the context is invalid, the context can't occur ("invalid-context"), or
            `rng` is neither a seed nor a generator.

        Examples
        --------
        >>> from dowise import make_environment
        >>> world = make_environment("task1", seed=0)
        >>> world.play("do(X=1)", None, rng=0)
        {'X': '1', 'Y': '0', 'Z': '0'}
        """
        played = self.problem.intervention(arm)
        codes = self.problem.context_codes(context)
        drawn = self._reversal.model.problem.fixed(played).copy()
        drawn[self._reversed.context] = codes
        uniforms = generator(rng).random(len(drawn))
        world, entries = self._reversed, self._entries_in(codes)
        _kernels.sample_record(
            entries, drawn, world.order, world.starts, world.strides, world.sizes, uniforms
        )
        domains = self.problem.domains.items()
        labels = zip(domains, drawn[self._reversed.observed].tolist(), strict=True)
        return {name: domain[code] for (name, domain), code in labels}

    def means(self, context: Context = None) -> FloatArray:
        """Return μ(a, c), the exact mean E[Y | do(a), C = c] of every arm, net of cost.

        Parameters
        ----------
        context : mapping, optional
            Values of all context variables; None if the problem has none.

        Returns
        -------
        numpy.ndarray
            Mean of each arm, in the user's units.

        Raises
        ------
        DowiseError
            If the context is invalid or can't occur ("invalid-context").

        Examples
        --------
        >>> from dowise import make_environment
        >>> world = make_environment("task1", seed=0)
        >>> world.means().round(3).tolist()
        [0.701, 0.741, 0.661]
        """
        codes = self.problem.context_codes(context)
        if codes not in self._means:
            if len(self._means) == _MAX_CACHED_CONTEXTS:
                self._means.clear()
            shares = self._reversal.model.distributions(self._entries_in(codes), codes)
            payoff = self.problem.payoff
            self._means[codes] = payoff.net(shares @ payoff.values)
        return self._means[codes].copy()

    def means_in(self, contexts: Sequence[Codes]) -> FloatArray:
        """Return the means in several contexts.

        Parameters
        ----------
        contexts : sequence of tuple of int
            Contexts as indices of labels, in the order of `problem.context`; at least one.

        Returns
        -------
        numpy.ndarray
            Means as in `means`: (contexts, arms).

        Raises
        ------
        DowiseError
            If one of the contexts can't occur ("invalid-context").

        Examples
        --------
        >>> from dowise import make_environment
        >>> world = make_environment("task2", seed=0)
        >>> world.means_in([(0,), (1,)]).round(3).tolist()
        [[0.236, 0.226, 0.227, 0.253], [0.249, 0.25, 0.227, 0.253]]
        """
        return means_in_worlds([self], [contexts])

    def best_arm(self, context: Context = None) -> Intervention:
        """Return Π*(c), the best arm in a context; ties go to the first arm.

        Parameters
        ----------
        context : mapping, optional
            Values of all context variables; None if the problem has none.

        Returns
        -------
        Intervention
            The arm with the best mean, net of cost.

        Raises
        ------
        DowiseError
            If the context is invalid or can't occur ("invalid-context").

        Examples
        --------
        >>> from dowise import make_environment
        >>> world = make_environment("task1", seed=0)
        >>> world.best_arm()
        Intervention({'X': '0'})
        """
        return self.problem.arms[self.problem.payoff.best_of(self.means(context))]

    def optimal_map(self) -> OptimalMap:
        """Return Π*, the mapping from every context to its best arm.

        Returns
        -------
        OptimalMap
            Best arm by the tuple of the context's labels, computed on access.

        Examples
        --------
        >>> from dowise import make_environment
        >>> world = make_environment("task2", seed=0)
        >>> world.optimal_map()[("1",)]
        Intervention({'X2': '1'})
        """
        return OptimalMap(self)

    def regret(self, arm: ArmLike, context: Context = None) -> float:
        """Return the distance of μ(a, c) from the best μ*(c), net of cost; never negative.

        Parameters
        ----------
        arm : Intervention, mapping or str
            One of the arms of the problem, such as "do(X=1)".
        context : mapping, optional
            Values of all context variables; None if the problem has none.

        Returns
        -------
        float
            Regret of the arm in the user's units.

        Raises
        ------
        DowiseError
            If the arm is not one of the problem's, or the context is invalid or can't occur
            ("invalid-context").

        Examples
        --------
        >>> from dowise import make_environment
        >>> world = make_environment("task1", seed=0)
        >>> round(world.regret("do(X=1)"), 3), world.regret("do(X=0)")
        (0.079, 0.0)
        """
        regrets = self.problem.payoff.regrets(self.means(context))
        return float(regrets[self.problem.arm_index(arm)])

    def __repr__(self) -> str:
        return f"<Environment of {self.problem!r}>"

    def mechanism(self, contexts: Iterable[Codes]) -> Mechanism:
        """Return the arrays from which compiled loops draw outcomes in these contexts.

        Parameters
        ----------
        contexts : iterable of tuple of int
            Contexts as indices of labels, in the order of `problem.context`.

        Returns
        -------
        Mechanism
            Its tables have one row per context if hidden variables are causes of the context,
            otherwise one row for all contexts.

        Raises
        ------
        DowiseError
            If one of the contexts can't occur ("invalid-context").

        Examples
        --------
        >>> from dowise import make_environment
        >>> world = make_environment("task2", seed=0)
        >>> world.mechanism([(0,), (1,)]).entries.shape
        (1, 32)
        """
        if not self._reversal.causes:
            return self._reversed
        return self._reversed._replace(entries=np.array([self._entries_in(c) for c in contexts]))

    def can_occur(self, context: Context) -> bool:
        """Return True if rewards in this context are defined.

        They are not defined if the context has hidden causes and probability 0. Without hidden
        causes they are defined even if the probability is 0.

        Parameters
        ----------
        context : mapping or None
            Values of all context variables; None if the problem has none.

        Returns
        -------
        bool
            True if they are defined.

        Raises
        ------
        DowiseError
            If the context does not fit the problem.

        Examples
        --------
        >>> from dowise import make_environment
        >>> world = make_environment("task2", seed=0)
        >>> world.can_occur({"C": 0})
        True
        """
        return self._posterior(self.problem.context_codes(context)) is not None

    def _posterior(self, codes: Codes) -> FloatArray | None:
        """Return the flat CPTs of the reversed DAG in this context; None if it can't occur."""
        if not self._reversal.causes:
            return self._flat
        if codes not in self._entries_by_context:
            if len(self._entries_by_context) == _MAX_CACHED_CONTEXTS:
                self._entries_by_context.clear()
            reversed_cpts = self._reversal.reverse(self._whole, codes)
            flat = None
            if reversed_cpts is not None:
                flat = self._flat.copy()
                for name, table in reversed_cpts.items():
                    self._reversal.model.factors.view(flat, name)[...] = table
            self._entries_by_context[codes] = flat
        return self._entries_by_context[codes]

    def _entries_in(self, codes: Codes) -> FloatArray:
        flat = self._posterior(codes)
        if flat is None:
            labels = self.problem.context_labels(codes)
            shown = ", ".join(f"{v}={label}" for v, label in labels.items())
            raise DowiseError(
                f"the context {shown} has probability 0 in this world, so its outcomes are not "
                "defined: use contexts from draw_context",
                code="invalid-context",
            )
        return flat


def means_in_worlds(
    worlds: Sequence[Environment], contexts: Sequence[Sequence[Codes]]
) -> FloatArray:
    """Return the means of worlds of one problem, each in its contexts, concatenated.

    The shape is (contexts, arms). Worlds with the same graph are evaluated together.
    """
    reversal, payoff = worlds[0]._reversal, worlds[0].problem.payoff
    if any(world._reversal is not reversal for world in worlds):
        pairs = zip(worlds, contexts, strict=True)
        return np.concatenate([world.means_in(codes) for world, codes in pairs])
    entries = [
        world._entries_in(codes)
        for world, world_contexts in zip(worlds, contexts, strict=True)
        for codes in world_contexts
    ]
    shares = reversal.model.distributions_in(entries, [c for x in contexts for c in x])
    return payoff.net(np.concatenate([block @ payoff.values for block in shares]))


def _flat_and_whole(tables: Tables, reversal: ContextReversal) -> tuple[FloatArray, FloatArray]:
    """Return the entries of the reversed and the original DAG: (worlds, entries) each."""
    flat = flat_entries(reversal.model.factors, reversal.unchanged_cpts(tables))
    return flat, flat_entries(reversal.whole, tables) if reversal.causes else flat


class OptimalMap(Mapping[tuple[str, ...], Intervention]):
    """Mapping Π* from every context to its best arm, computed on access.

    A key is the tuple of the context's labels in the order of `problem.context`; without context
    the only key is (). Contexts that a world with hidden variables rules out are absent.

    Parameters
    ----------
    environment : Environment

    Examples
    --------
    >>> from dowise import make_environment
    >>> len(make_environment("task2", seed=0).optimal_map())
    2
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
    """Interface of a world; `check_environment` tests if an object fulfils it.

    Examples
    --------
    >>> from dowise import check_environment, make_environment
    >>> check_environment(make_environment("task1", seed=0), plays=100)
    """

    @property
    def problem(self) -> Problem:
        """Decision problem of the world."""

    def draw_context(self, rng: Random) -> dict[str, str]:
        """Draw a label for each context variable."""

    def play(self, arm: ArmLike, context: Context, rng: Random) -> dict[str, str]:
        """Draw a label for each observed variable; equal seeds give equal outcomes."""

    def means(self, context: Context = None) -> FloatArray:
        """Return the true mean reward of every arm in a context, net of cost."""

    def best_arm(self, context: Context = None) -> Intervention:
        """Return the first arm with the best net mean (the smallest with `minimise`)."""

    def regret(self, arm: ArmLike, context: Context = None) -> float:
        """Return the distance of the arm's mean from the best one; never negative."""


def world_defect(world: object) -> str | None:
    """Describe what an object lacks to be a world; return None if nothing is missing.

    It looks at attributes only; `check_environment` tests the behaviour.
    """
    if isinstance(world, type):
        return f"an instance, {world.__name__}(…), not the class itself"
    if not isinstance(getattr(world, "problem", None), Problem):
        return "an attribute problem that is a Problem"
    missing = (name for name in _METHODS if not callable(getattr(world, name, None)))
    return next((f"a method {name}" for name in missing), None)
