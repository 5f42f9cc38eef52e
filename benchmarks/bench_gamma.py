"""One gamma variate, by shape, beside NumPy's generator: nanoseconds, in blocks of 256 lanes.

make bench
"""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from dowise.belief.gamma import gammas, stream_key, take_logs

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


def test_numpy(benchmark):
    rng = np.random.default_rng(0)
    benchmark.pedantic(rng.standard_gamma, (5.5, ROWS * LANES), rounds=5, warmup_rounds=1)
    say(benchmark, "NumPy, shape 5.5")
