"""How many past records count: what the policy learns from, and why not from the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dowise.plain import counted

__all__ = ["Counted"]


@dataclass(frozen=True)
class Counted:
    """How many past records there are, and how many the policy that holds can't learn from."""

    decisions: int
    """The decisions that have an outcome, or were withdrawn after something was told."""
    imported: int
    left_out: dict[str, int] = field(default_factory=dict)
    """How many are not learned from, by the reason."""
    reward: str = ""
    unused: dict[str, dict[str, int]] = field(default_factory=dict)
    """What was seen in the others and could not be used, by variable and reason: how often."""

    @property
    def all(self) -> int:
        """Decisions and imported records together."""
        return self.decisions + self.imported

    @property
    def used(self) -> int:
        """How many of them are learned from."""
        return self.all - sum(self.left_out.values())

    @property
    def is_in_vain(self) -> bool:
        """Whether there are records, and none of their rewards counts."""
        lost = sum(self.unused.get(self.reward, {}).values())
        return self.all > 0 and self.used <= lost

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            "decisions": self.decisions,
            "imported": self.imported,
            "used": self.used,
            "left_out": dict(self.left_out),
            "unused": {name: dict(reasons) for name, reasons in self.unused.items()},
            "reward": self.reward,
        }

    @classmethod
    def from_dict(cls, page: Mapping[str, Any]) -> Counted:
        """The way back from `as_dict`."""
        unused = {name: dict(reasons) for name, reasons in page["unused"].items()}
        left_out = dict(page["left_out"])
        return cls(page["decisions"], page["imported"], left_out, page["reward"], unused)

    def in_words(self) -> str:
        """What counts, in one sentence, and a line for each reason why others don't."""
        if not self.all:
            return "There are no past records yet."
        decided = counted(self.decisions, "decision")
        brought = f" and {self.imported:,} imported" if self.imported else ""
        of = f"{self.all:,} past records ({decided}{brought})"
        if not self.left_out:
            first = f"All {of} count under it."
        elif self.used:
            first = f"{self.used:,} of {of} count under it. Left out:"
        else:
            first = f"NONE of {of} counts under it, so nothing is known. Left out:"
        reasons = (f"  {n:,}: {why}" for why, n in self.left_out.items())
        return "\n".join([first, *reasons, *self.unused_in_words()])

    def unused_in_words(self) -> Iterator[str]:
        """A sentence for each variable that could not be used, and why; the reward first."""
        for name, reasons in sorted(self.unused.items(), key=lambda one: one[0] != self.reward):
            for why, times in reasons.items():
                many = counted(times, "record")
                whole = "NOT USED in any of" if times >= self.used else "not used in"
                lost = ", so nothing is known of the arms" if name == self.reward else ""
                yield f"{name} is {whole} {many}: {why}{lost if times >= self.used else ''}."
