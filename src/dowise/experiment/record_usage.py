"""How much past records contribute to what is known of the arms."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from dowise._core.codec import JsonResult
from dowise._core.document import BulletList, Document, Documented, Paragraph, pluralize

if TYPE_CHECKING:
    from dowise.belief import Belief


@dataclass(frozen=True)
class RecordUsage(JsonResult, Documented):
    """Number of past records, and of those that the policy learns from."""

    json_extras: ClassVar[tuple[str, ...]] = ("used",)

    decisions: int
    """Number of decisions with an outcome, or withdrawn after something was told."""
    imported: int
    """Number of imported records."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Number of records that are not learned from, by reason."""
    reward: str = ""
    unused: dict[str, dict[str, int]] = field(default_factory=dict)
    """Number of values that could not be used in the other records, by variable and reason."""
    arm_rewards: int = 0
    """Number of rewards that count for each arm by itself, where a policy also learns without the
    graph; then `unused` is what the graph could not use."""

    @property
    def all(self) -> int:
        """Number of decisions and imported records."""
        return self.decisions + self.imported

    @property
    def used(self) -> int:
        """Number of records that are learned from."""
        return self.all - sum(self.left_out.values())

    @property
    def has_no_usable_reward(self) -> bool:
        """True if there are records, but no reward that the policy, or its graph, can use."""
        lost = sum(self.unused.get(self.reward, {}).values())
        return self.all > 0 and self.used <= lost

    def document(self) -> Document:
        """Return the numbers of records that count and do not count, with the reasons."""
        if not self.all:
            return Document((Paragraph("There are no past records yet."),))
        imported = f" and {self.imported:,} imported" if self.imported else ""
        records = f"{self.all:,} past records ({pluralize(self.decisions, 'decision')}{imported})"
        if not self.left_out:
            first = Paragraph(f"All {records} count.")
        elif self.used:
            first = Paragraph(f"{self.used:,} of {records} count. Left out:")
        else:
            text = f"NONE of {records} counts, so nothing is known. Left out:"
            first = Paragraph(text, "warning")
        reasons = tuple(f"{times:,}: {why}" for why, times in self.left_out.items())
        items = (*reasons, *self.describe_unused())
        return Document((first, BulletList(items)) if items else (first,))

    def describe_unused(self) -> Iterator[str]:
        """Describe each variable that could not be used, with the reason; the reward first."""
        for name, reasons in sorted(self.unused.items(), key=lambda item: item[0] != self.reward):
            for reason, times in reasons.items():
                is_all = times >= self.used
                use = "NOT USED" if is_all else "not used"
                among = "in any of" if is_all else "in"
                lost = ""
                if name == self.reward and self.arm_rewards:
                    use += " by the graph"
                elif name == self.reward and is_all:
                    lost = ", so nothing is known of the arms"
                yield f"{name} is {use} {among} {pluralize(times, 'record')}: {reason}{lost}."
            if name == self.reward and self.arm_rewards:
                yield describe_arm_rewards(self.arm_rewards)


def describe_arm_rewards(count: int) -> str:
    """Describe the rewards that count although the graph can't use some of them.

    >>> describe_arm_rewards(300)
    '300 rewards count for each arm by itself, without the graph.'
    """
    verb = "counts" if count == 1 else "count"
    return f"{pluralize(count, 'reward')} {verb} for each arm by itself, without the graph."


def describe_unused_values(belief: Belief) -> Iterator[str]:
    """Describe the values that a belief could not learn from, with the reasons."""
    for name, reasons in belief.unused.items():
        for reason, times in reasons.items():
            yield f"{name} was left out of {pluralize(times, 'record')}: {reason}"


def why_no_record_counts(belief: Belief, records: int, columns: Container[str]) -> str:
    """Describe why a belief learned nothing about the reward from a table with these columns."""
    if not records:
        return "There are no records: the table has no rows."
    reward = belief.problem.reward
    reasons = ", ".join(
        f"{name} was not seen" if name in columns else f"the table has no column {name}"
        for name in filter(None, belief.lacking().get(reward, {}))
    )
    why = reasons or "no arm needs what they tell"
    return f"None of {pluralize(records, 'record')} could be used for {reward}: {why}."
