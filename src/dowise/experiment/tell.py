"""Tell, amend, withdraw: compare the arguments with what is recorded of a decision.

Each function returns the event to append, or None if nothing would change, so that a call can be
repeated. Contradictions are errors that name both values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dowise._core.validation import check_flag
from dowise.errors import ConflictError, DowiseError, suggestion
from dowise.experiment.case import Case, Labels
from dowise.experiment.event import EventDraft
from dowise.problem import Intervention, Problem
from dowise.problem.domains import as_mapping, label_of, refuse_hidden, text_of
from dowise.problem.problem import ArmLike


def tell(
    case: Case,
    problem: Problem,
    values: Mapping[str, object] | None,
    played: ArmLike | None,
    unrelated: bool,
) -> EventDraft | None:
    """Return the new values of a decision, and the arm that was played if it is new."""
    labels = _read_labels(problem, as_mapping(values, "what was told"))
    if played is None and labels and case.status != "erased":
        # If another arm was played, the variables that the chosen arm would have set are open: a
        # value of one of them is new, even the one that the chosen arm would have set.
        known, superseded = case.known, case.superseded
        if all(
            name in known and (label == known[name] or label in superseded.get(name, ()))
            for name, label in labels.items()
        ):
            return None
    check_open(case)
    if not labels.keys() <= problem.domains.keys():
        _check_variables(problem, labels, "what was told")
    if not labels and played is None:
        raise DowiseError(
            f"decision {case.id}: nothing was told; pass what was seen, such as Y=1",
            code="missing-value",
        )
    arm = None
    if played is not None or unrelated is not False:
        unrelated = check_flag("unrelated", unrelated)
        arm = _played_arm(problem, played, unrelated)
        if arm is not None and not _is_new_arm(case, arm, unrelated):
            arm = None
    payload: dict[str, Any] = {"decision": case.id, "values": new_values(case, labels, arm)}
    if arm is not None:
        payload |= {"played": dict(arm), "unrelated": unrelated}
    return EventDraft("told", payload) if payload["values"] or arm is not None else None


def amend(
    case: Case,
    problem: Problem,
    values: Mapping[str, object] | None,
    reason: str,
    played: ArmLike | None,
    unrelated: bool,
) -> EventDraft | None:
    """Return the values that an amendment changes, with the earlier values."""
    check_open(case)
    labels = to_labels(problem, values, "an amendment")
    if not labels and played is None:
        raise DowiseError(
            f"decision {case.id}: no correction was passed, such as Y=0", code="missing-value"
        )
    unrelated = check_flag("unrelated", unrelated)
    arm = _played_arm(problem, played, unrelated)
    payload: dict[str, Any] = {
        "decision": case.id,
        "reason": validate_reason(reason, "amend a decision"),
    }
    if arm is not None:
        deviation = None if arm == case.asked else arm
        is_unrelated = unrelated and deviation is not None
        if deviation == case.played and is_unrelated == case.is_unrelated:
            arm = None
        else:
            payload["played"] = None if deviation is None else dict(deviation)
            payload["unrelated"] = is_unrelated
    known = case.known
    changed = _changed_values(case, labels, case.arm if arm is None else arm)
    if not changed and arm is None:
        return None
    before = {name: known[name] for name in changed if name in known}
    return EventDraft("amended", payload | {"values": changed, "before": before})


def withdraw(case: Case, reason: str) -> EventDraft | None:
    """Return the event that closes a decision without an outcome."""
    if case.status == "withdrawn":
        return None
    check_open(case)
    if case.status == "done":
        raise DowiseError(
            f"decision {case.id} has its outcome, so it can't be withdrawn: amend it to correct "
            "it, erase it to remove it for good",
            code="conflict",
        )
    reason = validate_reason(reason, "withdraw a decision")
    return EventDraft("withdrawn", {"decision": case.id, "reason": reason})


def validate_reason(reason: object, verb: str) -> str:
    """Return a reason without surrounding spaces. Raises `DowiseError` if it is empty."""
    if not isinstance(reason, str) or not reason.strip():
        raise DowiseError(f"a reason is required to {verb}", code="missing-value")
    return reason.strip()


def to_labels(problem: Problem, values: Mapping[str, object] | None, subject: str) -> Labels:
    """Convert values of a user to labels. Raises `DowiseError` for unknown variables."""
    mapping = as_mapping(values, subject)
    _check_variables(problem, mapping, subject)
    return _read_labels(problem, mapping)


def _read_labels(problem: Problem, values: Mapping[str, object]) -> Labels:
    """Convert values to labels; values of unknown variables are converted to text."""
    domains = problem.domains
    return {
        name: label_of(name, value, domains[name]) if name in domains else text_of(value)
        for name, value in values.items()
    }


def _check_variables(problem: Problem, names: Mapping[str, object], subject: str) -> None:
    for name in names:
        if name not in problem.domains:
            refuse_hidden(name, problem.hidden, f"{subject} has a value for a hidden variable: ")
            raise DowiseError(
                f"{subject} names {name!r}, which is not a variable of the problem"
                f"{suggestion(str(name), problem.graph.variables)}",
                code="unknown-variable",
            )


def check_open(case: Case) -> None:
    """Raise if a case was erased or withdrawn, so that it can't change any more."""
    if case.status in ("erased", "withdrawn"):
        raise ConflictError(
            f"decision {case.id} was {case.status}, so nothing can be recorded for it: import what "
            "was observed as a separate record",
            code=f"decision-{case.status}",
        )


def new_values(case: Case, labels: Labels, played: Intervention | None) -> Labels:
    """Return the new values; `played` is the arm if another one than recorded was played."""
    settings = dict(case.arm if played is None else played)
    _check_settings(case, labels, settings)
    new, repeats_old = {}, None
    for name, label in labels.items():
        if name in settings:
            continue
        recorded = case.context if name in case.context else case.values
        if name not in recorded:
            new[name] = label
        elif recorded[name] != label:
            if recorded is case.context or label not in case.superseded.get(name, ()):
                raise _conflict(case, name, "is recorded as", recorded[name], label)
            repeats_old = name
    if repeats_old is not None and new:  # not a mere repetition of an earlier call
        now, old = case.values[repeats_old], labels[repeats_old]
        raise _conflict(case, repeats_old, "was amended to", now, old)
    return new


def _changed_values(case: Case, labels: Labels, arm: Intervention) -> Labels:
    """Return the values that an amendment changes, given the arm that was played."""
    settings = dict(arm)
    _check_settings(case, {**case.values, **labels}, settings)
    for name, label in labels.items():
        if name in case.context and label is None:
            raise DowiseError(
                f"{name} is a context variable, which is always observed: pass one of its labels",
                code="missing-value",
            )
        if name not in (*case.context, *case.values, *case.arm, *settings):
            raise DowiseError(
                f"{name} of decision {case.id} has not been told yet: tell it first",
                code="conflict",
            )
    known = {**case.context, **case.values, **settings}
    return {
        name: label
        for name, label in labels.items()
        if name not in settings and (name not in known or known[name] != label)
    }


def _played_arm(problem: Problem, played: ArmLike | None, unrelated: bool) -> Intervention | None:
    if played is not None:
        return problem.intervention(played)
    if unrelated:
        raise DowiseError(
            "unrelated=True needs the arm that was played instead: pass `played`",
            code="missing-value",
        )
    return None


def _is_new_arm(case: Case, played: Intervention, is_unrelated: bool) -> bool:
    """Return True if another arm than the chosen one was played, and is not recorded yet."""
    if case.played is None and played == case.asked:
        return False
    if case.played == played and case.is_unrelated == is_unrelated:
        return False
    if case.played is not None:
        reasons = [" for an unrelated reason" * flag for flag in (case.is_unrelated, is_unrelated)]
        raise ConflictError(
            f"decision {case.id} is recorded as played {case.played}{reasons[0]}, not "
            f"{played}{reasons[1]}; amend it if that is wrong"
        )
    _check_settings(case, case.values, dict(played))
    return True


def _check_settings(case: Case, labels: Labels, settings: Mapping[str, str]) -> None:
    """Raise if a value contradicts what the arm set."""
    for name, label in labels.items():
        if name in settings and label not in (None, settings[name]):
            raise DowiseError(
                f"decision {case.id}: {Intervention(settings)} set {name}={settings[name]}, but "
                f"{name}={label} was told; if another arm was played, pass it as well (played)",
                code="conflict",
            )


def _conflict(
    case: Case, name: str, verb: str, recorded: str | None, label: str | None
) -> ConflictError:
    before, now = ("missing" if text is None else text for text in (recorded, label))
    return ConflictError(
        f"decision {case.id}: {name} {verb} {before}, not {now}; amend it if that is wrong"
    )
