"""Decisions: an arm, the probability of every arm, a reason, and the figures behind the choice.

Figures are for people, logs and tests; no policy learns from them. Expensive figures are computed
from the decision's trace when they are first read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from typing import Any

from dowise._core.codec import to_json
from dowise._core.document import pluralize
from dowise._core.types import FloatArray
from dowise.errors import DowiseError, suggestion
from dowise.problem import Intervention

Edges = Callable[[], dict[str, float]]
"""Returns the probability of each doubtful edge at the moment of a decision."""


class DecisionTrace(Mapping[str, Any]):
    """Reason and figures of one decision, computed when they are first read.

    Subclasses name expensive figures in `lazy` and override `compute`; a subclass with an expensive
    reason overrides `reason`.

    Parameters
    ----------
    reason : str
        Why the arm was chosen: the end of a sentence that begins with the arm.
    figures : dict, optional
        Figures by name.
    edges : callable, optional
        Returns the probability of each doubtful edge; adds the figure `edges`.

    Examples
    --------
    >>> trace = DecisionTrace("sampled uniformly from 2 arms", {"samples": 10})
    >>> trace["samples"], list(trace), trace.reason
    (10, ['samples'], 'sampled uniformly from 2 arms')
    """

    lazy: tuple[str, ...] = ()
    """Names of the figures that `compute` returns."""

    def __init__(
        self, reason: str = "", figures: dict[str, Any] | None = None, edges: Edges | None = None
    ) -> None:
        self._reason, self._figures = reason, {} if figures is None else figures
        self._edges = edges
        if edges is not None:
            self.lazy = (*self.lazy, "edges")

    @property
    def reason(self) -> str:
        """Reason of the choice."""
        return self._reason

    def compute(self, name: str) -> Any:
        """Return one of the figures named in `lazy`."""
        raise KeyError(name)

    def __getitem__(self, name: str) -> Any:
        if name not in self._figures:
            if name not in self.lazy:
                raise KeyError(name)
            if name == "edges" and self._edges is not None:
                self._figures[name] = self._edges()
            else:
                self._figures[name] = self.compute(name)
        return self._figures[name]

    def __contains__(self, name: object) -> bool:
        return name in self._figures or name in self.lazy

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._figures, *self.lazy)))

    def __len__(self) -> int:
        return len({*self._figures, *self.lazy})

    def __repr__(self) -> str:
        return f"<Figures: {', '.join(self)}>"


FIGURE_DIGITS = 6  # figures are for people; probabilities are stored to the last bit


def rounded_figures(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return figures as plain data with as many digits as people read, without intervals."""
    return {name: _rounded(figures[name]) for name in figures if not name.endswith("_interval")}


def _rounded(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float) and isfinite(value):
        return float(f"{value:.{FIGURE_DIGITS}g}")
    if isinstance(value, list | tuple):
        return [
            float(f"{part:.{FIGURE_DIGITS}g}")
            if isinstance(part, float) and isfinite(part)
            else _rounded(part)
            for part in value
        ]
    if isinstance(value, Mapping):
        return {
            str(name): part if isinstance(part, str) else _rounded(part)
            for name, part in value.items()
        }
    plain = to_json(value)
    return _rounded(plain) if isinstance(plain, list | dict) else plain


class Decision:
    """An arm to play, with the probability of every arm and the reason for the choice.

    Parameters
    ----------
    arm : Intervention
        Arm to play.
    probabilities : array of float or None
        Probability of each of the problem's arms; None if the policy does not know them.
    reason : str or DecisionTrace
        Why the arm was chosen: the end of a sentence that begins with the arm. A trace also has the
        figures.
    figures : mapping, optional
        Figures behind the choice, by name.
    context : mapping, optional
        Labels of the context that was seen before the choice.

    Raises
    ------
    DowiseError
        By `as_dict`, if the decision has no figure of that name.

    Examples
    --------
    >>> from dowise.problem import Intervention
    >>> print(Decision(Intervention({"X": "1"}), None, "the only arm that is allowed"))
    do(X=1): the only arm that is allowed
    """

    __slots__ = ("_reason", "arm", "context", "figures", "probabilities")

    def __init__(
        self,
        arm: Intervention,
        probabilities: FloatArray | None,
        reason: str | DecisionTrace,
        figures: Mapping[str, Any] | None = None,
        context: Mapping[str, str] | None = None,
    ) -> None:
        self.arm = arm
        self.probabilities = probabilities
        self._reason = reason
        if figures is None:
            figures = DecisionTrace() if isinstance(reason, str) else reason
        self.figures: Mapping[str, Any] = figures
        self.context = context

    @property
    def reason(self) -> str:
        """Reason of the choice, as text."""
        return self._reason if isinstance(self._reason, str) else self._reason.reason

    def as_dict(self, *figures: str) -> dict[str, Any]:
        """Return context, arm, probabilities, reason and the named figures, ready for JSON.

        Parameters
        ----------
        *figures : str
            Names of figures; by default none.

        Returns
        -------
        dict
            The arm is in `arm`, and as text in `text`; the figures by name are in `figures`.

        Raises
        ------
        DowiseError
            If the decision has no figure of that name.

        Examples
        --------
        >>> from dowise.problem import Intervention
        >>> decision = Decision(Intervention({"X": "1"}), None, "the only arm", {"samples": 10})
        >>> data = decision.as_dict("samples")
        >>> data["text"], data["reason"], data["figures"]
        ('do(X=1)', 'the only arm', {'samples': 10})
        """
        for name in figures:
            if name not in self.figures:
                raise DowiseError(
                    f"this decision has no figure {name!r}{suggestion(name, self.figures)} "
                    f"(available: {', '.join(self.figures) or 'none'})",
                    code="unknown-figure",
                )
        data: dict[str, Any] = to_json(
            {
                "context": self.context,
                "arm": self.arm,
                "text": str(self.arm),
                "probabilities": self.probabilities,
                "reason": self.reason,
                "figures": {name: self.figures[name] for name in figures},
            }
        )
        return data

    def __str__(self) -> str:
        return f"{self.arm}: {self.reason}"

    def __repr__(self) -> str:
        return f"<Decision {self}>"


WORDING = "3"
"""Version of the wording of reasons; raise it whenever the wording of a reason changes.

Journals store it, so that an audit knows whether it may compare reasons word for word.
"""
HIGHEST_BOUND = "and allowing for chance it has the highest plausible mean of all arms"
"""Reason for an arm with the largest upper bound."""


def sampled_reason(share: float | None = None, basis: str = "") -> str:
    """Return the reason for an arm that won a posterior draw.

    `share` is its probability, if known; `basis` names the data that the posterior rests on, if
    these are not all data.

    >>> sampled_reason(0.25)
    "sampled in proportion to each arm's chance of being the best (25 % for this one)"
    """
    judged_by = f", judged by {basis}" if basis else ""
    percent = "" if share is None else f" ({100 * share:.3g} % for this one)"
    return f"sampled in proportion to each arm's chance of being the best{judged_by}{percent}"


def floor_reason(floor: float, reason: str) -> str:
    """Return the reason for an arm that was chosen by the floor."""
    return f"chosen by the floor of {100 * floor:.3g} %, which keeps every arm in play: {reason}"


def not_played_reason(in_context: bool) -> str:
    """Return the reason for an arm that was never played."""
    place = " in this context" if in_context else ""
    return f"not played yet{place}: each arm is played once before they are compared"


def pending_note(plays: int) -> str:
    """Return a remark on plays without an outcome, as a part of a sentence.

    >>> pending_note(2), pending_note(0)
    (' (2 plays pending)', '')
    """
    return f" ({pluralize(plays, 'play')} pending)" if plays else ""
