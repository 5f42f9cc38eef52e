"""Random streams and keys, always from the caller's generator or seed.

Every trial and every decision has its own stream, `stream(seed, …)`, in which counter-based kernels
draw from keys of two words (`draw_key`). So results are the same bits for any number of workers,
and after any stop and resume.
"""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

from dowise._core.types import AnyArray, FloatArray, UInt64Array
from dowise.errors import DowiseError

Random = np.random.Generator | int

DRAWS = "3"  # version of how a key becomes posterior draws: raised when the bits change

Words = NDArray[np.uint32]

_FIRST, _FACTOR = 0x43B0D7E5, 0x931E8875  # the constants of numpy's SeedSequence
_FIRST_OUT, _FACTOR_OUT = 0x8B51F9DD, 0x58F38DED
_LEFT, _RIGHT = np.uint32(0xCA01F9DD), np.uint32(0x4973F715)
_HALF = np.uint32(16)


def generator(rng: Random | None) -> np.random.Generator:
    """Return the caller's generator, or one made from the caller's seed."""
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, Integral) and not isinstance(rng, bool) and rng >= 0:
        return np.random.default_rng(int(rng))
    raise DowiseError(
        f"rng={rng!r} must be a seed such as 0, or a numpy.random.Generator", code="invalid-type"
    )


def draw_key(source: np.random.Generator) -> UInt64Array:
    """Draw the key of one call of a counter-based kernel: two words."""
    bits = source.bit_generator
    if isinstance(bits, np.random.MT19937):  # its raw words have 32 bits
        return source.integers(0, 2**64, size=2, dtype=np.uint64)
    words: UInt64Array = bits.random_raw(2)
    return words


def stream(seed: int, *place: int) -> np.random.Generator:
    """Return the random stream of one place under a seed; each place has its own."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=place))


def streams(seed: int, places: Sequence[tuple[int, ...]]) -> list[np.random.Generator]:
    """Return `stream(seed, *place)` for places of equal length: the same bits, faster.

    A SeedSequence hashes the words of the seed into a pool of four, then the words of the place,
    and the state of the generator out of the pool. The pool of the seed is numpy's own; what
    follows is vectorised over all places. Numbers in places are below 2³².
    """
    pool: Words = np.random.SeedSequence(seed).pool
    hashed = 16 + 4 * max(0, -(-seed.bit_length() // 32) - 4)  # words, so far
    for words in np.array(places, dtype=np.uint32).T:
        salts = _salts(_FIRST, _FACTOR, hashed, 4)
        pool = _LEFT * pool - _RIGHT * _hash(words[:, None], salts)
        pool ^= pool >> _HALF
        hashed += 4
    state = _hash(np.tile(pool, 2), _salts(_FIRST_OUT, _FACTOR_OUT, 0, 8))
    words_of_places = state.astype("<u4").view("<u8").astype(np.uint64)
    pcg64: Any = np.random.PCG64  # takes any ISeedSequence, despite its annotations
    return [np.random.Generator(pcg64(_KnownState(words))) for words in words_of_places]


def _salts(first: int, factor: int, start: int, count: int) -> Words:
    """Return `count` + 1 hash constants: each is the factor times the one before."""
    numbers = [first * pow(factor, start + i, 2**32) % 2**32 for i in range(count + 1)]
    return np.array(numbers, dtype=np.uint32)


def _hash(words: Words, salts: Words) -> Words:
    hashed: Words = (words ^ salts[:-1]) * salts[1:]
    return hashed ^ (hashed >> _HALF)


class _KnownState(ISeedSequence):
    """Seed sequence with a state that was computed before."""

    def __init__(self, words: UInt64Array) -> None:
        self._words = words

    def generate_state(self, n_words: int, dtype: Any = np.uint64) -> AnyArray:
        """Return the words that PCG64 requests: four of 64 bits."""
        assert (n_words, np.dtype(dtype)) == (len(self._words), self._words.dtype)
        return self._words


def draw_keys(source: np.random.Generator, rounds: int) -> UInt64Array:
    """Return the keys of `rounds` consecutive calls of `draw_key`: (rounds, 2)."""
    if isinstance(source.bit_generator, np.random.MT19937):
        return source.integers(0, 2**64, size=(rounds, 2), dtype=np.uint64)
    words: UInt64Array = source.bit_generator.random_raw(2 * rounds)
    return words.reshape(rounds, 2)


def draw_keys_and_coins(source: np.random.Generator, rounds: int) -> tuple[UInt64Array, FloatArray]:
    """Return the results of `rounds` calls of `draw_key`, each followed by `source.random()`.

    NumPy's generators, except the Mersenne Twister, take uniforms from the upper 53 bits of words.
    """
    if isinstance(source.bit_generator, np.random.MT19937):
        pairs = [(draw_key(source), source.random()) for _ in range(rounds)]
        return np.array([key for key, _ in pairs]), np.array([coin for _, coin in pairs])
    words = source.bit_generator.random_raw(3 * rounds).reshape(rounds, 3)
    coins: FloatArray = np.multiply(words[:, 2] >> np.uint64(11), 2.0**-53)
    return np.ascontiguousarray(words[:, :2]), coins
