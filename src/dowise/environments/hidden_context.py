"""Worlds whose context has hidden causes, turned round so that the context comes first.

Outcomes are sampled forwards and means come from the reward circuit; both want a context that is
closed under ancestors, fixed before anything else is drawn. A hidden cause of the context spoils
that, because the context tells something about it. So it is turned round. With the context fixed at
c, variable elimination over its hidden causes U₁, U₂, … writes

    P(u₁, u₂, … | c) = Π P(uᵢ | those among the later ones that it still hangs together with, c),

which is a Bayesian network over them, with one set of CPTs for each c: a circuit over the entries
of the world's CPTs. The *turned* graph has these families in place of the old ones and no edge from
a hidden cause into the context, which is thereby closed under ancestors again: the reward circuit
and the sampler serve for it as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from dowise._core.kernels import lazy_kernels
from dowise.errors import DowiseError
from dowise.graph import CausalGraph
from dowise.model import Codes, FactorLayout, model_of
from dowise.model.circuit import ONE, Builder
from dowise.model.elimination import Algebra, AxisTable, Elimination, elimination
from dowise.model.sampler import Mechanism
from dowise.problem import Problem

Array = NDArray[np.float64]

_kernels = lazy_kernels("dowise.model.kernels")
_NONE = np.zeros(1)  # a quotient by 0 belongs to what can't happen: it is 0, and never used


def flat_entries(factors: FactorLayout, cpts: Mapping[str, Array]) -> Array:
    """All CPTs of each world in one array; rows of variables that have none are left uniform.

    The first axis of every CPT, and of what is returned, are the worlds.
    """
    (worlds,) = {len(table) for table in cpts.values()}
    flat = np.repeat(factors.uniform[None], worlds, axis=0)
    for name, table in cpts.items():
        factors.view(flat, name)[...] = table
    return flat


class ContextReversal:
    """The world's DAG, the turned DAG, and how CPTs of the one become CPTs of the other."""

    def __init__(self, problem: Problem, graph: CausalGraph, sizes: Mapping[str, int]) -> None:
        hidden = [name for name in graph if name not in problem.graph]
        domains = {**problem.domains, **{name: range(sizes[name]) for name in hidden}}
        whole = Problem(graph, problem.reward, domains=domains, arms=["do()"])
        self.hidden = tuple(hidden)
        """The variables that no outcome shows."""
        self.whole = FactorLayout(whole)
        """The factors of the DAG as it is."""
        self._context = problem.context
        self._upstream = sorted(whole.positions[x] for x in graph.ancestors(problem.context))
        plan = self._elimination()
        families = self._turned_families(plan)
        self.causes = tuple(families)
        """The hidden causes of the context, in the order of their elimination."""
        turned = problem
        if hidden or problem.edge_priors:  # then its factors are no CPTs of this DAG
            turned = Problem(
                _with_families(graph, families, problem.context), problem.reward, problem.context,
                (*problem.non_manipulable, *hidden), domains, problem.reward_values, problem.arms,
                len(problem.arms),
            )  # fmt: skip
        self.model = model_of(turned)
        """Of the DAG in which the context is closed under ancestors."""
        self.model.check_distributions()
        self.turned = self._mechanism(problem, self.model.factors)
        """How the turned DAG is sampled, but for the numbers."""
        self.forwards = self._mechanism(problem, self.whole)
        """How the DAG as it is is sampled, but for the numbers."""
        if self.causes:
            self._build(plan)

    def unturned(self, cpts: Mapping[str, Array]) -> dict[str, Array]:
        """The CPTs that the turned DAG has in common with the DAG as it is, in every context."""
        changed = {*self.causes} | ({*self._context} if self.causes else set())
        return {name: table for name, table in cpts.items() if name not in changed}

    def turn(self, entries: Array, codes: Codes) -> dict[str, Array] | None:
        """The CPTs of the hidden causes of the context in the turned DAG; None if P(c) = 0.

        `entries` are those of the DAG as it is.
        """
        circuit = self._circuit
        values = np.empty((circuit.slots, 1))
        values[: len(circuit.constants), 0] = circuit.constants
        shift = self._strides[circuit.blocks] @ np.array(codes, dtype=np.int64)
        values[circuit.block_slots, 0] = entries[self._inputs[circuit.blocks] + shift]
        _kernels.run_circuit(values, 1, circuit.operations, _NONE)
        found = values[circuit.results, 0]
        chances, rest = found[: self._leftover], found[self._leftover :]
        if not (chances > 0).all():
            return None
        turned: dict[str, Array] = {}
        for name, shape in zip(self.causes, self._shapes, strict=True):
            turned[name], rest = rest[: prod(shape)].reshape(shape), rest[prod(shape) :]
        return turned

    def _mechanism(self, problem: Problem, factors: FactorLayout) -> Mechanism:
        own, order = self.model.problem, factors.graph.topological_order()
        return Mechanism(
            entries=np.empty((0, factors.entries)),
            order=np.array([factors.positions[name] for name in order]),
            starts=factors.starts,
            strides=factors.strides,
            sizes=factors.sizes,
            context=np.array([factors.positions[x] for x in problem.context], dtype=np.int64),
            fixed=np.array([own.fixed(arm) for arm in problem.arms]),
            observed=np.array([factors.positions[name] for name in problem.graph]),
        )

    def _elimination(self) -> Elimination:
        """How the hidden causes of the context are summed out once it is fixed."""
        known = {self.whole.positions[name] for name in self._context}
        scopes = [frozenset(self.whole.families[v]) - known for v in self._upstream]
        causes = [v for v in self._upstream if v not in known]
        return elimination(scopes, causes, self.whole.sizes.tolist())

    def _turned_families(self, plan: Elimination) -> dict[str, tuple[str, ...]]:
        """For each hidden cause of the context its parents in the turned DAG."""
        names = self.whole.variables
        return {
            names[step.variable]: tuple(names[v] for v in sorted(step.scope - {step.variable}))
            for step in plan.steps
        }

    def _build(self, plan: Elimination) -> None:
        """Write the conditionals of the hidden causes as a circuit over the entries.

        Inputs are the entries with every context variable at its first value; a context shifts
        where they are read. Of messages only proportions matter: each is divided by its sum, which
        keeps long products from vanishing.
        """
        whole, builder = self.whole, Builder()
        algebra = Algebra(builder, whole.sizes.tolist())
        context = np.array([whole.positions[x] for x in self._context], dtype=np.int64)
        tables, places, strides = [], [], []
        for v in self._upstream:
            family, shape = whole.families[v], whole.shapes[v]
            index = tuple(0 if u in context else slice(None) for u in family)
            own = whole.starts[v] + np.arange(prod(shape)).reshape(shape)[index]
            values = builder.input_blocks(np.ones(own.size, dtype=np.int64)).reshape(own.shape)
            tables.append(AxisTable.of([u for u in family if u not in context], values))
            places.append(own.ravel())
            strides.append(np.tile(whole.strides[v, context], (own.size, 1)))
        conditionals = []
        for step in plan.steps:
            bucket = [table for table in tables if step.variable in table.axes]
            tables = [table for table in tables if step.variable not in table.axes]
            joint, total = algebra.product(bucket), algebra.summed(step.variable, bucket)
            conditional = algebra.quotient(joint, total)
            place = conditional.axes.index(step.variable)
            conditionals.append(np.moveaxis(conditional.values, place, -1))
            everything = builder.sums(
                total.values.reshape(1, -1), np.full((1, total.values.size), ONE)
            )
            tables.append(algebra.quotient(total, AxisTable((), everything[0])))
        chances = [int(table.values) for table in tables]
        self._leftover, self._shapes = len(chances), [x.shape for x in conditionals]
        self._inputs, self._strides = np.concatenate(places), np.concatenate(strides)
        results = [np.array(chances, dtype=np.int64), *(x.ravel() for x in conditionals)]
        self._circuit = builder.finish(np.concatenate(results))


def _with_families(
    graph: CausalGraph, families: Mapping[str, tuple[str, ...]], context: tuple[str, ...]
) -> CausalGraph:
    """The DAG with these families in place of its own; only context causes context."""
    edges = [
        (parent, name)
        for name in graph
        for parent in families.get(name, graph.parents(name))
        if name not in context or parent in context
    ]
    return CausalGraph(edges, variables=graph.variables)


@lru_cache(maxsize=16)
def _shared(
    problem: Problem, graph: CausalGraph, sizes: tuple[tuple[str, int], ...]
) -> ContextReversal:
    return ContextReversal(problem, graph, dict(sizes))


def context_reversal(
    problem: Problem, graph: CausalGraph, sizes: Mapping[str, int]
) -> ContextReversal:
    """The reversal of a problem's worlds on this DAG, whose edges are all there for certain.

    `sizes` has those of the hidden variables.
    """
    try:
        return _shared(problem, graph, tuple(sorted(sizes.items())))
    except DowiseError as error:
        hidden = [name for name in graph if name not in problem.graph]
        if hidden:
            error.args = (f"the world with {', '.join(hidden)} hidden: {error}",)
        raise
