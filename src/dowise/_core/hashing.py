"""The hash behind every counter-based draw."""

from __future__ import annotations

from numba import njit, uint64

GOLDEN = uint64(0x9E3779B97F4A7C15)


@njit(forceinline=True, error_model="numpy")
def mix(z):
    """Mix 64 bits bijectively: the finaliser of SplitMix64 (Steele, Lea & Flood 2014)."""
    z = (z ^ (z >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> uint64(27))) * uint64(0x94D049BB133111EB)
    return z ^ (z >> uint64(31))
