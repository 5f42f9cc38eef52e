"""Random streams and keys: vectorised versions equal the obvious ones."""

import numpy as np
import pytest

from dowise._core.rng import draw_key, draw_keys, draw_keys_and_coins, stream, streams

GENERATORS = ("PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937")


def twins(kind):
    return (np.random.Generator(getattr(np.random, kind)(5)) for _ in range(2))


@pytest.mark.parametrize("kind", GENERATORS)
def test_keys_and_coins_of_many_rounds_equal_those_of_single_rounds(kind):
    together, stepwise = twins(kind)
    keys, coins = draw_keys_and_coins(together, 40)
    assert keys.dtype == np.uint64 and keys.flags.c_contiguous
    for key, coin in zip(keys, coins, strict=True):
        assert key.tolist() == draw_key(stepwise).tolist()
        assert coin == stepwise.random()
    assert together.random() == stepwise.random()


@pytest.mark.parametrize("kind", GENERATORS)
def test_keys_of_many_rounds_equal_those_of_single_rounds(kind):
    together, stepwise = twins(kind)
    expected = [draw_key(stepwise).tolist() for _ in range(9)]
    assert draw_keys(together, 9).tolist() == expected


@pytest.mark.parametrize("seed", [0, 7, 2**32 - 1, 2**32, 2**128 - 1, 2**128, 2**200 + 5])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_many_streams_equal_single_streams(seed, length):
    rng = np.random.default_rng(length)
    places = [tuple(place) for place in rng.integers(0, 2**32, (5, length)).tolist()]
    places += [(0,) * length, (2**32 - 1,) * length]
    for place, generator in zip(places, streams(seed, places), strict=True):
        assert generator.bit_generator.state == stream(seed, *place).bit_generator.state
