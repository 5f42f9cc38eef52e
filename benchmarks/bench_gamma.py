"""One gamma or Beta variate, by shape, beside NumPy's generator: ns, in blocks of 256 lanes.

make bench
"""

from __future__ import annotations

import numpy as np
import pytest
from bench_belief import best_times
from numba import njit

from dowise.belief.variates import betas, gammas, stream_key, take_logs

ROWS, LANES = 2000, 256


@njit
def fill(shape, out):
    for row in range(ROWS):
        key = stream_key(1, 2, row)
        gammas(key, 0, shape + 1 if shape < 1 else shape, out, LANES)
        if shape < 1:
            take_logs(key, 0, shape, out, LANES)


def say(benchmark, what):
    time = benchmark.stats.stats.min if benchmark.stats else float("nan")
    print(f"\ngamma: {what}: {1e9 * time / ROWS / LANES:.1f} ns")


@pytest.mark.parametrize("shape", [0.05, 0.5, 1, 1.1, 1.5, 2, 3, 4, 5, 20, 1e3, 1e6])
def test_gamma(benchmark, shape):
    out = np.empty(LANES + 1, dtype=np.float32)
    benchmark.pedantic(fill, (float(shape), out), rounds=5, warmup_rounds=1)
    say(benchmark, f"shape {shape:g}")


@njit
def fill_pairs(a, b, out, rest):
    for row in range(ROWS):
        betas(stream_key(1, 2, row), 0, a, b, out, rest, LANES)


@njit
def fill_by_gammas(a, b, out, rest):
    """What a row of two was drawn by before: two gamma variates, and their sum."""
    for row in range(ROWS):
        gammas(stream_key(1, 2, 2 * row), 0, a, out, LANES)
        gammas(stream_key(1, 2, 2 * row + 1), 0, b, rest, LANES)
        for i in range(LANES):
            whole = np.float32(1) / (out[i] + rest[i])
            out[i] *= whole
            rest[i] *= whole


@pytest.mark.parametrize(
    ("a", "b"), [(1, 1), (1, 5), (2, 3), (2, 20), (3, 10), (5, 5), (5, 20), (30, 10), (1e3, 3e3)]
)
def test_rows_of_two(benchmark, a, b):
    """A Beta variate beside the two gamma variates that took its place before."""
    out, rest = (np.empty(LANES + 1, dtype=np.float32) for _ in range(2))
    calls = [lambda f=f: f(float(a), float(b), out, rest) for f in (fill_pairs, fill_by_gammas)]
    one, two = benchmark.pedantic(best_times, (calls, 1.0), rounds=1)
    each = 1e9 / ROWS / LANES
    print(
        f"\na row of two, shapes {a:g} and {b:g}: {each * one:.2f} ns, by gammas "
        f"{each * two:.2f} ns: {two / one:.1f} times"
    )


def test_numpy(benchmark):
    rng = np.random.default_rng(0)
    benchmark.pedantic(rng.standard_gamma, (5.5, ROWS * LANES), rounds=5, warmup_rounds=1)
    say(benchmark, "NumPy, shape 5.5")
