"""What the worlds of a problem have in common, whatever their CPTs: built once, then shared.

A world plays in a context that is given. Without hidden variables that is easy: the context is
closed under ancestors, so whatever is not context is drawn forwards. A hidden cause of the context
spoils it, because the context tells something about it. So it is turned round. With the context
fixed at c, variable elimination over its hidden causes U₁, U₂, … writes

    P(u₁, u₂, … | c) = Π P(uᵢ | those among the later ones that it still hangs together with, c),

which is a Bayesian network over them, with one set of CPTs for each c. The *turned* graph has these
families in place of the old ones and no edge from a hidden cause into the context, which is thereby
closed under ancestors again: the reward program and the sampler serve for it as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from dowise.belief.elimination import elimination_order
from dowise.belief.rewards import rewards_of
from dowise.belief.tables import Tables
from dowise.errors import DowiseError
from dowise.graph import CausalGraph
from dowise.problem import Problem

__all__ = ["Layout", "Stage", "layout_of"]

Array = NDArray[np.float64]


class Stage:
    """A DAG that is ready to be sampled: where its CPT entries stand, causes before effects."""

    def __init__(self, problem: Problem, tables: Tables) -> None:
        self.tables = tables
        self.order = np.array([tables.number[name] for name in problem.graph.topological_order()])

    def flat(self, cpts: Mapping[str, Array]) -> Array:
        """All CPTs in one array; rows of variables that have none are left uniform."""
        flat = np.concatenate([np.full(prod(s), 1 / s[-1]) for s in self.tables.shapes])
        for name, table in cpts.items():
            self.tables.view(flat, name)[...] = table
        return flat


class Layout:
    """The world's DAG, the turned DAG, and the reward program on the latter."""

    def __init__(self, problem: Problem, graph: CausalGraph, sizes: Mapping[str, int]) -> None:
        hidden = [name for name in graph if name not in problem.graph]
        domains = {**problem.domains, **{name: range(sizes[name]) for name in hidden}}
        whole = Problem(graph, problem.reward, domains=domains, arms=["do()"])
        self._context = problem.context
        self._upstream = sorted(graph.ancestors(problem.context))
        self._tables = Tables(whole)
        families = self._turned_families()
        self.causes = tuple(families)
        """The hidden causes of the context, in the order of their elimination."""
        turned = problem
        if hidden:
            turned = Problem(
                _with_families(graph, families, problem.context), problem.reward, problem.context,
                (*problem.non_manipulable, *hidden), domains, problem.reward_values, problem.arms,
                len(problem.arms),
            )  # fmt: skip
        self.rewards = rewards_of(turned)
        self.turned = Stage(turned, self.rewards.tables)
        """The DAG in which the context is closed under ancestors."""
        self.whole = Stage(whole, self._tables) if self.causes else self.turned
        """The DAG as it is."""
        self.observed = np.array([self._tables.number[name] for name in problem.graph])

    def unturned(self, cpts: Mapping[str, Array]) -> dict[str, Array]:
        """The CPTs that the turned DAG has in common with the DAG as it is, in every context."""
        changed = {*self.causes} | ({*self._context} if self.causes else set())
        return {name: table for name, table in cpts.items() if name not in changed}

    def turn(self, cpts: Mapping[str, Array], codes: tuple[int, ...]) -> dict[str, Array] | None:
        """The CPTs of the hidden causes of the context in the turned DAG; None if P(c) = 0."""
        tables = self._tables
        fixed = {tables.number[name]: code for name, code in zip(self._context, codes, strict=True)}
        factors: list[tuple[tuple[int, ...], Array]] = []
        for name in self._upstream:
            family = tables.families[tables.number[name]]
            table = cpts[name][tuple(fixed.get(v, slice(None)) for v in family)]
            free = [v for v in family if v not in fixed]
            order = np.argsort(free)
            factors.append((tuple(free[i] for i in order), table.transpose(order)))
        turned: dict[str, Array] = {}
        for name in self.causes:
            cause = tables.number[name]
            bucket = [factor for factor in factors if cause in factor[0]]
            factors = [factor for factor in factors if cause not in factor[0]]
            joined = sorted({v for axes, _ in bucket for v in axes})
            product = np.ones(())
            for axes, table in bucket:
                shape = [int(tables.sizes[v]) if v in axes else 1 for v in joined]
                product = product * table.reshape(shape)
            product = np.moveaxis(product, joined.index(cause), -1)
            total = product.sum(axis=-1)
            if not total.any():
                return None
            # Where the others' values are impossible the row is never used.
            possible = np.broadcast_to(total[..., np.newaxis] > 0, product.shape)
            turned[name] = np.divide(
                product, total[..., np.newaxis], out=np.zeros(product.shape), where=possible
            )
            # Only proportions matter from here on: the scale keeps long products from vanishing.
            factors.append((tuple(v for v in joined if v != cause), total / total.max()))
        return turned if all(table > 0 for _, table in factors) else None

    def _turned_families(self) -> dict[str, tuple[str, ...]]:
        """For each hidden cause of the context its parents in the turned DAG."""
        tables = self._tables
        causes = {tables.number[name] for name in self._upstream if name not in self._context}
        scopes = [
            causes.intersection(tables.families[tables.number[name]]) for name in self._upstream
        ]
        order, _ = elimination_order(map(frozenset, scopes), sorted(causes), tables.sizes.tolist())
        families: dict[str, tuple[str, ...]] = {}
        for cause in order:
            joined = {v for scope in scopes if cause in scope for v in scope} - {cause}
            scopes = [scope for scope in scopes if cause not in scope] + [joined]
            families[tables.variables[cause]] = tuple(tables.variables[v] for v in sorted(joined))
        return families


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
def _shared(problem: Problem, graph: CausalGraph, sizes: tuple[tuple[str, int], ...]) -> Layout:
    return Layout(problem, graph, dict(sizes))


def layout_of(problem: Problem, graph: CausalGraph, sizes: Mapping[str, int]) -> Layout:
    """The layout of a problem's worlds on this DAG; `sizes` has those of the hidden variables."""
    try:
        return _shared(problem, graph, tuple(sorted(sizes.items())))
    except DowiseError as error:
        hidden = [name for name in graph if name not in problem.graph]
        if hidden:
            error.args = (f"the world with {', '.join(hidden)} hidden: {error}",)
        raise
