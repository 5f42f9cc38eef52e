"""Arc reversal for worlds whose context has hidden causes.

Outcomes are sampled forward and means come from the reward circuit; both need a context that is
closed under ancestors and fixed before anything else is drawn. A hidden cause of the context breaks
that, because the context is evidence about it, so its arcs are reversed. With the context fixed at
c, variable elimination over its hidden causes U₁, U₂, … factorises

    P(u₁, u₂, … | c) = Π P(uᵢ | the later ones in its elimination scope, c),

which is a Bayesian network over them with one set of CPTs for each c: a circuit over the entries of
the world's CPTs. The *reversed* graph has these families instead of the original ones and no edge
from a hidden cause into the context, which is then closed under ancestors, so that the reward
circuit and the sampler apply unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod

import numpy as np

from dowise._core.kernels import lazy_kernels
from dowise._core.types import FloatArray
from dowise.errors import DowiseError
from dowise.graph import CausalGraph
from dowise.model import Codes, FactorLayout, model_of
from dowise.model.circuit import ONE, Builder
from dowise.model.elimination import Algebra, AxisTable, Elimination, elimination
from dowise.model.sampler import Mechanism
from dowise.problem import Problem

_kernels = lazy_kernels("dowise.model.kernels")
_IMPOSSIBLE = np.zeros(1)  # value of a quotient by 0, which is never used


def flat_entries(factors: FactorLayout, cpts: Mapping[str, FloatArray]) -> FloatArray:
    """Return all CPTs of each world in one array; variables without a CPT have uniform rows.

    The first axis of every CPT, and of the result, has the worlds.
    """
    (worlds,) = {len(table) for table in cpts.values()}
    flat = np.repeat(factors.uniform[None], worlds, axis=0)
    for name, table in cpts.items():
        factors.view(flat, name)[...] = table
    return flat


class ContextReversal:
    """DAG of a world, its reversed DAG, and the conversion of CPTs between them."""

    def __init__(self, problem: Problem, graph: CausalGraph, sizes: Mapping[str, int]) -> None:
        hidden = [name for name in graph if name not in problem.graph]
        domains = {**problem.domains, **{name: range(sizes[name]) for name in hidden}}
        whole = Problem(graph, problem.reward, domains=domains, arms=["do()"])
        self.hidden = tuple(hidden)
        """Variables that outcomes do not show."""
        self.whole = FactorLayout(whole)
        """Factors of the original DAG."""
        self._context = problem.context
        self._upstream = sorted(whole.positions[x] for x in graph.ancestors(problem.context))
        plan = self._elimination()
        families = self._reversed_families(plan)
        self.causes = tuple(families)
        """Hidden causes of the context, in the order of their elimination."""
        reversed_problem = problem
        if hidden or problem.edge_priors:  # then its factors are not CPTs of this DAG
            reversed_problem = Problem(
                _with_families(graph, families, problem.context),
                problem.reward,
                problem.context,
                (*problem.non_manipulable, *hidden),
                domains,
                problem.reward_values,
                problem.arms,
                len(problem.arms),
            )
        self.model = model_of(reversed_problem)
        """Model of the reversed DAG, in which the context is closed under ancestors."""
        self.model.check_distributions()
        self.reversed = self._mechanism(problem, self.model.factors)
        """Mechanism of the reversed DAG, without numbers."""
        self.forward = self._mechanism(problem, self.whole)
        """Mechanism of the original DAG, without numbers."""
        if self.causes:
            self._build(plan)

    def unchanged_cpts(self, cpts: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
        """Return the CPTs that both DAGs share in every context."""
        changed = {*self.causes} | ({*self._context} if self.causes else set())
        return {name: table for name, table in cpts.items() if name not in changed}

    def reverse(self, entries: FloatArray, codes: Codes) -> dict[str, FloatArray] | None:
        """Return the CPTs of the hidden causes in the reversed DAG; None if P(c) = 0.

        `entries` are those of the original DAG.
        """
        circuit = self._circuit
        values = np.empty((circuit.slots, 1))
        values[: len(circuit.constants), 0] = circuit.constants
        shift = self._strides[circuit.blocks] @ np.array(codes, dtype=np.int64)
        values[circuit.block_slots, 0] = entries[self._inputs[circuit.blocks] + shift]
        _kernels.run_circuit(values, 1, circuit.operations, _IMPOSSIBLE)
        results = values[circuit.results, 0]
        if not (results[: self._leftover] > 0).all():
            return None
        sizes = [self._leftover, *(prod(shape) for shape in self._shapes)]
        _, *tables = np.split(results, np.cumsum(sizes)[:-1])
        return {
            name: table.reshape(shape)
            for name, table, shape in zip(self.causes, tables, self._shapes, strict=True)
        }

    def _mechanism(self, problem: Problem, factors: FactorLayout) -> Mechanism:
        order = factors.graph.topological_order()
        return Mechanism(
            entries=np.empty((0, factors.entries)),
            order=np.array([factors.positions[name] for name in order]),
            starts=factors.starts,
            strides=factors.strides,
            sizes=factors.sizes,
            context=np.array([factors.positions[x] for x in problem.context], dtype=np.int64),
            fixed=np.array([self.model.problem.fixed(arm) for arm in problem.arms]),
            observed=np.array([factors.positions[name] for name in problem.graph]),
        )

    def _elimination(self) -> Elimination:
        """Plan the elimination of the hidden causes with the context fixed."""
        context = {self.whole.positions[name] for name in self._context}
        scopes = [frozenset(self.whole.families[v]) - context for v in self._upstream]
        causes = [v for v in self._upstream if v not in context]
        return elimination(scopes, causes, self.whole.sizes.tolist())

    def _reversed_families(self, plan: Elimination) -> dict[str, tuple[str, ...]]:
        """Return the parents of each hidden cause of the context in the reversed DAG."""
        names = self.whole.variables
        return {
            names[step.variable]: tuple(names[v] for v in sorted(step.scope - {step.variable}))
            for step in plan.steps
        }

    def _build(self, plan: Elimination) -> None:
        """Build a circuit from the entries to the conditionals of the hidden causes.

        Inputs are the entries with every context variable at its first value; a context shifts
        their positions. Messages matter only up to a factor: each is divided by its sum, so that
        long products do not underflow.
        """
        whole, builder = self.whole, Builder()
        algebra = Algebra(builder, whole.sizes.tolist())
        context = np.array([whole.positions[x] for x in self._context], dtype=np.int64)
        tables, positions, strides = [], [], []
        for v in self._upstream:
            family, shape = whole.families[v], whole.shapes[v]
            index = tuple(0 if u in context else slice(None) for u in family)
            entries = whole.starts[v] + np.arange(prod(shape)).reshape(shape)[index]
            inputs = builder.input_blocks(np.ones(entries.size, dtype=np.int64))
            values = inputs.reshape(entries.shape)
            tables.append(AxisTable.of([u for u in family if u not in context], values))
            positions.append(entries.ravel())
            strides.append(np.tile(whole.strides[v, context], (entries.size, 1)))
        conditionals = []
        for step in plan.steps:
            bucket = [table for table in tables if step.variable in table.axes]
            tables = [table for table in tables if step.variable not in table.axes]
            joint, total = algebra.product(bucket), algebra.summed(step.variable, bucket)
            conditional = algebra.quotient(joint, total)
            axis = conditional.axes.index(step.variable)
            conditionals.append(np.moveaxis(conditional.values, axis, -1))
            everything = builder.sums(
                total.values.reshape(1, -1), np.full((1, total.values.size), ONE)
            )
            tables.append(algebra.quotient(total, AxisTable((), everything[0])))
        probabilities = [int(table.values) for table in tables]
        self._leftover, self._shapes = len(probabilities), [x.shape for x in conditionals]
        self._inputs, self._strides = np.concatenate(positions), np.concatenate(strides)
        results = [np.array(probabilities, dtype=np.int64), *(x.ravel() for x in conditionals)]
        self._circuit = builder.finish(np.concatenate(results))


def _with_families(
    graph: CausalGraph, families: Mapping[str, tuple[str, ...]], context: tuple[str, ...]
) -> CausalGraph:
    """Return the DAG with these families instead of its own; only context causes context."""
    edges = [
        (parent, name)
        for name in graph
        for parent in families.get(name, graph.parents(name))
        if name not in context or parent in context
    ]
    return CausalGraph(edges, variables=graph.variables)


@lru_cache(maxsize=16)
def _cached_reversal(
    problem: Problem, graph: CausalGraph, sizes: tuple[tuple[str, int], ...]
) -> ContextReversal:
    return ContextReversal(problem, graph, dict(sizes))


def context_reversal(
    problem: Problem, graph: CausalGraph, sizes: Mapping[str, int]
) -> ContextReversal:
    """Return the reversal for worlds of a problem on this DAG, which has no doubtful edges.

    `sizes` has the numbers of values of the hidden variables.
    """
    try:
        return _cached_reversal(problem, graph, tuple(sorted(sizes.items())))
    except DowiseError as error:
        hidden = [name for name in graph if name not in problem.graph]
        if hidden:
            error.args = (f"the world with {', '.join(hidden)} hidden: {error}",)
        raise
