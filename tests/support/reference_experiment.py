"""A simple reference implementation of an experiment with plain dictionaries.

Only the arm of a decision is taken from the experiment itself. Belief counts are those of a fresh
`Belief` that learns the records one by one.
"""

from dataclasses import dataclass, field

from dowise import Belief
from dowise.problem.record import past_record


class Refused(Exception):  # noqa: N818 (the experiment's own is a DowiseError)
    """The experiment must refuse the call too, without any change."""


@dataclass
class ModelCase:
    context: dict
    asked: dict
    restricted: bool
    request: str | None
    values: dict = field(default_factory=dict)
    earlier: dict = field(default_factory=dict)  # corrected values by variable
    played: dict | None = None
    unrelated: bool = False
    status: str = "pending"

    @property
    def arm(self):
        return self.asked if self.played is None else self.played

    @property
    def known(self):
        return {**self.context, **self.values, **self.arm}

    def play(self, played, unrelated):
        """Record another arm; the settings of the earlier one become unknown."""
        for name, label in self.arm.items():
            self.earlier.setdefault(name, []).append(label)
        self.played, self.unrelated = played, unrelated

    def repeats(self, values):
        """Return True if all values are or were recorded, and no variable is missing again."""
        return bool(values) and all(
            name in self.known and label in (self.known[name], *self.earlier.get(name, ()))
            for name, label in values.items()
        )


class Model:
    """Expected state of an experiment after the calls so far."""

    def __init__(self, problem, policy, learn_restricted=True):
        self.plan = (problem, policy, learn_restricted)
        self.cases, self.requests, self.rows, self.tables = {}, {}, [], []
        self.events = 1

    @property
    def problem(self):
        return self.plan[0]

    # -- calls --------------------------------------------------------------------------------

    def allowed(self, problem, allowed, forbid):
        arms = problem.arms if allowed is None else allowed
        remaining = [
            arm
            for arm in problem.arms
            if arm in arms and not any(_sets_all(arm, ban) for ban in forbid or ())
        ]
        if not remaining:
            raise Refused("no arm is left")
        return remaining

    def answered(self, request, contexts, allowed, forbid):
        """Return the decisions of an earlier call with this request id, or None."""
        ids = self.requests.get(request) if request is not None else None
        if not ids:
            return None
        problem, asked, arms = self.questions[request]
        if (
            asked != contexts
            or arms != self.allowed(problem, allowed, forbid)
            or len(ids) != len(asked)
        ):
            raise Refused("the same request with another question")
        return list(ids)

    questions: dict

    def ask(self, arms, request, contexts, allowed):
        first = len(self.cases) + 1
        restricted = len(allowed) < len(self.problem.arms)
        for context, arm in zip(contexts, arms, strict=True):
            self.cases[len(self.cases) + 1] = ModelCase(
                dict(context), dict(arm), restricted, request
            )
            self.events += 1
        if request is not None:
            self.requests[request] = list(range(first, len(self.cases) + 1))
            self.questions[request] = (self.problem, contexts, allowed)

    def tell(self, number, values, played=None, unrelated=False):
        if played is None and self.cases[number].repeats(values):
            return  # also after a withdrawal
        case = self._open(number)
        self._need_variables(values)
        if not values and played is None:
            raise Refused("nothing was told")
        is_new_arm = False
        if played is not None and (case.played is not None or played != case.asked):
            is_new_arm = (played, unrelated) != (case.played, case.unrelated)
            if is_new_arm and case.played is not None:
                raise Refused("another arm was told before")
            if is_new_arm and _contradicts(case.values, played):
                raise Refused("the arm contradicts a value")
        arm = played if is_new_arm else case.arm
        if _contradicts(values, arm):
            raise Refused("a value contradicts the arm")
        new, repeats_old = {}, False
        for name, label in values.items():
            if name in arm:
                continue
            recorded = case.context if name in case.context else case.values
            if name in recorded and recorded[name] == label:
                continue
            if name in case.context:
                raise Refused("another context")
            if name not in case.values:
                new[name] = label
            elif label in case.earlier.get(name, ()):
                repeats_old = True
            else:
                raise Refused("another value was told")
        if repeats_old and new:
            raise Refused("new values with one from before a correction")
        if new or is_new_arm:
            case.values |= new
            if is_new_arm:
                case.play(played, unrelated)
            self._changed(case)

    def amend(self, number, values, played=None, unrelated=False):
        case = self._open(number)
        self._need_variables(values)
        if not values and played is None:
            raise Refused("nothing is corrected")
        deviation = (case.played, case.unrelated)
        if played is not None:
            deviation = (None, False) if played == case.asked else (played, unrelated)
        arm = case.asked if deviation[0] is None else deviation[0]
        if _contradicts({**case.values, **values}, arm):
            raise Refused("a value contradicts the arm")
        changed = {}
        for name, label in values.items():
            if name in case.context and label is None:
                raise Refused("context is always seen")
            if name not in (*case.context, *case.values, *case.arm, *arm):
                raise Refused("not told yet")
            recorded = {**case.context, **case.values}
            if name not in arm and (name not in recorded or recorded[name] != label):
                changed[name] = label
        if not changed and deviation == (case.played, case.unrelated):
            return
        for name, label in changed.items():
            recorded = case.context if name in case.context else case.values
            if name in recorded:
                case.earlier.setdefault(name, []).append(recorded[name])
            recorded[name] = label
        if deviation != (case.played, case.unrelated):
            case.play(*deviation)
        self._changed(case)

    def withdraw(self, number):
        case = self.cases[number]
        if case.status == "withdrawn":
            return
        if case.status != "pending":
            raise Refused("the decision has its outcome, or was erased")
        case.status = "withdrawn"
        self.events += 1

    def erase(self, number):
        case = self.cases[number]
        if case.status == "erased":
            return
        if case.request is not None:
            self.requests[case.request].remove(number)
        self.cases[number] = ModelCase({}, {}, False, None, status="erased")
        self.events += 1

    def revise(self, problem, policy, learn_restricted):
        if (problem, policy, learn_restricted) == self.plan:
            return
        self.plan = (problem, policy, learn_restricted)
        self.events += 1

    def import_rows(self, rows, again):
        if not again and rows in self.tables:
            raise Refused("the same table was imported before")
        self.tables.append(rows)
        self.rows += rows
        self.events += 1

    def _open(self, number):
        case = self.cases[number]
        if case.status in ("withdrawn", "erased"):
            raise Refused(case.status)
        return case

    def _need_variables(self, values):
        if not values.keys() <= self.problem.domains.keys():
            raise Refused("unknown variable")

    def _changed(self, case):
        if case.status == "pending" and self.problem.reward in case.values:
            case.status = "done"
        self.events += 1

    # -- expectations -------------------------------------------------------------------------

    def decisions(self):
        """Return every decision as a tuple."""
        return [
            (
                number,
                case.status,
                case.context,
                case.asked,
                case.values,
                case.played,
                case.unrelated,
                case.restricted,
                case.request,
            )
            for number, case in self.cases.items()
        ]

    def belief(self):
        problem, _, learn_restricted = self.plan
        belief = Belief(problem)
        records = [
            (case.arm, case.known)
            for case in self.cases.values()
            if case.values
            and (learn_restricted or not case.restricted)
            and (case.played is None or case.unrelated)
        ]
        for arm, known in records + self.rows:
            values = {name: label for name, label in known.items() if name in problem.domains}
            if problem.reward in arm or not arm.keys() <= problem.domains.keys():
                continue
            if all(values.get(name) is not None for name in problem.context):
                belief.learn(past_record(problem, arm, values))
        return belief


def decision_tuple(case):
    """Return a case of an experiment as a tuple of the model."""
    return (
        case.id,
        case.status,
        case.context,
        dict(case.asked),
        case.values,
        None if case.played is None else dict(case.played),
        case.is_unrelated,
        case.is_restricted,
        case.request_id,
    )


def _sets_all(arm, ban):
    return all(arm.get(name) == label for name, label in ban.items()) if ban else not arm


def _contradicts(values, arm):
    return any(name in arm and label not in (None, arm[name]) for name, label in values.items())
