"""A world as compiled loops see it: where its numbers stand, and how it is let run."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Mechanism", "Script"]

Integers = NDArray[np.int64]


class Mechanism(NamedTuple):
    """True numbers, ready to be sampled: variables are numbered, causes come before effects."""

    entries: NDArray[np.float64]
    """All factors, flat: one row for each context that occurs, or one for all of them."""
    order: Integers
    starts: Integers
    strides: Integers
    sizes: Integers
    context: Integers
    """Where the context variables stand among all."""
    fixed: Integers
    """For each arm the codes that it sets, negative where it sets nothing."""
    observed: Integers
    """Where the observed variables stand among all, in the order of the problem's variables."""


class Script(NamedTuple):
    """All of a trial that does not depend on what is played."""

    mechanism: Mechanism
    contexts: Integers
    """The number of each round's context."""
    known: Integers
    """The codes of each context."""
    uniforms: NDArray[np.float64]
    """What drives the outcome of each round."""
