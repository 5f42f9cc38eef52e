"""Δ, g and the pair of arms from given draws, for hundreds to tens of thousands of arms.

    make bench

Each beside the time of drawing as many random numbers and of copying them once. Independent uniform
draws are the hardest case: with N draws nearly N arms win some of them. No time is asserted. The
largest size takes 2 GB.
"""

from __future__ import annotations

import numpy as np
import pytest
from bench_belief import best_times

from dowise.information import estimate_from_draws, minimise_ratio

SAMPLES = 1000


@pytest.mark.parametrize("arms", [256, 1_024, 8_192, 65_536])
def test_many_arms(benchmark, arms):
    rng, scaled = np.random.default_rng(0), np.array([0.0, 1.0])
    drawn = rng.random((arms, 1, SAMPLES), dtype=np.float32)
    found = estimate_from_draws(drawn, scaled)
    assert found.best.sum() == pytest.approx(1)
    calls = [
        lambda: estimate_from_draws(drawn, scaled),
        lambda: minimise_ratio(found.delta, found.gain),
        lambda: rng.random((arms, 1, SAMPLES), dtype=np.float32),
        lambda: drawn.copy(),
    ]
    times = benchmark.pedantic(best_times, (calls, 2.0), rounds=1)
    summary, pair, draws, copy = (1e3 * seconds for seconds in times)
    print(
        f"\n{arms:,} arms, {len(found.winning):,} of which win: summary {summary:.4g} ms, pair "
        f"{pair:.3g} ms; {draws:.3g} ms to draw as many uniforms and {copy:.3g} ms to copy them: "
        f"{(summary + pair) / draws:.1f} times the draws"
    )
