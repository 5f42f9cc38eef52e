"""The layout of a graph the size of `insurance`, and of one with sixty variables."""

import random
from itertools import combinations

import pytest

from dowise import CausalGraph
from dowise.graph.layout import layout


@pytest.mark.parametrize(("size", "edges", "hidden"), [(27, 52, 0), (27, 52, 5), (60, 120, 10)])
def test_layout(benchmark, size, edges, hidden):
    draw = random.Random(size)
    pairs = list(combinations([f"Variable{i:02}" for i in range(size)], 2))
    graph = CausalGraph(draw.sample(pairs, edges), draw.sample(pairs, hidden))
    benchmark.pedantic(layout, (graph,), rounds=3)
