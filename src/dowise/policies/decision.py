"""A decision: an arm, with the probability of every arm at that moment and the figures behind it.

Nothing feeds the figures back into a policy: they are for people, logs and tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowise.problem import Intervention

__all__ = ["Decision", "Figures"]


class Figures(Mapping[str, Any]):
    """Named figures; those given as functions are computed when they are first asked for."""

    def __init__(self, known: Mapping[str, Any], lazy: Mapping[str, Callable[[], Any]]) -> None:
        self._known = dict(known)
        self._lazy = dict(lazy)

    def __getitem__(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = self._lazy[name]()
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._known, **self._lazy})

    def __len__(self) -> int:
        return len({*self._known, *self._lazy})

    def __repr__(self) -> str:
        return f"<Figures: {', '.join(self)}>"


_NO_FIGURES = Figures({}, {})


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Decision:
    """The arm to play. `probabilities` is over the problem's arms, or None where it is not known.

    `str(decision)` is one sentence that says why; `reason` is the end of it, or what makes it when
    somebody asks.
    """

    arm: Intervention
    probabilities: NDArray[np.float64] | None
    reason: str | Callable[[], str]
    figures: Figures = field(default_factory=lambda: _NO_FIGURES)

    def __str__(self) -> str:
        return f"{self.arm}: {self.reason() if callable(self.reason) else self.reason}"

    def __repr__(self) -> str:
        return f"<Decision {self}>"
