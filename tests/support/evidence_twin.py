"""Slow twin of the evidence against a graph, by its definitions, and random problems."""

import itertools
import json
from collections import Counter, defaultdict
from math import log

import numpy as np
from scipy.special import gammaln, logsumexp, xlogy

from dowise import CausalGraph, Problem

LEVELS = (0.3, 1.0, 4.0, 16.0, 64.0)
CHAIN = Problem(CausalGraph.parse("X -> Y; Z"), "Y", non_manipulable="Z")


def random_problem(rng):
    """Draw a problem of up to five variables, some with hidden causes or three values."""
    names = [f"V{i}" for i in rng.permutation(int(rng.integers(3, 6)))]
    pairs = list(itertools.combinations(names, 2))
    arrows = [pair for pair in pairs if rng.random() < 0.5]
    ties = [pair for pair in pairs if rng.random() < 0.2]
    graph = CausalGraph(arrows, ties, names)
    reward = names[-1]
    context = graph.ancestors(names[0]) if rng.random() < 0.5 else ()
    if reward in context:
        context = ()
    fixed = {n for n in names if n not in (*context, reward) and rng.random() < 0.3}
    domains = {n: ["a", "b", "c"][: int(rng.integers(2, 4))] for n in names}
    return Problem(graph, reward, context, fixed, domains)


def random_records(problem, rng, count, missing=0.15):
    """Draw uniform values under any interventions; the context may be missing as well."""
    records = []
    for number in range(count):
        arm = {
            n: str(rng.choice(problem.domains[n]))
            for n in problem.manipulable
            if rng.random() < 0.3
        }
        outcome = {n: str(rng.choice(d)) for n, d in problem.domains.items() if n not in arm}
        outcome = {n: x for n, x in outcome.items() if rng.random() >= missing}
        records.append(problem.record(arm, outcome, number))
    return records


class Twin:
    """Evidence for one alternative, from names, sets and gamma functions."""

    def __init__(self, problem, alternative):
        self.problem, edge = problem, alternative.edge
        self.graphs = problem.possible, problem.possible.with_edges([str(edge)])
        sizes = dict(zip(problem.graph.variables, alternative.before, strict=True))
        self.order = sorted(sizes, key=lambda name: sizes[name].bit_count())
        self.useful = self.graphs[1].ancestors([problem.reward, *problem.context])
        ends = {edge.left, edge.right} if edge.is_bidirected else {edge.right}
        self.judged = [
            name
            for name in self.order
            if name in self.useful
            and name not in problem.context
            and ends <= self.component(1, name, set())
        ]

    def component(self, side, name, cut):
        within = {*self.order[: self.order.index(name) + 1]} - cut
        component, waiting = set(), [name]
        while waiting:
            member = waiting.pop()
            component.add(member)
            for pair in self.graphs[side].bidirected_edges:
                if member in pair:
                    waiting += {*pair} & within & self.useful - component
        return frozenset(component)

    def scope(self, side, component, name):
        parents = {u for v in component for u in self.graphs[side].parents(v)}
        return tuple(sorted((parents | component) - {name}))

    def logs(self, records):
        """Return the logs of the Bayes factor, the e-value and the strict e-value, and `scored`."""
        tables = [defaultdict(lambda: defaultdict(Counter)) for _ in range(2)]
        scored = 0
        for record in records:
            cut, values = {*record.arm}, record.labels
            for name in self.judged:
                if name in cut:
                    continue
                sides = [self.component(side, name, cut) for side in range(2)]
                scopes = [self.scope(side, t, name) for side, t in enumerate(sides)]
                if not {*scopes[1], name} <= {*values}:
                    continue
                scored += 1
                for side in range(2):
                    row = tuple(values[u] for u in scopes[side])
                    tables[side][name, sides[side]][row][values[name]] += 1
        plain, mixed, top = zip(*(self.evidence(tables[side]) for side in range(2)), strict=True)
        return plain[1] - plain[0], mixed[1] - mixed[0], mixed[1] - top[0], scored

    def evidence(self, tables):
        """Return the log evidence of tables, plain and mixed, and their largest log likelihood."""
        plain = mixed = top = 0.0
        for (name, _), rows in tables.items():
            counts = np.array(
                [[row[x] for x in self.problem.domains[name]] for row in rows.values()]
            )
            size, totals = counts.shape[1], counts.sum(axis=1)
            logs = [
                (gammaln(a + counts) - gammaln(a)).sum()
                + (gammaln(size * a) - gammaln(size * a + totals)).sum()
                for a in LEVELS
            ]
            plain += logs[1]
            mixed += logsumexp(logs) - log(len(LEVELS))
            top += xlogy(counts, counts).sum() - xlogy(totals, totals).sum()
        return plain, mixed, top


def evidence_of(belief):
    """Return all that a belief stores and reports about the graph, for comparisons."""
    data = belief.as_dict()
    return json.dumps([data["records"], data["evidence"]]), belief.evidence().as_dict()


def table_of(problem, records):
    columns = {"arm": [str(record.arm) for record in records]}
    return columns | {
        name: [record.labels.get(name) for record in records] for name in problem.graph
    }
