"""The layout of a graph the size of `insurance`, of one with sixty variables, and of dense ones."""

import random
from itertools import combinations

import pytest

from dowise import CausalGraph
from dowise.plotting.layout import layout

SPARSE = [(27, 52, 0), (27, 52, 5), (60, 120, 10)]
# Each of them should take at most about two seconds.
DENSE = [(20, 57, 38), (30, 130, 132), (60, 873, 0), (60, 510, 180), (60, 885, 530)]


@pytest.mark.parametrize(("size", "edges", "hidden"), SPARSE + DENSE)
def test_layout(benchmark, size, edges, hidden):
    draw = random.Random(size)
    pairs = list(combinations([f"Variable{i:02}" for i in range(size)], 2))
    graph = CausalGraph(draw.sample(pairs, edges), draw.sample(pairs, hidden))
    benchmark.pedantic(layout, (graph,), rounds=3)
