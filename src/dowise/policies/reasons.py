"""Why an arm was chosen, in words that several policies share.

A reason ends the sentence that begins with the arm. It is read by those who play the arm, and not
by statisticians alone.
"""

from __future__ import annotations

from dowise.plain import counted

__all__ = ["BEST_BY_CHANCE", "WORDING", "drawn_by_lot", "not_played_before", "under_way"]

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
    return f" ({counted(plays, 'play')} under way)" if plays else ""
