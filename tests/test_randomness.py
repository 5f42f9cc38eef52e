"""What a compiled trial draws at once is what stepping draws one by one."""

import numpy as np
import pytest

from dowise._core.rng import draw_key, draw_keys, draw_keys_and_coins

GENERATORS = [
    np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64, np.random.MT19937,
]  # fmt: skip


@pytest.mark.parametrize("kind", GENERATORS)
def test_keys_and_coins_are_those_of_stepping(kind):
    at_once, stepped = (np.random.Generator(kind(5)) for _ in range(2))
    keys, coins = draw_keys_and_coins(at_once, 40)
    assert keys.dtype == np.uint64 and keys.flags.c_contiguous
    for key, coin in zip(keys, coins, strict=True):
        assert key.tolist() == draw_key(stepped).tolist()
        assert coin == stepped.random()
    assert at_once.random() == stepped.random()


@pytest.mark.parametrize("kind", GENERATORS)
def test_keys_are_those_of_stepping(kind):
    at_once, stepped = (np.random.Generator(kind(6)) for _ in range(2))
    assert [key.tolist() for key in draw_keys(at_once, 9)] == [
        draw_key(stepped).tolist() for _ in range(9)
    ]
