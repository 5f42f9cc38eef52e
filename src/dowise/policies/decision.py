"""A decision: an arm, with the probability of every arm at that moment and the figures behind it.

Nothing feeds the figures back into a policy: they are for people, logs and tests. Figures that cost
something are computed from the decision's workings when somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dowise._core.codec import to_json
from dowise._core.document import pluralize
from dowise.errors import DowiseError, suggestion
from dowise.problem import Intervention


class Workings(Protocol):
    """What a decision was made from: numbers, and how its figures and sentence follow."""

    @property
    def names(self) -> tuple[str, ...]:
        """The figures that it can give."""

    def figure(self, name: str) -> Any:
        """One of them."""

    def reason(self) -> str:
        """The end of the sentence that says why the arm was chosen."""


class Figures(Mapping[str, Any]):
    """Named figures: those that are known, and those that the workings give when asked."""

    __slots__ = ("_known", "_workings")

    def __init__(self, known: Mapping[str, Any], workings: Workings | None = None) -> None:
        self._known = dict(known)
        self._workings = workings

    def __getitem__(self, name: str) -> Any:
        if name not in self._known:
            if self._workings is None or name not in self._workings.names:
                raise KeyError(name)
            self._known[name] = self._workings.figure(name)
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        lazy = () if self._workings is None else self._workings.names
        return iter(dict.fromkeys((*self._known, *lazy)))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<Figures: {', '.join(self)}>"


_NO_FIGURES = Figures({})


class Decision:
    """The arm to play. `probabilities` is over the problem's arms, or None where it is not known.

    `str(decision)` is one sentence that says why; `reason` is the end of it, a text or the workings
    that give it. `context` has the labels that were seen before the choice.
    """

    __slots__ = ("_reason", "arm", "context", "figures", "probabilities")

    def __init__(
        self,
        arm: Intervention,
        probabilities: NDArray[np.float64] | None,
        reason: str | Workings,
        figures: Figures = _NO_FIGURES,
        context: Mapping[str, str] | None = None,
    ) -> None:
        self.arm = arm
        self.probabilities = probabilities
        self._reason = reason
        self.figures = figures
        self.context = context

    @property
    def reason(self) -> str:
        """Why this arm, in words."""
        return self._reason if isinstance(self._reason, str) else self._reason.reason()

    def as_dict(self, *figures: str) -> dict[str, Any]:
        """For JSON: the context, the arm, the probabilities, the reason, and the figures named."""
        for name in figures:
            if name not in self.figures:
                raise DowiseError(
                    f"this decision has no figure {name!r}{suggestion(name, self.figures)}: "
                    f"there are {', '.join(self.figures) or 'none'}"
                )
        page: dict[str, Any] = to_json(
            {
                "context": self.context,
                "arm": self.arm,
                "text": str(self.arm),
                "probabilities": self.probabilities,
                "reason": self.reason,
                "figures": {name: self.figures[name] for name in figures},
            }
        )
        return page

    def __str__(self) -> str:
        return f"{self.arm}: {self.reason}"

    def __repr__(self) -> str:
        return f"<Decision {self}>"


WORDING = "2"
"""Another number whenever a policy words its reasons otherwise: journals have them, and an audit
must know that it does not compare like with like."""
BEST_BY_CHANCE = "and allowing for chance no other arm may turn out better"
"""An arm has the largest upper bound."""


def drawn_by_lot(known: str = "what is known", share: float | None = None) -> str:
    """An arm won a draw from the posterior, or one of many, of which it won a `share`.

    >>> drawn_by_lot(share=0.25)
    'drawn by lot, each arm with its chance to be the best by what is known: this one has 25 %'
    """
    own = "" if share is None else f": this one has {100 * share:.3g} %"
    return f"drawn by lot, each arm with its chance to be the best by {known}{own}"


def not_played_before(in_context: bool) -> str:
    """A policy that compares arms by their own plays has none of this one."""
    where = " in this context" if in_context else ""
    return f"not played before{where}: each arm is played once before they are compared"


def under_way(plays: int) -> str:
    """Plays that have no outcome yet, as a part of a sentence.

    >>> under_way(2), under_way(0)
    (' (2 plays under way)', '')
    """
    return f" ({pluralize(plays, 'play')} under way)" if plays else ""
