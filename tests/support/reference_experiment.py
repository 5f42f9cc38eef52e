"""An experiment as plain dictionaries: what its journal must amount to, said once more and simply.

Only the arm of a decision is taken from the experiment itself. Belief counts are those of a fresh
`Belief` that learns the records one by one.
"""

from dataclasses import dataclass, field

from dowise import Belief
from dowise.problem.record import past_record


class Refused(Exception):  # noqa: N818 (the experiment's own is a DowiseError)
    """The experiment must refuse this too, and nothing may change."""


@dataclass
class ModelCase:
    context: dict
    asked: dict
    restricted: bool
    request: str | None
    values: dict = field(default_factory=dict)
    earlier: dict = field(default_factory=dict)  # what was known and corrected since, by variable
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
        """Another arm was played: what the one before had set is known no more."""
        for name, label in self.arm.items():
            self.earlier.setdefault(name, []).append(label)
        self.played, self.unrelated = played, unrelated

    def repeats(self, values):
        """Whether this was known once, of variables that have not become open again."""
        return bool(values) and all(
            name in self.known and label in (self.known[name], *self.earlier.get(name, ()))
            for name, label in values.items()
        )


class Model:
    """All that the calls so far must have led to."""

    def __init__(self, problem, policy, learn_restricted=True):
        self.plan = (problem, policy, learn_restricted)
        self.cases, self.requests, self.rows, self.tables = {}, {}, [], []
        self.events = 1

    @property
    def problem(self):
        return self.plan[0]

    # -- what each call does -------------------------------------------------------------------

    def allowed(self, problem, allowed, forbid):
        arms = problem.arms if allowed is None else allowed
        left = [
            arm
            for arm in problem.arms
            if arm in arms and not any(_sets_all(arm, ban) for ban in forbid or ())
        ]
        if not left:
            raise Refused("nothing is left")
        return left

    def answered(self, request, contexts, allowed, forbid):
        """The decisions that a request had before, or None."""
        ids = self.requests.get(request) if request is not None else None
        if not ids:
            return None
        problem, asked, left = self.questions[request]
        if (
            asked != contexts
            or left != self.allowed(problem, allowed, forbid)
            or len(ids) != len(asked)
        ):
            raise Refused("the same request with another question")
        return list(ids)

    questions: dict

    def ask(self, arms, request, contexts, left):
        first = len(self.cases) + 1
        restricted = len(left) < len(self.problem.arms)
        for context, arm in zip(contexts, arms, strict=True):
            self.cases[len(self.cases) + 1] = ModelCase(
                dict(context), dict(arm), restricted, request
            )
            self.events += 1
        if request is not None:
            self.requests[request] = list(range(first, len(self.cases) + 1))
            self.questions[request] = (self.problem, contexts, left)

    def tell(self, number, values, played=None, unrelated=False):
        if played is None and self.cases[number].repeats(values):
            return  # also once it was withdrawn
        case = self._open(number)
        self._need_variables(values)
        if not values and played is None:
            raise Refused("nothing was told")
        is_news = False
        if played is not None and (case.played is not None or played != case.asked):
            is_news = (played, unrelated) != (case.played, case.unrelated)
            if is_news and case.played is not None:
                raise Refused("another arm was told before")
            if is_news and _contradicts(case.values, played):
                raise Refused("the arm sets what was told otherwise")
        arm = played if is_news else case.arm
        if _contradicts(values, arm):
            raise Refused("the arm set something else")
        fresh, is_old = {}, False
        for name, label in values.items():
            if name in arm:
                continue
            known = case.context if name in case.context else case.values
            if name in known and known[name] == label:
                continue
            if name in case.context:
                raise Refused("another context")
            if name not in case.values:
                fresh[name] = label
            elif label in case.earlier.get(name, ()):
                is_old = True
            else:
                raise Refused("told otherwise")
        if is_old and fresh:
            raise Refused("partly new, partly from before a correction")
        if fresh or is_news:
            case.values |= fresh
            if is_news:
                case.play(played, unrelated)
            self._changed(case)

    def amend(self, number, values, played=None, unrelated=False):
        case = self._open(number)
        self._need_variables(values)
        if not values and played is None:
            raise Refused("nothing is corrected")
        then = (case.played, case.unrelated)
        if played is not None:
            then = (None, False) if played == case.asked else (played, unrelated)
        arm = case.asked if then[0] is None else then[0]
        if _contradicts({**case.values, **values}, arm):
            raise Refused("the arm set something else")
        changed = {}
        for name, label in values.items():
            if name in case.context and label is None:
                raise Refused("context is always seen")
            if name not in (*case.context, *case.values, *case.arm, *arm):
                raise Refused("not told yet")
            known = {**case.context, **case.values}
            if name not in arm and (name not in known or known[name] != label):
                changed[name] = label
        if not changed and then == (case.played, case.unrelated):
            return
        for name, label in changed.items():
            known = case.context if name in case.context else case.values
            if name in known:
                case.earlier.setdefault(name, []).append(known[name])
            known[name] = label
        if then != (case.played, case.unrelated):
            case.play(*then)
        self._changed(case)

    def withdraw(self, number):
        case = self.cases[number]
        if case.status == "withdrawn":
            return
        if case.status != "pending":
            raise Refused("it has its outcome, or was erased")
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
            raise Refused("the same table twice")
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
            raise Refused("no such variable")

    def _changed(self, case):
        if case.status == "pending" and self.problem.reward in case.values:
            case.status = "done"
        self.events += 1

    # -- what must be seen ---------------------------------------------------------------------

    def seen(self):
        """Every decision as a tuple."""
        return [
            (number, case.status, case.context, case.asked, case.values, case.played,
             case.unrelated, case.restricted, case.request)
            for number, case in self.cases.items()
        ]  # fmt: skip

    def belief(self):
        problem, _, learn_restricted = self.plan
        belief = Belief(problem)
        told = [
            (case.arm, case.known)
            for case in self.cases.values()
            if case.values
            and (learn_restricted or not case.restricted)
            and (case.played is None or case.unrelated)
        ]
        for arm, known in told + self.rows:
            values = {name: label for name, label in known.items() if name in problem.domains}
            if problem.reward in arm or not arm.keys() <= problem.domains.keys():
                continue
            if all(values.get(name) is not None for name in problem.context):
                belief.learn(past_record(problem, arm, values))
        return belief


def seen_of(case):
    """What an experiment hands out, as the model's tuples."""
    return (
        case.id, case.status, case.context, dict(case.asked), case.values,
        None if case.played is None else dict(case.played), case.is_unrelated, case.is_restricted,
        case.request_id,
    )  # fmt: skip


def _sets_all(arm, ban):
    return all(arm.get(name) == label for name, label in ban.items()) if ban else not arm


def _contradicts(values, arm):
    return any(name in arm and label not in (None, arm[name]) for name, label in values.items())
