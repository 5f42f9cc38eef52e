"""An event of the journal in one sentence, for people who read what happened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dowise.experiment.event import DamagedEventError, Event
from dowise.plain import counted
from dowise.problem import Intervention

__all__ = ["decision_of", "event_in_words"]

Page = Mapping[str, Any]


def event_in_words(event: Event) -> str:
    """What an event says, in a sentence.

    >>> says = {"decision": 2, "values": {"Y": "0"}, "before": {"Y": "1"}, "reason": "typo"}
    >>> event = Event.after(None, "ward", "amended", "2026-01-01T00:00:00Z", "ann", says)
    >>> event_in_words(event)
    'Of decision 2, Y is 0 now; it was 1 (typo)'
    """
    if event.is_erased:
        return "What it said was erased"
    try:
        return _SENTENCES[event.kind](event.parsed())
    except (DamagedEventError, KeyError, TypeError, ValueError, AttributeError):
        return "It can't be read: run an audit"


def decision_of(event: Event) -> int | None:
    """The number of the decision that an event is about, if it is about one."""
    try:
        number = event.parsed().get("decision")
    except DamagedEventError:
        return None
    return number if isinstance(number, int) else None


def _created(says: Page) -> str:
    return f"The experiment began, with the policy {says['policy']}"


def _asked(says: Page) -> str:
    where = f" where {_pairs(says['context'])}" if says["context"] else ""
    few = "" if says["allowed"] is None else ", among fewer than all arms"
    return f"Decision {says['decision']}: {Intervention(says['arm'])}{where}{few}"


def _told(says: Page) -> str:
    told = f" {_pairs(says['values'])}" if says["values"] else ""
    return f"Of decision {says['decision']} was told{_instead(says)}{told}"


def _instead(says: Page) -> str:
    if "played" not in says:
        return ""
    if says["played"] is None:
        return " that it was done as decided;"
    unrelated = ", for a reason that had nothing to do with it" if says.get("unrelated") else ""
    return f" that {Intervention(says['played'])} was done instead{unrelated};"


def _amended(says: Page) -> str:
    before = says["before"]
    changes = [
        f"{name} is {_shown(label)} now; it was {_shown(before[name])}"
        if name in before
        else f"{name} is {_shown(label)} now"
        for name, label in says["values"].items()
    ]
    if "played" in says:
        changes.insert(0, f"it is corrected{_instead(says).rstrip(';')}")
    return f"Of decision {says['decision']}, {', '.join(changes)} ({says['reason']})"


def _withdrawn(says: Page) -> str:
    return f"Decision {says['decision']} was withdrawn ({says['reason']})"


def _revised(says: Page) -> str:
    return f"The experiment was revised; the policy is {says['policy']} ({says['reason']})"


def _imported(says: Page) -> str:
    source = f" from {says['source']}" if says["source"] else ""
    left = f", {counted(says['skipped'], 'bad row')} left out" if says["skipped"] else ""
    return f"{counted(says['records'], 'record')} came in{source}{left}"


def _erased(says: Page) -> str:
    return f"All that was said of decision {says['decision']} was erased ({says['reason']})"


def _pairs(values: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name}={_shown(label)}" for name, label in values.items())


def _shown(label: str | None) -> str:
    return "missing" if label is None else str(label)


_SENTENCES: Mapping[str, Callable[[Page], str]] = {
    "created": _created,
    "asked": _asked,
    "told": _told,
    "amended": _amended,
    "withdrawn": _withdrawn,
    "revised": _revised,
    "imported": _imported,
    "erased": _erased,
}
