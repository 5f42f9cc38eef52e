"""Slow twin of the evidence against a graph, by its definitions, and random problems."""

import itertools
import json
from collections import Counter, defaultdict
from math import log

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from dowise import CausalGraph, Problem

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
    """Balanced betting on one alternative, from names, sets and definitions (EVIDENCE.md, 1.2)."""

    def __init__(self, problem, alternative):
        self.problem, self.edge = problem, alternative.edge
        self.is_reversal = type(alternative).__name__ == "Reversal"
        possible = problem.possible
        edges = [] if self.is_reversal else [str(self.edge)]
        self.graphs = possible, possible.with_edges(edges)
        sizes = dict(zip(problem.graph.variables, alternative.before, strict=True))
        self.order = sorted(sizes, key=lambda name: sizes[name].bit_count())
        self.useful = self.graphs[1].ancestors([problem.reward, *problem.context])
        ends = {self.edge.left, self.edge.right} if self.edge.is_bidirected else {self.edge.right}
        self.judged = [
            name
            for name in self.order
            if name in self.useful
            and name not in problem.context
            and ends <= self.component(1, name, set())
        ]
        if self.is_reversal:
            self.judged = [self.edge.right]

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

    def tables(self, name, cut):
        """Return (component, scope) of the factor of a variable without the edge and with it."""
        sides = [self.component(side, name, cut) for side in range(2)]
        tables = [(t, self.scope(side, t, name)) for side, t in enumerate(sides)]
        if self.is_reversal and self.edge.left in cut:
            tables[1] = tables[1][0], (self.edge.left, *tables[1][1])
        return tables

    def features(self, name, cut):
        (_, small), (component, large) = self.tables(name, cut)
        extra = sorted({*large} - {*small})
        if self.is_reversal:
            return [(u,) for u in extra] or [("not set",)]
        if not self.edge.is_bidirected:
            return [(u,) for u in extra]
        ends = tuple(u for u in (self.edge.left, self.edge.right) if u != name and u in small)
        return [(u, *ends) for u in extra] + [(component, *ends)]

    def log_e_value(self, records, sets, scale=0.5, damp=3.0, judged_from=0):
        """Return log E after all records, which are told whole.

        `sets` are the sets of variables that may be set.
        """
        logs, names = np.zeros(2), self.problem.domains
        cuts = [{*map(str, cut)} for cut in sets]
        for name in self.judged:
            size = len(names[name])
            rows = sum(
                int(np.prod([len(names[u]) for u in scope]))
                for _, scope in {self.tables(name, cut)[0] for cut in cuts if name not in cut}
            )
            bets = Bets(size, min(0.1, 0.5 / max(rows * (size - 1), 1)), scale, damp)
            for number, record in enumerate(records):
                cut, values = {*record.arm}, record.labels
                if number == judged_from > 0:
                    bets.restart()
                if name not in cut:
                    (small, narrow), (large, wide) = self.tables(name, cut)
                    if {*wide, name} <= {*values}:
                        bets.add(
                            (small, *(values[u] for u in narrow)),
                            (large, *(values[u] for u in wide)),
                            [
                                (feature, *(values.get(u) for u in feature))
                                for feature in self.features(name, cut)
                            ],
                            names[name].index(values[name]),
                        )
            logs += bets.logs()
        return logsumexp(logs) - log(2)

    def is_informative(self, sets):
        cells = defaultdict(set)
        for name in self.judged:
            for cut in ({*map(str, cut)} for cut in sets):
                if name not in cut:
                    (small, narrow), (large, wide) = self.tables(name, cut)
                    cells[name, small].add(large)
                    cells[name, small].update(["a row each"] * (narrow != wide))
        return any(len(tables) > 1 for tables in cells.values())


class Bets:
    """Balanced betting on one variable, with dictionaries."""

    def __init__(self, size, epsilon, scale, damp):
        self.size, self.epsilon, self.prior, self.damp = size, epsilon, 1 / scale**2, damp
        self.sticks = defaultdict(lambda: np.zeros((2, 3)))  # W, B, C of both bettors
        self.counts, self.trained = defaultdict(lambda: np.zeros(2)), defaultdict(float)
        self.base, self.overall = defaultdict(float), defaultdict(lambda: np.zeros(2))
        self.seen = defaultdict(Counter)  # strata by feature
        self.shifts = defaultdict(lambda: [[0.0, 0.0], [0.0, 0.0]])  # shift and precision

    def restart(self):
        for key, counts in self.counts.items():
            self.trained[key] = self.trained[key] + counts
        self.sticks.clear(), self.counts.clear(), self.base.clear()

    def add(self, stratum, cell, features, outcome):
        here = sum(self.counts[stratum, 0]) + np.sum(self.trained[stratum, 0])
        everything = sum(self.overall[0])
        for j in range(min(outcome + 1, self.size - 1)):
            one, key = float(outcome == j), (stratum, j)
            n1, n0 = self.counts[key] + self.trained[key]
            rate = (self.overall[j][0] + 0.5) / (sum(self.overall[j]) + 1)
            p0 = min(max((n1 + 4 * rate) / (n1 + n0 + 4), 1e-4), 1 - 1e-4)
            caution = (n1 + n0 + 0.01) / (n1 + n0 + 0.01 + self.damp)
            for bettor in range(2):
                mean = sum(
                    self.shifts[feature, j][bettor][0]
                    * (times[stratum] + 4 * times.total() / everything)
                    / (here + 4)
                    for feature, times in self.seen.items()
                )
                parts = [(feature, j) for feature in features]
                parts += [("cell", cell, j)] * bettor
                x = sum(self.shifts[part][bettor][0] for part in parts) - mean
                stick = self.sticks[key][bettor]
                h = min(max(caution * x - stick[1] / np.sqrt(1 + n1 + n0), -4.0), 4.0)
                q = 1 / (1 + (1 - p0) / p0 * np.exp(-h))
                g = (q - p0) / (p0 * (1 - p0))
                stick += np.log(q / p0 if one else (1 - q) / (1 - p0)), g, p0 * g
                q = 1 / (1 + (1 - p0) / p0 * np.exp(-x))
                for part in parts:
                    shift = self.shifts[part][bettor]
                    shift[1] += q * (1 - q)
                    shift[0] += (one - q) / (self.prior + shift[1])
            self.base[key] += np.log(p0 if one else 1 - p0)
            self.counts[key] = self.counts[key] + (one, 1 - one)
            self.overall[j] += one, 1 - one
        for feature in features:
            self.seen[feature][stratum] += 1

    def logs(self):
        """Return the logarithms of both bettors' products."""
        return np.array(
            [sum(self.infimum(key, bettor) for key in self.sticks) for bettor in range(2)]
        )

    def infimum(self, key, bettor):
        """Minimise the bracket over p, in the logit."""
        (w, b, c), (n1, n0) = self.sticks[key][bettor], self.counts[key]

        def bracket(z):
            p = 1 / (1 + np.exp(-z))
            first = np.log(1 - self.epsilon) + w + c - p * b
            second = np.log(self.epsilon) + self.base[key] - n1 * np.log(p) - n0 * np.log1p(-p)
            return np.logaddexp(first, second)

        grid = np.linspace(-20.7, 20.7, 200)
        near = grid[np.argmin([bracket(z) for z in grid])]
        bounds = max(near - 0.3, -20.7), min(near + 0.3, 20.7)
        return minimize_scalar(
            bracket, bounds=bounds, method="bounded", options={"xatol": 1e-8}
        ).fun


def evidence_of(belief):
    """Return all that a belief stores and reports about the graph, for comparisons."""
    data = belief.as_dict()
    return json.dumps([data["records"], data["evidence"]]), belief.evidence().as_dict()


def table_of(problem, records):
    columns = {"arm": [str(record.arm) for record in records]}
    return columns | {
        name: [record.labels.get(name) for record in records] for name in problem.graph
    }
