"""Rows of any size: Dirichlet draws by Beta variates or by gamma variates, in either precision.

Seeds are fixed; twelve dozen p-values, each asserted to be above 1e-4: written anew with another
seed this file would raise a false alarm in one of 70 cases.
"""

import numpy as np
import pytest
from scipy import stats
from support.parametrize import one_in

from dowise._core.rng import draw_key
from dowise.belief import draw_kernels as careful
from dowise.belief import draw_kernels as kernels

ALARM = 1e-4
ROWS = [
    [1, 1], [2, 3], [3, 4], [9, 30], [0.4, 2], [1, 1, 1], [2, 3, 4], [5, 1, 7], [1.5, 2.5, 30],
    [0.3, 4, 9], [40, 3, 11, 2], [2, 2, 2, 2, 9, 1],
]  # fmt: skip


def draw(shapes, seed=0, draws=100_000, block=256):
    out = np.empty((len(shapes), draws), dtype=np.float32)
    key, sizes = draw_key(np.random.default_rng(seed)), np.array([len(shapes)])
    kernels.draw_entries(key, np.array(shapes, dtype=float), np.array([0]), sizes, block, out)
    return out.astype(np.float64)


@pytest.mark.parametrize("block", [256, 8], ids=["many lanes", "few"])
@pytest.mark.parametrize("shapes", one_in(4, ROWS), ids=str)
def test_a_row_is_a_dirichlet_draw(shapes, block):
    """Each entry, and how each shares with the next one: what is left does not depend on that."""
    entries = draw(shapes, block=block)
    np.testing.assert_allclose(entries.sum(axis=0), 1, atol=1e-6)
    for k, shape in enumerate(shapes):
        others = sum(shapes) - shape
        assert stats.kstest(entries[k], stats.beta(shape, others).cdf).pvalue > ALARM
    for k in range(len(shapes) - 1):
        both = entries[k] + entries[k + 1]
        share = entries[k] / both
        assert stats.kstest(share, stats.beta(shapes[k], shapes[k + 1]).cdf).pvalue > ALARM
        if len(shapes) > 2:
            rank = stats.spearmanr(share, both).statistic
            assert abs(rank) * np.sqrt(len(share)) < 4.5


def test_which_rows_are_drawn_by_betas():
    def uses_betas(*shapes, lanes=256):
        return kernels.uses_betas(np.array(shapes, dtype=float), lanes)

    assert uses_betas(1, 1) and uses_betas(2, 4) and uses_betas(3, 5) and uses_betas(1, 2, 9)
    assert not uses_betas(3, 4) and not uses_betas(1, 2, 3)  # whole and small: a few uniforms
    assert not uses_betas(0.9, 5) and not uses_betas(9, 9, lanes=15)


@pytest.mark.parametrize("lanes", [5, 256])
@pytest.mark.parametrize("shapes", ROWS, ids=str)
def test_double_precision_draws_the_same_row_lane_for_lane(shapes, lanes):
    shapes, size = np.array(shapes, dtype=float), len(shapes)
    key, none = draw_key(np.random.default_rng(1)), np.zeros(size, dtype=np.int64)
    logs = np.empty((size, lanes + kernels.PADDING), dtype=np.float32)
    careful.draw_logs(key, shapes, none, 0, size, 0, lanes, logs)
    whole = np.empty((size, lanes + kernels.PADDING))
    careful.normalise(logs, whole, 0, lanes)
    plain = np.empty((size, lanes), dtype=np.float32)
    kernels.draw_entries(key, shapes, np.array([0]), np.array([size]), lanes, plain)
    np.testing.assert_allclose(whole[:, :lanes], plain, rtol=3e-5, atol=1e-30)
