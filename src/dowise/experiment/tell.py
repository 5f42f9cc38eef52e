"""What is told, amended and withdrawn: checked against what is known, then said in an event.

Each function gives the body of an event, or None where nothing would change: the same call may be
made again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dowise._core.validation import check_flag
from dowise.errors import DowiseError
from dowise.experiment.case import Case, labels_of
from dowise.problem import Intervention, Problem
from dowise.problem.domains import as_mapping
from dowise.problem.problem import ArmLike

Body = dict[str, Any]


def told(
    case: Case,
    problem: Problem,
    values: Mapping[str, object] | None,
    played: ArmLike | None,
    unrelated: bool,
) -> Body | None:
    """What is new of a decision."""
    given = as_mapping(values, "what was told")
    if played is None and case.status != "erased" and case.repeats(given, problem):
        return None
    case.check_open("told")
    labels = labels_of(problem, given, "what was told")
    if not labels and played is None:
        raise DowiseError(f"decision {case.id}: nothing was told; say what was seen, Y=1")
    unrelated = check_flag("unrelated", unrelated)
    arm = _done_instead(problem, played, unrelated)
    is_news = arm is not None and case.check_played(arm, unrelated)
    fresh = case.new_values(labels, arm if is_news else None)
    if not fresh and not is_news:
        return None
    body: Body = {"decision": case.id, "values": fresh}
    if is_news and arm is not None:
        body |= {"played": dict(arm), "unrelated": unrelated}
    return body


def amended(
    case: Case,
    problem: Problem,
    values: Mapping[str, object] | None,
    reason: str,
    played: ArmLike | None,
    unrelated: bool,
) -> Body | None:
    """What an amendment changes, with what there was before."""
    case.check_open("amended")
    labels = labels_of(problem, values, "an amendment")
    if not labels and played is None:
        raise DowiseError(f"decision {case.id}: say what is corrected, such as Y=0")
    unrelated = check_flag("unrelated", unrelated)
    arm = _done_instead(problem, played, unrelated)
    body: Body = {"decision": case.id, "reason": checked_reason(reason, "amend")}
    if arm is not None:
        now = None if arm == case.asked else arm
        is_unrelated = unrelated and now is not None
        if now == case.played and is_unrelated == case.is_unrelated:
            arm = None
        else:
            played_page = None if now is None else dict(now)
            body |= {"played": played_page, "unrelated": is_unrelated}
    known = case.known
    changed = case.changed_values(labels, case.arm if arm is None else arm)
    if not changed and arm is None:
        return None
    before = {name: known[name] for name in changed if name in known}
    return body | {"values": changed, "before": before}


def withdrawn(case: Case, reason: str) -> Body | None:
    """The end of a decision that nothing more will be told of."""
    if case.status == "withdrawn":
        return None
    case.check_open("withdrawn")
    if case.status == "done":
        raise DowiseError(
            f"decision {case.id} has its outcome, so it can't be withdrawn: `amend` corrects "
            "it, `erase` takes it out for good"
        )
    return {"decision": case.id, "reason": checked_reason(reason, "withdraw")}


def checked_reason(reason: object, verb: str) -> str:
    """A reason in words."""
    if not isinstance(reason, str) or not reason.strip():
        raise DowiseError(f"say why: {verb} needs a `reason`")
    return reason.strip()


def _done_instead(problem: Problem, played: ArmLike | None, unrelated: bool) -> Intervention | None:
    if unrelated and played is None:
        raise DowiseError("`unrelated` goes with `played`: say what was done instead")
    return None if played is None else problem.intervention(played)
