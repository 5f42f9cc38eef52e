"""One gamma or Beta variate, by shape, beside NumPy's generator: ns, in blocks of 256 lanes.

make bench
"""

from __future__ import annotations

import numpy as np
import pytest
from bench_belief import best_times
from numba import njit

from dowise.belief.real_rows import draw_if_real, real_room
from dowise.belief.variates import betas, gammas, stream_key

ROWS, LANES = 2000, 256


@njit
def fill(shape, out):
    for row in range(ROWS):
        gammas(stream_key(1, 2, row), 0, shape, out, LANES)


def say(benchmark, what):
    time = benchmark.stats.stats.min if benchmark.stats else float("nan")
    print(f"\n{what}: {1e9 * time / ROWS / LANES:.1f} ns")


@pytest.mark.parametrize("shape", [1, 2, 3, 4, 5, 20, 1e3, 1e6])
def test_gamma(benchmark, shape):
    out = np.empty(LANES + 1, dtype=np.float32)
    benchmark.pedantic(fill, (float(shape), out), rounds=5, warmup_rounds=1)
    say(benchmark, f"gamma, shape {shape:g}")


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


@njit
def fill_rows(shapes, values, room):
    for row in range(ROWS):
        key = np.uint64(1), np.uint64(2)
        draw_if_real(key, len(shapes) * row, 0, shapes, values, 0, room, LANES)


@pytest.mark.parametrize(
    "shapes",
    [(0.05, 0.05), (0.5, 0.5), (0.5, 3.5), (1.2, 1.3), (2.5, 3.5), (12.5, 9.5), (0.5, 1.5, 2.5)],
    ids=str,
)
def test_rows_of_any_shape(benchmark, shapes):
    values, room = np.empty((len(shapes), LANES), dtype=np.float32), real_room(LANES, True)
    arguments = np.array(shapes), values, room
    benchmark.pedantic(fill_rows, arguments, rounds=5, warmup_rounds=1)
    say(benchmark, f"a row of shapes {shapes}")


def test_numpy(benchmark):
    rng = np.random.default_rng(0)
    benchmark.pedantic(rng.standard_gamma, (5.5, ROWS * LANES), rounds=5, warmup_rounds=1)
    say(benchmark, "NumPy's gamma, shape 5.5")
