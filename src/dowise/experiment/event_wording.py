"""Events in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dowise._core.document import pluralize
from dowise.experiment.case import label_text
from dowise.experiment.event import DamagedEventError, Event
from dowise.problem import Intervention

Payload = Mapping[str, Any]


def event_text(event: Event) -> str:
    """Describe an event in a sentence.

    >>> from dowise.experiment.event import next_event
    >>> payload = {"decision": 2, "values": {"Y": "0"}, "before": {"Y": "1"}, "reason": "typo"}
    >>> event_text(next_event(None, "ward", "amended", "2026-01-01T00:00:00Z", "ann", payload))
    'Decision 2: Y changed from 1 to 0 (typo)'
    """
    if event.is_erased:
        return "Its content was erased"
    try:
        return _DESCRIPTIONS[event.kind](event.parse_body())
    except (DamagedEventError, KeyError, TypeError, ValueError, AttributeError):
        return "It can't be read: run an audit"


def decision_of(event: Event) -> int | None:
    """Return the number of the decision that an event is about; None if it is about none."""
    try:
        number = event.parse_body().get("decision")
    except DamagedEventError:
        return None
    return number if isinstance(number, int) else None


def _describe_asked(payload: Payload) -> str:
    context = f" where {_pairs(payload['context'])}" if payload["context"] else ""
    restriction = "" if payload["allowed"] is None else "; some arms were not allowed"
    return f"Decision {payload['decision']}: {Intervention(payload['arm'])}{context}{restriction}"


def _describe_told(payload: Payload) -> str:
    parts = [_describe_played(payload)] if "played" in payload else []
    parts += [_pairs(payload["values"])] if payload["values"] else []
    return f"Decision {payload['decision']}: told {'; '.join(parts)}"


def _describe_played(payload: Payload) -> str:
    if payload["played"] is None:
        return "that the chosen arm was played"
    unrelated = ", for an unrelated reason" if payload.get("unrelated") else ""
    return f"that {Intervention(payload['played'])} was played instead{unrelated}"


def _describe_amended(payload: Payload) -> str:
    before = payload["before"]
    changes = [f"corrected {_describe_played(payload)}"] if "played" in payload else []
    changes += [
        f"{name} changed from {label_text(before[name])} to {label_text(label)}"
        if name in before
        else f"{name} is {label_text(label)} now"
        for name, label in payload["values"].items()
    ]
    return f"Decision {payload['decision']}: {', '.join(changes)} ({payload['reason']})"


def _describe_imported(payload: Payload) -> str:
    source = f" from {payload['source']}" if payload["source"] else ""
    skipped = payload["skipped"]
    left_out = f", {pluralize(skipped, 'bad row')} left out" if skipped else ""
    return f"{pluralize(payload['records'], 'record')} imported{source}{left_out}"


def _pairs(values: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name}={label_text(label)}" for name, label in values.items())


_DESCRIPTIONS: Mapping[str, Callable[[Payload], str]] = {
    "created": lambda payload: f"Experiment created, with the policy {payload['policy']}",
    "asked": _describe_asked,
    "told": _describe_told,
    "amended": _describe_amended,
    "withdrawn": lambda payload: f"Decision {payload['decision']} withdrawn ({payload['reason']})",
    "revised": lambda payload: (
        f"Experiment revised; the policy is {payload['policy']} ({payload['reason']})"
    ),
    "imported": _describe_imported,
    "erased": lambda payload: (
        f"All records of decision {payload['decision']} erased ({payload['reason']})"
    ),
}
