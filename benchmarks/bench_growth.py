"""How the cost of drawing rewards grows: with draws, with arms and rows, with treewidth.

    make bench

Prints one line for each size. Families: `task3` for the draws; k manipulable parents of Y beside
one that can't be set, 2^k arms, for arms and rows; w variables between X and Y, which must be
summed out together, for treewidth; a chain for the mere number of variables.
"""

from __future__ import annotations

import random
from contextlib import suppress
from itertools import pairwise
from time import perf_counter

import pytest

from dowise import Belief, CausalGraph, DowiseError, Problem, load_problem


def fork(k):
    """X1 … Xk -> Y <- Z: one intervention set of k variables."""
    graph = CausalGraph([*((f"X{i:02}", "Y") for i in range(k)), ("Z", "Y")])
    return Problem(graph, "Y", non_manipulable="Z")


def bundle(w):
    """X -> H1 … Hw -> Y: treewidth w + 1."""
    hidden = [f"H{i:02}" for i in range(w)]
    graph = CausalGraph([*(("X", h) for h in hidden), *((h, "Y") for h in hidden)])
    return Problem(graph, "Y", non_manipulable=hidden)


def chain(length):
    """X -> H1 -> … -> Y: treewidth 1 whatever the length."""
    names = ["X", *(f"H{i:03}" for i in range(length)), "Y"]
    graph = CausalGraph(pairwise(names))
    return Problem(graph, "Y", non_manipulable=names[1:-1])


CASES = [
    *(
        ("draws", f"task3, N = {n:,}", lambda: load_problem("task3"), n)
        for n in (1, 100, 1000, 10_000, 100_000)
    ),
    *(("arms", f"{2**k} arms", lambda k=k: fork(k), 1000) for k in (2, 4, 6, 8, 10)),
    *(("treewidth", f"treewidth {w + 1}", lambda w=w: bundle(w), 1000) for w in range(2, 13, 2)),
    *(("length", f"{n + 2} variables in a row", lambda n=n: chain(n), 1000) for n in (8, 32, 128)),
]


@pytest.mark.parametrize(("group", "what", "make", "draws"), CASES, ids=[c[1] for c in CASES])
def test_growth(benchmark, group, what, make, draws):
    start = perf_counter()
    belief = Belief(make())
    build = perf_counter() - start
    context = dict.fromkeys(belief.problem.context, 1)
    benchmark.group = f"growth: {group}"
    benchmark.pedantic(
        belief.draw_rewards, (context, draws, 0), rounds=15, warmup_rounds=2, iterations=1
    )
    circuit = belief.posterior.model.circuit
    time = benchmark.stats.stats.min if benchmark.stats else float("nan")
    print(
        f"\n{group}: {what}: {1e3 * time:.3f} ms; {len(belief.problem.arms)} arms, "
        f"{len(circuit.blocks)} rows, {circuit.multiplications} multiplications a draw, "
        f"built in {1e3 * build:.1f} ms"
    )


def chordal(seed, size=15, density=0.2):
    """A random problem of the paper's hardest kind: chordal, 15 % of it out of reach."""
    draw = random.Random(seed)
    names = [f"V{i:02}" for i in range(size)]
    parents = {0: set()}
    for n in range(1, size):
        count = max(1, sum(draw.random() < density for _ in range(n)))
        parents[n] = set(draw.sample(range(n), count))
    for n in reversed(range(size)):  # marry the parents, last vertex first
        for a in parents[n]:
            parents[a] |= {b for b in parents[n] if b < a}
    graph = CausalGraph(
        ((names[p], names[n]) for n in parents for p in parents[n]), variables=names
    )
    return Problem(graph, names[-1], non_manipulable=draw.sample(names[:-1], 2))


def test_building_problems_of_15_variables(benchmark):
    problems = []
    for seed in range(40):
        with suppress(DowiseError):
            problems.append(chordal(seed))

    def build():
        times = []
        for problem in problems:
            start = perf_counter()
            Belief(problem)
            times.append(perf_counter() - start)
        return times

    times = sorted(benchmark.pedantic(build, rounds=1, warmup_rounds=1))
    arms = sorted(len(problem.arms) for problem in problems)
    print(
        f"\nbuilding {len(times)} chordal problems of 15 variables ({arms[0]} to {arms[-1]} arms): "
        f"median {1e3 * times[len(times) // 2]:.1f} ms, longest {1e3 * times[-1]:.1f} ms"
    )
