"""Where randomness comes from: the caller's generator or seed, never a default.

A trial or a decision has a stream of its own, `stream(seed, …)`; inside one, counter-based kernels
draw everything from a key of two words (`key_of`). So results are the same bits for any number of
workers, and after any stop and resume.
"""

from __future__ import annotations

from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError

__all__ = ["DRAWS", "Random", "generator", "key_of", "keys_and_coins", "keys_of", "stream"]

Random = np.random.Generator | int

DRAWS = "2"  # how a key becomes draws of a posterior: another number, and other bits come of it


def generator(rng: Random | None) -> np.random.Generator:
    """The caller's generator, or one made from the caller's seed."""
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, Integral) and not isinstance(rng, bool) and rng >= 0:
        return np.random.default_rng(int(rng))
    raise DowiseError(f"rng={rng!r}: give a seed such as 0, or a numpy.random.Generator")


def key_of(source: np.random.Generator) -> NDArray[np.uint64]:
    """Two fresh words from a generator: the key of one call of a counter-based kernel."""
    bits = source.bit_generator
    if isinstance(bits, np.random.MT19937):  # its raw words have 32 bits
        return source.integers(0, 2**64, size=2, dtype=np.uint64)
    words: NDArray[np.uint64] = bits.random_raw(2)
    return words


def stream(seed: int, *place: int) -> np.random.Generator:
    """The random numbers of one place under a seed; other places have others."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=place))


def keys_of(source: np.random.Generator, rounds: int) -> NDArray[np.uint64]:
    """The keys of so many calls of `key_of`, one behind the other: (rounds, 2)."""
    if isinstance(source.bit_generator, np.random.MT19937):
        return source.integers(0, 2**64, size=(rounds, 2), dtype=np.uint64)
    words: NDArray[np.uint64] = source.bit_generator.random_raw(2 * rounds)
    return words.reshape(rounds, 2)


def keys_and_coins(
    source: np.random.Generator, rounds: int
) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """What so many rounds of `key_of` and then `source.random()` give: (rounds, 2), and a number.

    The generators of NumPy but the Mersenne twister make a uniform of the upper 53 bits of a word.
    """
    if isinstance(source.bit_generator, np.random.MT19937):
        each = [(key_of(source), source.random()) for _ in range(rounds)]
        return np.array([key for key, _ in each]), np.array([coin for _, coin in each])
    words = source.bit_generator.random_raw(3 * rounds).reshape(rounds, 3)
    coins: NDArray[np.float64] = np.multiply(words[:, 2] >> np.uint64(11), 2.0**-53)
    return np.ascontiguousarray(words[:, :2]), coins
