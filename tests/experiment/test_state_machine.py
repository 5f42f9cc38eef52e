"""Random sequences of calls, compared with a simple model of an experiment.

`DOWISE_COURSES=500` runs 500 longer sequences, which differ each time.
"""

import os
import warnings
from contextlib import contextmanager

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.experiments import OrderDependentPolicy
from support.reference_experiment import Model, Refused, decision_tuple

from dowise import CausalGraph, DowiseError, Problem
from dowise.errors import DowiseWarning
from dowise.experiment import replay, snapshots
from dowise.experiment.experiment import Experiment
from dowise.experiment.storage import MemoryStorage, Snapshot
from dowise.policies import registry

# Some imported tables have no reward in any row, which is a warning.
pytestmark = pytest.mark.filterwarnings("ignore:.*none with a value of the reward")

COURSES = int(os.environ.get("DOWISE_COURSES", "0"))


def problem(text, **roles):
    return Problem(
        CausalGraph.parse(text), "Y", "C", **{"non_manipulable": "Z", "arms": "all", **roles}
    )


GRAPH = "C -> X -> Z -> Y; C -> Y; W -> Y"
PROBLEMS = (
    problem(GRAPH),
    problem(f"{GRAPH}; X -> Y"),
    problem("C -> X -> Z -> Y; C -> Y"),  # W is dropped
    problem(GRAPH, non_manipulable=("X", "Z")),  # X can't be set any more
)
OPTIONS = {
    "commit-kg": {},
    "ids": {"samples": 16},
    "ts": {"propensity_samples": 16},
    "ucb": {},
    "random": {},
    "in-order": {},
}
ARMS = ("do()", "do(X=0)", "do(X=1)", "do(W=0)", "do(W=1)", "do(W=1, X=0)")


def import_quietly(program, table, again):
    """Import records, without the warning that none has a reward."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DowiseWarning)
        program.import_records(table, again=again)


class Crash(Exception):  # noqa: N818 (not an error of the package)
    pass


class BrittleStorage(MemoryStorage):
    """Fails once at the point named by `fails`."""

    fails = None

    def fail(self, where):
        if self.fails == where:
            self.fails = None
            raise Crash(where)

    @contextmanager
    def transaction(self, experiment, on_wait=None):
        with super().transaction(experiment, on_wait) as block:
            inner = block.append

            def append(events):
                self.fail("before append")
                inner(events)
                self.fail("after append")

            block.append = append
            yield block
            if block.added:
                self.fail("at commit")
        if block.added:
            self.fail("after commit")

    def replace_snapshot(self, name, change):
        if name in self._snapshots:
            self._snapshots[name] = Snapshot(*change(self._snapshots[name]))


LABELS = st.sampled_from(["0", "1", None])
VALUES = st.dictionaries(st.sampled_from("CWXYZ"), LABELS, min_size=1, max_size=3)
CONTEXT = st.sampled_from([{"C": "0"}, {"C": "1"}])
REQUEST = st.sampled_from([None, None, "a", "b"])
SOME_ARMS = st.none() | st.lists(st.sampled_from(ARMS), min_size=1, max_size=3)
NUMBER = st.integers(0, 10**6)
WHICH = st.booleans()
ROWS = st.lists(
    st.tuples(st.sampled_from(ARMS[:3]), st.tuples(*[LABELS] * 4)), min_size=1, max_size=4
)
FAILURES = st.sampled_from(["before append", "after append", "at commit", "after commit"])


class CallSequences(RuleBasedStateMachine):
    """Two programs on one store, which stop, fail and continue."""

    def __init__(self):
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(snapshots, "FIRST_SNAPSHOT", 4)
        self.patch.setattr(replay, "MIN_BATCH", 3)
        self.patch.setattr(registry, "_POLICIES", dict(registry._POLICIES))
        registry.register_policy("in-order")(OrderDependentPolicy)

    def teardown(self):
        try:
            if hasattr(self, "programs"):
                audit = self.open().audit(head=self.programs[0].head)
                assert audit.ok, str(audit.finding)
                assert audit.events == self.model.events
        finally:
            self.patch.undo()

    def open(self):
        return Experiment.open(self.storage, actor="course")

    @initialize(policy=st.sampled_from([*OPTIONS]), seed=st.integers(0, 2**64))
    def create(self, policy, seed):
        self.storage = BrittleStorage()
        first = Experiment.create(
            self.storage, "w", PROBLEMS[0], policy, OPTIONS[policy], seed, actor="course"
        )
        self.programs = [first, self.open()]
        self.model = Model(PROBLEMS[0], policy)
        self.model.questions = {}

    def call_both(self, by_model, by_experiment):
        """Make the same call to both; the experiment must refuse what the model refuses."""
        try:
            by_model()
        except Refused as reason:
            with pytest.raises(DowiseError):
                by_experiment()
            return str(reason)
        return by_experiment()

    def number(self, number):
        return number % len(self.model.cases) + 1

    def arm(self, text):
        return None if text is None else dict(self.model.problem.intervention(text))

    # -- asking --------------------------------------------------------------------------------

    @rule(
        which=WHICH, contexts=st.lists(CONTEXT, min_size=1, max_size=3), request=REQUEST,
        allowed=SOME_ARMS, forbid=SOME_ARMS,
    )  # fmt: skip
    def ask(self, which, contexts, request, allowed, forbid):
        program, model = self.programs[which], self.model
        are_valid = [self.is_valid(arm) for arm in (*(allowed or ()), *(forbid or ()))]
        try:
            if not all(are_valid):
                raise Refused("not an intervention")
            bans = None if forbid is None else [self.arm(arm) for arm in forbid]
            only = None if allowed is None else [self.arm(arm) for arm in allowed]
            if not {*map(str, only or ())} <= {str(dict(arm)) for arm in model.problem.arms}:
                raise Refused("not one of the arms")
            before = model.answered(request, contexts, only, bans)
            arms = model.allowed(model.problem, only, bans)
        except Refused:
            with pytest.raises(DowiseError):
                program.ask_many(contexts, request, allowed, forbid)
            return
        asked = program.ask_many(contexts, request, allowed, forbid)
        if before is not None:
            assert [decision.id for decision in asked] == before
            return
        first = len(model.cases) + 1
        assert [decision.id for decision in asked] == [*range(first, first + len(asked))]
        excluded = np.array([arm not in arms for arm in model.problem.arms])
        for decision in asked:
            assert decision.arm in arms and decision.probabilities[excluded].sum() == 0
            assert decision.probabilities.sum() == pytest.approx(1) and decision.probability > 0
        model.ask([decision.arm for decision in asked], request, contexts, arms)

    def is_valid(self, text):
        try:
            self.model.problem.intervention(text)
        except DowiseError:
            return False
        return True

    # -- telling -------------------------------------------------------------------------------

    @precondition(lambda self: self.model.cases)
    @rule(which=WHICH, number=NUMBER, values=VALUES)
    def tell(self, which, number, values):
        number = self.number(number)
        self.call_both(
            lambda: self.model.tell(number, values),
            lambda: self.programs[which].tell(number, values),
        )

    @precondition(lambda self: self.model.cases)
    @rule(which=WHICH, number=NUMBER, labels=st.tuples(*[st.sampled_from("01")] * 4))
    def tell_all(self, which, number, labels):
        number = self.number(number)
        case = self.model.cases[number]
        values = dict(zip("WXYZ", labels, strict=True))
        values = {x: label for x, label in values.items() if x in self.model.problem.domains}
        values |= {name: label for name, label in case.arm.items() if name in values}
        self.call_both(
            lambda: self.model.tell(number, values),
            lambda: self.programs[which].tell(number, values),
        )

    @precondition(lambda self: self.model.cases)
    @rule(
        which=WHICH, number=NUMBER, values=VALUES | st.just({}), played=st.sampled_from(ARMS),
        unrelated=st.booleans(), amends=st.booleans(),
    )  # fmt: skip
    def played_otherwise(self, which, number, values, played, unrelated, amends):
        if not self.is_valid(played):
            return
        number, arm, program = self.number(number), self.arm(played), self.programs[which]
        if amends:
            self.call_both(
                lambda: self.model.amend(number, values, arm, unrelated),
                lambda: program.amend(number, values, "typo", played=played, unrelated=unrelated),
            )
        else:
            self.call_both(
                lambda: self.model.tell(number, values, arm, unrelated),
                lambda: program.tell(number, values, played=played, unrelated=unrelated),
            )

    @precondition(lambda self: self.model.cases)
    @rule(which=WHICH, number=NUMBER, values=VALUES)
    def amend(self, which, number, values):
        number = self.number(number)
        self.call_both(
            lambda: self.model.amend(number, values),
            lambda: self.programs[which].amend(number, values, "typo"),
        )

    @precondition(lambda self: self.model.cases)
    @rule(which=WHICH, number=NUMBER)
    def withdraw(self, which, number):
        number = self.number(number)
        self.call_both(
            lambda: self.model.withdraw(number),
            lambda: self.programs[which].withdraw(number, "left"),
        )

    @precondition(lambda self: self.model.cases)
    @rule(which=WHICH, number=NUMBER)
    def erase(self, which, number):
        number = self.number(number)
        self.model.erase(number)
        self.programs[which].erase(number, "asked to")

    # -- the experiment itself -----------------------------------------------------------------

    @rule(
        which=WHICH, index=st.none() | st.integers(0, len(PROBLEMS) - 1),
        policy=st.none() | st.sampled_from([*OPTIONS]), learn=st.none() | st.booleans(),
    )  # fmt: skip
    def revise(self, which, index, policy, learn):
        new = None if index is None else PROBLEMS[index]
        problem, current, learns = self.model.plan
        self.model.revise(
            problem if new is None else new, policy or current, learns if learn is None else learn
        )
        self.programs[which].revise(
            new, policy, OPTIONS[policy] if policy else None, "better", learn_restricted=learn
        )

    @rule(which=WHICH, rows=ROWS, again=st.booleans())
    def import_rows(self, which, rows, again):
        arms = [self.model.problem.intervention(arm) for arm, _ in rows if self.is_valid(arm)]
        if len(arms) < len(rows):
            return
        records = [dict(zip("CXYZ", labels, strict=True)) for _, labels in rows]
        for arm, values in zip(arms, records, strict=True):
            values |= arm
        table = {name: [values[name] for values in records] for name in "CXYZ"}
        table["arm"] = [str(arm) for arm in arms]
        self.call_both(
            lambda: self.model.import_rows(
                [(dict(arm), values) for arm, values in zip(arms, records, strict=True)], again
            ),
            lambda: import_quietly(self.programs[which], table, again),
        )

    # -- stopping and failing ------------------------------------------------------------------

    @rule(which=WHICH)
    def stop_and_reopen(self, which):
        self.programs[which] = self.open()

    @rule(which=WHICH, kind=st.integers(0, 3), position=NUMBER)
    def damage_the_snapshot(self, which, kind, position):
        def change(snapshot):
            body = bytearray(snapshot.body + b"x")
            body[position % len(body)] ^= 1 << position % 8
            return [
                snapshot._replace(body=bytes(body)),
                snapshot._replace(body=snapshot.body[: position % len(body)][:-1]),
                snapshot._replace(number=max(snapshot.number - 1, 1)),
                snapshot._replace(hash="0" * 64),
            ][kind]

        self.storage.replace_snapshot("w", change)
        self.programs[which] = self.open()

    @precondition(lambda self: self.model.cases)
    @rule(which=WHICH, where=FAILURES, number=NUMBER, label=LABELS, continues=st.booleans())
    def fail_while_telling(self, which, where, number, label, continues):
        number, program = self.number(number), self.programs[which]
        self.storage.fails = where
        try:
            program.tell(number, {"Y": label})
        except Crash:
            if where == "after commit":
                self.model.tell(number, {"Y": label})
        except DowiseError:
            pass
        self.storage.fails = None
        if not continues:
            self.programs[which] = self.open()
        self.call_both(
            lambda: self.model.tell(number, {"Y": label}),
            lambda: self.programs[which].tell(number, {"Y": label}),
        )

    @rule(which=WHICH, where=FAILURES, context=CONTEXT, continues=st.booleans())
    def fail_while_asking(self, which, where, context, continues):
        request = f"r{len(self.model.cases)}"
        self.storage.fails = where
        with pytest.raises(Crash):
            self.programs[which].ask(context, request)
        if not continues:
            self.programs[which] = self.open()
        asked = self.programs[which].ask(context, request)
        assert asked.id == len(self.model.cases) + 1
        self.model.ask([asked.arm], request, [context], list(self.model.problem.arms))

    # -- invariants ----------------------------------------------------------------------------

    @invariant()
    def experiments_equal_the_model(self):
        if not hasattr(self, "model"):
            return
        expected = self.model.decisions()
        pending = [number for number, status, *_ in expected if status == "pending"]
        belief = self.model.belief()
        for program in self.programs:
            assert program.head.number == self.model.events
            assert [decision_tuple(case) for case in program.records()] == expected
            assert [case.id for case in program.pending()] == pending
            assert np.array_equal(program.belief.parameters, belief.parameters)


TestCallSequences = CallSequences.TestCase
TestCallSequences.settings = settings(
    max_examples=COURSES or settings.default.max_examples // 2,
    stateful_step_count=60 if COURSES else 30,
    derandomize=not COURSES,
    deadline=None,
    database=None,
    suppress_health_check=[*HealthCheck],
    report_multiple_bugs=False,
)
