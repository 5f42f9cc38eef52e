"""Reading a network as large as `diabetes` from BIF, beside Python's own reading of its numbers.

    make bench

The yardstick splits the same text at blanks, commas and brackets and turns what is a number into a
float: no reader in Python does less. pyAgrum's reader, in C++ and single precision, stands beside.
"""

from __future__ import annotations

import re
import warnings
from time import process_time

import numpy as np

from dowise import CausalGraph
from dowise.graph.formats.bif import Network, parse_bif, to_bif

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import pyagrum as gum

NUMBER = re.compile(r"\d+\.\d*(?:e-?\d+)?")


def diabetes_like(variables=240, labels=13):
    """A chain of variables with two parents each: half a million numbers."""
    rng = np.random.default_rng(7)
    names = [f"v{i:03}" for i in range(variables)]
    edges = [(names[i - k], names[i]) for i in range(variables) for k in (1, 2) if i >= k]
    graph = CausalGraph(edges, variables=names)
    domains = {name: tuple(f"{i}_0mmol" for i in range(labels)) for name in names}
    shapes = {name: [labels] * len(graph.parents(name)) for name in names}
    cpts = {name: rng.dirichlet(np.ones(labels), size=shapes[name]) for name in names}
    return Network(graph, domains, cpts)


def best_of(work, times=3):
    seconds = []
    for _ in range(times):
        start = process_time()
        work()
        seconds.append(process_time() - start)
    return min(seconds)


def test_reading(benchmark):
    text = to_bif(diabetes_like(60))
    benchmark(lambda: parse_bif(text))


def test_ratio_to_the_yardsticks(benchmark, tmp_path):
    network = diabetes_like()
    text = to_bif(network)
    (tmp_path / "network.bif").write_text(text)
    size = sum(cpt.size for cpt in network.cpts.values())
    ours = best_of(lambda: parse_bif(text))
    floats = best_of(lambda: [float(number) for number in NUMBER.findall(text)])
    agrum = best_of(lambda: gum.loadBN(str(tmp_path / "network.bif")))
    print(
        f"\n{size:,} numbers, {len(text) / 1e6:.1f} MB: {ours:.2f} s; floats alone {floats:.2f} s"
    )
    print(f"ratio to the floats {ours / floats:.1f}; pyAgrum {agrum:.2f} s")
    benchmark.pedantic(lambda: parse_bif(text), rounds=1)
