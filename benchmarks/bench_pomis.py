"""POMIS enumeration beside causalrl's, on the same 20-node graphs, in one run.

    make bench

Graphs: 20 nodes, average in-degree 2, each pair bidirected with probability 0.1, the reward last in
the order. Twenty seeds, every one included, none chosen. `test_ratio` prints how many times faster
dowise is, per set found and in total; it asserts that both find the same sets, and no time.
"""

from __future__ import annotations

import random
from itertools import combinations
from time import perf_counter

import pytest
from causalrl import CausalGraph as PeerGraph
from causalrl import pomis as peer_pomis

from dowise import CausalGraph

SIZE, IN_DEGREE, CONFOUNDED = 20, 2.0, 0.1
REWARD = f"V{SIZE - 1:02}"


def random_graph(seed: int) -> CausalGraph:
    draw = random.Random(seed)
    names = [f"V{i:02}" for i in range(SIZE)]
    pairs = list(combinations(names, 2))
    chance = 2 * IN_DEGREE / (SIZE - 1)
    directed = [pair for pair in pairs if draw.random() < chance]
    bidirected = [pair for pair in pairs if draw.random() < CONFOUNDED]
    return CausalGraph(directed, bidirected, names)


GRAPHS = [random_graph(seed) for seed in range(20)]
PEERS = [
    PeerGraph(list(g.directed_edges), list(g.bidirected_edges), list(g.variables)) for g in GRAPHS
]


def dowise_all():
    return [list(graph.pomis(REWARD)) for graph in GRAPHS]


def causalrl_all():
    return [peer_pomis(graph, REWARD) for graph in PEERS]


@pytest.mark.benchmark(group="pomis, twenty graphs of 20 nodes")
def test_dowise(benchmark):
    benchmark(dowise_all)


@pytest.mark.benchmark(group="pomis, twenty graphs of 20 nodes")
def test_causalrl(benchmark):
    benchmark.pedantic(causalrl_all, rounds=2)


def test_ratio(benchmark):
    def both():
        start = perf_counter()
        ours = dowise_all()
        middle = perf_counter()
        theirs = causalrl_all()
        end = perf_counter()
        assert ours == theirs
        sets = sum(map(len, ours))
        return sets, middle - start, end - middle

    sets, ours, theirs = benchmark.pedantic(both, rounds=1)
    benchmark.extra_info |= {"sets": sets, "ratio": theirs / ours}
    print(
        f"\npomis: {sets} sets on {len(GRAPHS)} graphs; dowise {1e6 * ours / sets:.1f} µs a set, "
        f"causalrl {1e6 * theirs / sets:.0f} µs; {theirs / ours:.0f} times faster"
    )
