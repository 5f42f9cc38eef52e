"""Evidence against the graph by its definitions, slowly, and random problems to judge."""

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
    """Up to five variables, some edges hidden or doubtful, some variables of three values."""
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
    """Fair dice under any interventions; the context may be missing as well."""
    found = []
    for number in range(count):
        arm = {
            n: str(rng.choice(problem.domains[n]))
            for n in problem.manipulable
            if rng.random() < 0.3
        }
        seen = {n: str(rng.choice(d)) for n, d in problem.domains.items() if n not in arm}
        seen = {n: x for n, x in seen.items() if rng.random() >= missing}
        found.append(problem.record(arm, seen, number))
    return found


class Twin:
    """One alternative, from names, sets and gamma functions."""

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
        found, waiting = set(), [name]
        while waiting:
            here = waiting.pop()
            found.add(here)
            for pair in self.graphs[side].bidirected_edges:
                if here in pair:
                    waiting += {*pair} & within & self.useful - found
        return frozenset(found)

    def scope(self, side, component, name):
        parents = {u for v in component for u in self.graphs[side].parents(v)}
        return tuple(sorted((parents | component) - {name}))

    def logs(self, records):
        """The Bayes factor, the e-value, the strict one, and how many values were compared."""
        tables = [defaultdict(lambda: defaultdict(Counter)) for _ in range(2)]
        scored = 0
        for record in records:
            cut, seen = {*record.arm}, record.labels
            for name in self.judged:
                if name in cut:
                    continue
                sides = [self.component(side, name, cut) for side in range(2)]
                scopes = [self.scope(side, t, name) for side, t in enumerate(sides)]
                if not {*scopes[1], name} <= {*seen}:
                    continue
                scored += 1
                for side in range(2):
                    row = tuple(seen[u] for u in scopes[side])
                    tables[side][name, sides[side]][row][seen[name]] += 1
        plain, mixed, most = zip(*(self.evidence(tables[side]) for side in range(2)), strict=True)
        return plain[1] - plain[0], mixed[1] - mixed[0], mixed[1] - most[0], scored

    def evidence(self, tables):
        plain = mixed = most = 0.0
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
            most += xlogy(counts, counts).sum() - xlogy(totals, totals).sum()
        return plain, mixed, most


def told(belief):
    page = belief.as_dict()
    return json.dumps([page["records"], page["evidence"]]), belief.evidence().as_dict()


def key_of(belief, record):
    return belief.problem.graph.mask(record.arm), record.codes.tobytes()


def table(problem, records):
    columns = {"arm": [str(record.arm) for record in records]}
    return columns | {
        name: [record.labels.get(name) for record in records] for name in problem.graph
    }
