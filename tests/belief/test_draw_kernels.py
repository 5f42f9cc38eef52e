"""Dirichlet draws of rows of whole shapes, by Beta or by gamma variates; others: test_real_rows.

Seeds are fixed. About 110 p-values must be above 1e-4: with other seeds this file would raise a
false alarm in one of 90 runs.
"""

import numpy as np
import pytest
from scipy import stats
from support.parametrize import one_in

from dowise._core.rng import draw_key
from dowise.belief import draw_kernels as kernels

ALARM = 1e-4
ROWS = [
    [1, 1],
    [2, 3],
    [3, 4],
    [9, 30],
    [1, 1, 1],
    [2, 3, 4],
    [5, 1, 7],
    [2, 4, 9],
    [40, 3, 11, 2],
    [2, 2, 2, 2, 9, 1],
]


def draw(shapes, seed=0, draws=100_000, block=256):
    out = np.empty((len(shapes), draws), dtype=np.float32)
    key, sizes = draw_key(np.random.default_rng(seed)), np.array([len(shapes)])
    kernels.draw_entries(key, np.array(shapes, dtype=float), np.array([0]), sizes, block, out, None)
    return out.astype(np.float64)


@pytest.mark.parametrize("block", [256, 8], ids=["many lanes", "few"])
@pytest.mark.parametrize("shapes", one_in(4, ROWS), ids=str)
def test_rows_have_a_dirichlet_distribution(shapes, block):
    """Each entry is Beta, and so is its share of its sum with the next one, whatever the sum."""
    entries = draw(shapes, block=block)
    np.testing.assert_allclose(entries.sum(axis=0), 1, atol=1e-6)
    for k, shape in enumerate(shapes):
        assert stats.kstest(entries[k], stats.beta(shape, sum(shapes) - shape).cdf).pvalue > ALARM
    for k in range(len(shapes) - 1):
        total = entries[k] + entries[k + 1]
        share = entries[k] / total
        assert stats.kstest(share, stats.beta(shapes[k], shapes[k + 1]).cdf).pvalue > ALARM
        if len(shapes) > 2:
            rank = stats.spearmanr(share, total).statistic
            assert abs(rank) * np.sqrt(len(share)) < 4.5


def test_rows_that_are_drawn_by_betas():
    def uses_betas(*shapes, lanes=256):
        return kernels.uses_betas(np.array(shapes, dtype=float), lanes)

    assert uses_betas(1, 1) and uses_betas(2, 4) and uses_betas(3, 5) and uses_betas(1, 2, 9)
    assert not uses_betas(3, 4) and not uses_betas(1, 2, 3)  # whole and small
    assert not uses_betas(9, 9, lanes=15)
