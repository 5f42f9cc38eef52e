"""Where randomness comes from: the caller's generator or seed, never a default."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from dowise.errors import DowiseError

__all__ = ["Random", "generator", "key_of"]

Random = np.random.Generator | int


def generator(rng: Random | None) -> np.random.Generator:
    """The caller's generator, or one made from the caller's seed."""
    if isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, Integral) and not isinstance(rng, bool) and rng >= 0:
        return np.random.default_rng(int(rng))
    raise DowiseError(f"rng={rng!r}: give a seed such as 0, or a numpy.random.Generator")


def key_of(source: np.random.Generator) -> tuple[np.uint64, np.uint64]:
    """Two fresh words from a generator: the key of one call of a counter-based kernel."""
    if isinstance(source.bit_generator, np.random.MT19937):  # its raw words have 32 bits
        key0, key1 = source.integers(0, 2**64, size=2, dtype=np.uint64)
        return key0, key1
    word = source.bit_generator.random_raw
    return np.uint64(word()), np.uint64(word())
