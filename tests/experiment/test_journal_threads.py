"""Experiments shared by threads: no lost update, no gap, no needless waiting."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.errors import raises_code
from support.experiments import WARD, deciding_policy, new_experiment

from dowise import Belief, DowiseError
from dowise.experiment.config import ExperimentConfig
from dowise.experiment.experiment import Experiment
from dowise.experiment.state import ExperimentState
from dowise.experiment.storage import MemoryStorage

THREADS, ROUNDS = 8, 6


def in_threads(work):
    """Run a function in threads that start at the same time; raise the first error."""
    barrier = threading.Barrier(THREADS)

    def begin(number):
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))


def outcome_of(asked, number):
    seen = {"X": number % 2, "W": 0, "Z": number // 2 % 2, "Y": int(number % 3 == 0)}
    return seen | dict(asked.arm)


def check_experiment(experiment):
    records = experiment.records()
    assert [case.id for case in records] == [*range(1, THREADS * ROUNDS + 1)]
    assert all(case.status == "done" for case in records)
    twin = Belief(WARD)
    for case in records:
        twin.update(case.arm, case.known)
    assert np.array_equal(experiment.belief.parameters, twin.parameters)
    assert experiment.head.number == 1 + 3 * THREADS * ROUNDS
    audit = experiment.audit()
    assert audit.ok, audit.finding


def ask_and_tell(experiment, number):
    for _ in range(ROUNDS):
        asked = experiment.ask({"C": number % 2})
        seen = outcome_of(asked, number)
        reward = {"Y": seen.pop("Y")}
        experiment.tell(asked.id, seen)
        experiment.tell(asked.id, reward)


def test_threads_share_an_experiment():
    experiment = new_experiment()
    in_threads(lambda number: ask_and_tell(experiment, number))
    check_experiment(experiment)


def test_threads_with_an_experiment_each():
    first = new_experiment()
    storage = first._journal.storage
    in_threads(lambda number: ask_and_tell(Experiment.open(storage), number))
    check_experiment(first)


@pytest.mark.parametrize("shared", [True, False])
def test_threads_on_a_file(tmp_path, shared):
    path = tmp_path / "ward.db"
    with Experiment.create(path, "w", WARD, "random", seed=1) as first:

        def work(number):
            if shared:
                return ask_and_tell(first, number)
            with Experiment.open(path) as own:
                return ask_and_tell(own, number)

        in_threads(work)
        check_experiment(first)


def test_the_same_request_of_many_threads_is_one_decision():
    storage = MemoryStorage()
    new_experiment(storage=storage)
    asked = in_threads(lambda _: Experiment.open(storage).ask({"C": 1}, "r"))
    assert {decision.id for decision in asked} == {1} and len(
        {str(decision.arm) for decision in asked}
    ) == 1
    assert Experiment.open(storage).head.number == 2


def test_the_same_tell_of_many_threads_is_one_event():
    experiment = new_experiment()
    experiment.ask_many([{"C": 1}] * 4)

    def work(number):
        for case in experiment.records():
            experiment.tell(case.id, {"Y": case.id % 2})
            if number % 2:
                assert experiment.status({"C": 1}, evidence=False).counts["asked"] == 4
                assert experiment.belief.parameters.min() > 0
                assert experiment.audit().ok

    in_threads(work)
    assert experiment.head.number == 1 + 4 + 4


# -- actors ---------------------------------------------------------------------------------------


def test_actors_share_the_state_and_the_policy(monkeypatch):
    applied, policies = [], []
    apply, make = ExperimentState.apply, ExperimentConfig.make_policy
    experiment = new_experiment()
    monkeypatch.setattr(
        ExperimentState, "apply", lambda f, e: (applied.append(e.number), apply(f, e))
    )
    monkeypatch.setattr(
        ExperimentConfig, "make_policy", lambda config: (policies.append(config), make(config))[1]
    )
    actors = [experiment.acting_as(f" ward {number} ") for number in range(THREADS)]
    in_threads(lambda number: ask_and_tell(actors[number], number))
    assert sorted(applied) == [*range(2, 2 + 3 * THREADS * ROUNDS)]
    assert len(policies) == 1
    monkeypatch.undo()
    check_experiment(experiment)
    actors_of = {}
    for event in experiment.events(after=1):
        actors_of.setdefault(event.payload["decision"], []).append(event.actor)
    for number, names in actors_of.items():
        context = experiment.case(number).context["C"]
        assert len(names) == 3 and len({*names}) == 1
        assert names[0].startswith("ward ") and int(names[0][5:]) % 2 == int(context)


def test_each_actor_has_its_name():
    experiment = new_experiment(actor="ann")
    with raises_code("invalid-type", "actor="):
        experiment.acting_as("\n")
    experiment.acting_as("bob").ask({"C": 1})
    experiment.ask({"C": 1})
    assert [event.actor for event in experiment.events()] == ["ann", "bob", "ann"]


def test_a_configuration_is_compiled_once(monkeypatch):
    experiment = new_experiment()
    warm_ups = []
    policy = type(deciding_policy(experiment))
    decide = policy.decide

    def counted(self, context, rng, allowed=None):
        if rng == 0:
            warm_ups.append(self)
        return decide(self, context, rng, allowed)

    monkeypatch.setattr(policy, "decide", counted)
    for number in range(4):
        experiment.acting_as(f"ward {number}").ask({"C": 1})
    assert len(warm_ups) == 1
    experiment.acting_as("ann").revise(options={"samples": 60}, reason="more draws")
    experiment.ask({"C": 1})
    experiment.acting_as("bob").ask({"C": 1})
    assert len(warm_ups) == 2


# -- queries and writers do not wait for each other ----------------------------------------------

TIMEOUT = 60  # seconds until a test fails


class PausedFunction:
    """A function in which other threads wait, from `started` until `gate` is set."""

    def __init__(self, monkeypatch, owner, name):
        self.started, self.gate = threading.Event(), threading.Event()
        self._real, self._main = getattr(owner, name), threading.current_thread()
        monkeypatch.setattr(owner, name, self.function())

    def function(self):
        def paused(*arguments, **options):
            if threading.current_thread() is not self._main:
                self.started.set()
                assert self.gate.wait(TIMEOUT)
            return self._real(*arguments, **options)

        return paused

    def while_paused(self, work, check):
        """Start work, call `check` while it is paused, and return its result."""
        with ThreadPoolExecutor(1) as pool:
            result = pool.submit(work)
            try:
                assert self.started.wait(TIMEOUT), result.exception(0)
                check()
                assert not result.done()
            finally:
                self.gate.set()
            return result.result(TIMEOUT)


QUERIES = {
    "status": ("dowise.belief.Belief", "draw", lambda e, _: e.status(evidence=False)),
    "status in a context": ("dowise.belief.Belief", "draw", lambda e, _: e.status({"C": 1})),
    "evidence": (
        "dowise.belief.monitor.Monitor",
        "evidence",
        lambda e, _: e.status(evidence=True),
    ),
    "evidence of new records": (
        "dowise.belief.monitor.Monitor",
        "catch_up",
        lambda e, _: e.status(evidence=True),
    ),
    "rounds": (
        "dowise.experiment.read_model",
        "value_of_continuing",
        lambda e, _: e.status(evidence=False, rounds=2),
    ),
    "history": ("dowise.belief.Belief", "draw", lambda e, _: e.history()),
    "explain": ("dowise.belief.Belief", "draw", lambda e, _: e.explain(1)),
    "evaluate": ("dowise.experiment.view", "evaluate", lambda e, _: e.evaluate("random")),
    "audit": ("dowise.experiment.audit", "decide", lambda e, _: e.audit()),
    "export": (
        "dowise.experiment.view",
        "export_table",
        lambda e, folder: e.export(folder / "w.csv"),
    ),
    "frame": ("dowise.experiment.view", "export_table", lambda e, _: e.frame()),
    "records": ("dowise.experiment.view", "_copies", lambda e, _: e.records()),
    "pending": ("dowise.experiment.view", "_copies", lambda e, _: e.pending()),
    "idle": ("dowise.experiment.view", "UnusedValues", lambda e, _: e.idle(1)),
}


def owner_of(path):
    """Return the module or the class with this name."""
    return pytest.importorskip(path) if path.islower() else _class(*path.rsplit(".", 1))


def _class(module, name):
    return getattr(pytest.importorskip(module), name)


@pytest.fixture
def played_experiment():
    experiment = new_experiment()
    for number in range(4):
        asked = experiment.ask({"C": number % 2})
        experiment.tell(asked.id, outcome_of(asked, number))
    experiment.ask({"C": 1})
    return experiment


@pytest.mark.parametrize("name", QUERIES)
def test_no_writer_waits_for_a_long_query(name, played_experiment, monkeypatch, tmp_path):
    path, function, query = QUERIES[name]
    paused = PausedFunction(monkeypatch, owner_of(path), function)

    def write():
        asked = played_experiment.ask({"C": 0})
        played_experiment.acting_as("bob").tell(asked.id, outcome_of(asked, 1))
        played_experiment.amend(1, {"Y": 1 - int(played_experiment.case(1).values["Y"])}, "typo")
        assert played_experiment.status(evidence=False).counts["asked"] == 6

    paused.while_paused(lambda: query(played_experiment, tmp_path), write)
    assert played_experiment.audit().ok


def test_a_query_belongs_to_one_moment(played_experiment, monkeypatch):
    paused = PausedFunction(monkeypatch, Belief, "draw")
    early, early_records = played_experiment.status(evidence=True), played_experiment.records()

    def write():
        played_experiment.tell(
            5, {"Y": 1, "Z": 1, "X": 1, "W": 0} | dict(played_experiment.case(5).arm)
        )
        played_experiment.amend(1, {"C": 1 - int(played_experiment.case(1).context["C"])}, "typo")

    late = paused.while_paused(lambda: played_experiment.status(evidence=True), write)
    document = early.as_dict() | {"pending": [case.id for case in early.pending]}
    assert late.as_dict() | {"pending": [case.id for case in late.pending]} == document
    assert early_records[0] == early_records[0].copy() != played_experiment.case(1)
    assert played_experiment.status().counts["pending"] == 0


@pytest.mark.parametrize("query", ["status", "history", "explain"])
def test_two_queries_run_at_the_same_time(query, played_experiment, monkeypatch):
    both, draw = threading.Barrier(2), Belief.draw
    first = threading.local()

    def met(*arguments):
        if not hasattr(first, "done"):
            first.done = True
            both.wait(TIMEOUT)
        return draw(*arguments)

    monkeypatch.setattr(Belief, "draw", met)
    queries = {
        "status": played_experiment.status,
        "history": played_experiment.history,
        "explain": lambda: played_experiment.explain(1),
    }
    with ThreadPoolExecutor(2) as pool:
        for result in [pool.submit(queries[query]), pool.submit(played_experiment.status)]:
            result.result(TIMEOUT)


@pytest.mark.parametrize("policy", ["ids", "ucb"])
def test_no_query_waits_for_a_decision(policy, monkeypatch):
    experiment = new_experiment(policy=policy)
    experiment.ask({"C": 1})
    paused = PausedFunction(monkeypatch, type(deciding_policy(experiment)), "decide")

    def query():
        assert experiment.head.number == 2
        assert experiment.status().counts["asked"] == 1
        assert len(experiment.records()) == len(experiment.pending()) == 1
        assert experiment.belief.parameters.min() > 0
        assert len(experiment.frame()) == experiment.counted().all + 1 == 1

    assert paused.while_paused(lambda: experiment.ask({"C": 0}), query).id == 2
    assert experiment.head.number == 3


def test_no_query_waits_for_the_store():
    experiment = new_experiment()
    storage, started, gate = experiment._journal.storage, threading.Event(), threading.Event()
    with ThreadPoolExecutor(2) as pool:

        def hold():
            with storage.transaction("w"):
                started.set()
                assert gate.wait(TIMEOUT)

        held = pool.submit(hold)
        assert started.wait(TIMEOUT)
        asked = pool.submit(experiment.ask, {"C": 0})
        try:
            for _ in range(20):
                assert experiment.status().counts["asked"] == 0
        finally:
            gate.set()
        held.result(TIMEOUT)
        assert asked.result(TIMEOUT).id == 1


@pytest.mark.parametrize("fails", [True, False])
def test_events_are_visible_when_they_are_durable(fails, monkeypatch):
    experiment = new_experiment()
    experiment.ask({"C": 0})
    commit, heads = MemoryStorage._commit, []
    watcher = threading.Thread(target=lambda: heads.append(experiment.head.number))

    def late(storage, block):
        watcher.start()
        watcher.join(0.1)  # it must wait until the commit has ended
        assert not heads
        if fails:
            raise DowiseError("the disk is full")
        commit(storage, block)

    monkeypatch.setattr(MemoryStorage, "_commit", late)
    if fails:
        with pytest.raises(DowiseError, match="the disk is full"):
            experiment.tell(1, {"Z": 0})
    else:
        experiment.tell(1, {"Z": 0})
    watcher.join(TIMEOUT)
    assert heads == [2 if fails else 3]


def test_one_of_many_equal_calls_reports_the_change():
    experiment = new_experiment()
    number = experiment.ask({"C": 1}).id
    experiment.tell(number, {"Z": 0})
    told = in_threads(lambda _: experiment.tell(number, {"Y": 1}))
    (before,) = [case.previous for case in told if case.changed]
    assert (before.values, before.status) == ({"Z": "0"}, "pending")
    assert experiment.case(number).previous is None and not experiment.case(number).changed
    assert sum(in_threads(lambda _: experiment.revise(policy="ts", reason="faster"))) == 1
    assert sum(in_threads(lambda _: experiment.erase(number, "asked for"))) == 1
