"""Slow twins of factors under hidden causes and of the posterior over doubtful edges."""

from __future__ import annotations

from itertools import chain, combinations, product
from math import log

import numpy as np


def c_component(siblings, v, within):
    """Return the c-component of v: grow a set of names until nothing is added."""
    component = {v}
    while True:
        new = {b for a in component for b in siblings[a] if b in within} - component
        if not new:
            return frozenset(component)
        component |= new


class Graph:
    """Parents and siblings by name, in a given order, without the absent edges."""

    def __init__(self, problem, order, absent=()):
        graph = problem.possible.without(absent)
        self.order, self.names = order, graph.variables
        self.parents = {v: set(graph.parents(v)) for v in graph}
        full = problem.possible
        useful = full.ancestors({problem.reward, *problem.context})
        self.useful = useful
        self.siblings = {
            v: {u for u in graph.siblings(v) if u in useful} if v in useful else set()
            for v in graph
        }

    def component(self, v, cut):
        before = set(self.order[: self.order.index(v) + 1])
        return c_component(self.siblings, v, before - set(cut))

    def scope(self, v, component):
        return tuple(sorted(set(component).union(*(self.parents[u] for u in component)) - {v}))


def order_of(problem):
    from dowise.model import FactorLayout

    factors = FactorLayout(problem)
    return [factors.variables[v] for v in factors.order.variables]


def true_factor(world, sizes, v, component, scope):
    """Return Q[T] / Σ_v Q[T] of a world as a table over (scope, v), by summing over hidden causes.

    Returns two tables, which must be equal: for all other variables at their first and last values.
    """
    hidden = world.hidden
    cpts, dag = world.cpts, world.graph
    tables = []
    for other in (0, -1):
        table = np.zeros([sizes[u] for u in (*scope, v)])
        for values in np.ndindex(*table.shape):
            state = {u: (0 if other == 0 else sizes[u] - 1) for u in world.problem.graph}
            state |= dict(zip((*scope, v), values, strict=True))
            for causes in product(*(range(sizes[u]) for u in hidden)):
                full = state | dict(zip(hidden, causes, strict=True))
                chance = 1.0
                for u in (*component, *hidden):
                    chance *= cpts[u][tuple(full[p] for p in (*dag.parents(u), u))]
                table[values] += chance
        tables.append(table / table.sum(axis=-1, keepdims=True))
    return tables


class SlowMixture:
    """One posterior for each set of doubtful edges, from dictionaries of counts.

    A set has several structures: each district that doubtful hidden causes join is wide or narrow,
    if that makes a difference. A structure is a set with the variables that have narrow tables.
    """

    def __init__(self, problem, prior=1.0):
        self.problem, self.prior = problem, prior
        self.order = order_of(problem)
        edges = list(problem.edge_priors)
        subsets = [
            frozenset(s)
            for s in chain.from_iterable(combinations(edges, k) for k in range(len(edges) + 1))
        ]
        self.full = Graph(problem, self.order)
        self.certain = Graph(problem, self.order, edges)
        self.graphs = {
            s: Graph(problem, self.order, [e for e in edges if e not in s]) for s in subsets
        }
        self.needed = {
            (v, self.full.component(v, cut))
            for cut in ((), *problem.arms)
            for v in self.order
            if v not in cut
        }
        self.log_weight = {}
        for s in subsets:
            prior = sum(log(p if e in s else 1 - p) for e, p in problem.edge_priors.items())
            joined = [d for d in self._districts(s) if self._differs(s, d)]
            for k in range(len(joined) + 1):
                for narrow in combinations(joined, k):
                    structure = s, frozenset().union(*narrow)
                    self.log_weight[structure] = prior - len(joined) * log(2)
        self.counts = {structure: {} for structure in self.log_weight}

    def _districts(self, s):
        """Return the districts of a set of edges that some of its edges hold together."""
        siblings, useful = self.graphs[s].siblings, self.full.useful
        districts = {c_component(siblings, v, useful) for v in useful}
        pairs = [set(e.split(" <-> ")) for e in s if " <-> " in e]
        return sorted((d for d in districts if any(p <= d for p in pairs)), key=sorted)

    def _differs(self, s, district):
        """Return True if some table of the district is narrower with narrow tables."""
        return self.problem.edge_rules > 1 and any(
            self.scope((s, frozenset()), v, component) != self.scope((s, district), v, component)
            for v, component in self.needed
            if v in district and v not in self.problem.context
        )

    def scope(self, structure, v, component):
        """Return the scope of v, whose component in the full graph is given."""
        s, narrow = structure
        joined = c_component(self.graphs[s].siblings, v, component)
        core = c_component(self.certain.siblings, v, component) if v in narrow else joined
        parents = self.graphs[s].parents
        return joined, tuple(sorted(joined.union(*(parents[u] for u in core)) - {v}))

    def _row(self, structure, v, cut, values):
        joined, scope = self.scope(structure, v, self.full.component(v, cut))
        key = v, joined, tuple(values[u] for u in scope)
        size = len(self.problem.domains[v])
        return self.counts[structure].setdefault(key, [self.prior] * size)

    def learn(self, record):
        labels, cut = record.labels, set(record.arm)
        codes = {v: self.problem.domains[v].index(x) for v, x in labels.items()}
        for v in self.full.useful - cut:
            component = self.full.component(v, cut)
            scope = self.full.scope(v, component)
            if (v, component) not in self.needed or not {*scope, v} <= {*codes}:
                continue
            for structure in self.log_weight:
                row = self._row(structure, v, cut, codes)
                if v not in self.problem.context:
                    self.log_weight[structure] += log(row[codes[v]] / sum(row))
                row[codes[v]] += 1

    def weights(self):
        logs = np.array([*self.log_weight.values()])
        weights = np.exp(logs - logs.max())
        return dict(zip(self.log_weight, weights / weights.sum(), strict=True))

    def edges(self):
        weights = self.weights()
        return {
            e: sum(w for (s, _), w in weights.items() if e in s) for e in self.problem.edge_priors
        }

    def mean_distributions(self, context):
        problem = self.problem
        means = np.zeros((len(problem.arms), len(problem.domains[problem.reward])))
        fixed = {v: problem.domains[v].index(str(x)) for v, x in (context or {}).items()}
        for structure, weight in self.weights().items():
            for a, arm in enumerate(problem.arms):
                settings = fixed | {v: problem.domains[v].index(x) for v, x in arm.items()}
                free = [v for v in self.order if v in self.full.useful and v not in settings]
                for values in product(*(range(len(problem.domains[v])) for v in free)):
                    state = settings | dict(zip(free, values, strict=True))
                    state |= {v: 0 for v in problem.graph if v not in state}
                    chance = weight
                    for v in free:
                        row = self._row(structure, v, set(arm), state)
                        chance *= row[state[v]] / sum(row)
                    means[a, state[problem.reward]] += chance
        return means
