"""Experiments that many threads share: no lost update, no gap, no wrong answer."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.experiments import WARD, deciding_policy, new

from dowise import Belief, DowiseError
from dowise.experiment.config import ExperimentConfig
from dowise.experiment.experiment import Experiment
from dowise.experiment.state import ExperimentState
from dowise.experiment.storage import MemoryStorage

THREADS, ROUNDS = 8, 6


def together(work):
    """Run it in threads that begin at the same moment; the first error of any is raised."""
    gate = threading.Barrier(THREADS)

    def begin(number):
        gate.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(begin, range(THREADS)))


def outcome(asked, number):
    seen = {"X": number % 2, "W": 0, "Z": number // 2 % 2, "Y": int(number % 3 == 0)}
    return seen | dict(asked.arm)


def check(experiment):
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
        seen = outcome(asked, number)
        reward = {"Y": seen.pop("Y")}
        experiment.tell(asked.id, seen)
        experiment.tell(asked.id, reward)


def test_one_experiment_for_all_threads():
    experiment = new()
    together(lambda number: ask_and_tell(experiment, number))
    check(experiment)


def test_one_for_each_thread_on_the_same_store():
    first = new()
    storage = first._journal.storage
    together(lambda number: ask_and_tell(Experiment.open(storage), number))
    check(first)


@pytest.mark.parametrize("shared", [True, False])
def test_on_a_file(tmp_path, shared):
    path = tmp_path / "ward.db"
    with Experiment.create(path, "w", WARD, "random", seed=1) as first:

        def work(number):
            if shared:
                return ask_and_tell(first, number)
            with Experiment.open(path) as own:
                return ask_and_tell(own, number)

        together(work)
        check(first)


def test_the_same_request_from_all_sides_is_one_decision():
    storage = MemoryStorage()
    new(storage=storage)
    asked = together(lambda _: Experiment.open(storage).ask({"C": 1}, "r"))
    assert {one.id for one in asked} == {1} and len({str(one.arm) for one in asked}) == 1
    assert Experiment.open(storage).head.number == 2


def test_the_same_tell_from_all_sides_is_one_event_and_looking_meanwhile_is_fine():
    experiment = new()
    experiment.ask_many([{"C": 1}] * 4)

    def work(number):
        for case in experiment.records():
            experiment.tell(case.id, {"Y": case.id % 2})
            if number % 2:
                assert experiment.status({"C": 1}, evidence=False).counts["asked"] == 4
                assert experiment.belief.parameters.min() > 0
                assert experiment.audit().ok

    together(work)
    assert experiment.head.number == 1 + 4 + 4


# -- actors ---------------------------------------------------------------------------------------


def test_actors_share_what_is_known_and_each_has_its_name_in_what_it_writes(monkeypatch):
    folded, made = [], []
    apply, make = ExperimentState.apply, ExperimentConfig.make_policy
    experiment = new()
    monkeypatch.setattr(
        ExperimentState, "apply", lambda f, e: (folded.append(e.number), apply(f, e))
    )
    monkeypatch.setattr(
        ExperimentConfig, "make_policy", lambda plan: (made.append(plan), make(plan))[1]
    )
    actors = [experiment.acting_as(f" ward {number} ") for number in range(THREADS)]
    together(lambda number: ask_and_tell(actors[number], number))
    assert sorted(folded) == [*range(2, 2 + 3 * THREADS * ROUNDS)]
    assert len(made) == 1
    monkeypatch.undo()
    check(experiment)
    said = {}
    for event in experiment.events(after=1):
        said.setdefault(event.payload["decision"], []).append(event.actor)
    for number, names in said.items():
        context = experiment.case(number).context["C"]
        assert len(names) == 3 and len({*names}) == 1
        assert names[0].startswith("ward ") and int(names[0][5:]) % 2 == int(context)


def test_an_actor_has_a_name_and_whoever_made_the_experiment_keeps_theirs():
    experiment = new(actor="ann")
    with pytest.raises(DowiseError, match="actor="):
        experiment.acting_as("\n")
    experiment.acting_as("bob").ask({"C": 1})
    experiment.ask({"C": 1})
    assert [event.actor for event in experiment.events()] == ["ann", "bob", "ann"]


def test_a_plan_is_warmed_up_once_whoever_asks_and_another_plan_again(monkeypatch):
    experiment = new()
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


# -- nobody waits for a look, nor looks for a decision --------------------------------------------

PATIENCE = 60  # seconds until a test gives up, which a right one never waits for


class Held:
    """A function that another thread is held in, from `begun` on until `gate` is opened."""

    def __init__(self, monkeypatch, owner, name):
        self.begun, self.gate = threading.Event(), threading.Event()
        self._real, self._main = getattr(owner, name), threading.current_thread()
        monkeypatch.setattr(owner, name, self.function())

    def function(self):
        def held(*arguments, **options):
            if threading.current_thread() is not self._main:
                self.begun.set()
                assert self.gate.wait(PATIENCE)
            return self._real(*arguments, **options)

        return held

    def meanwhile(self, work, check):
        """Begin the work, check something while it is held, and give what comes of it."""
        with ThreadPoolExecutor(1) as pool:
            result = pool.submit(work)
            try:
                assert self.begun.wait(PATIENCE), result.exception(0)
                check()
                assert not result.done()
            finally:
                self.gate.set()
            return result.result(PATIENCE)


LOOKS = {
    "status": ("dowise.belief.Belief", "draw", lambda e, _: e.status(evidence=False)),
    "status in a context": ("dowise.belief.Belief", "draw", lambda e, _: e.status({"C": 1})),
    "evidence": (
        "dowise.belief.monitor.Monitor",
        "evidence",
        lambda e, _: e.status(evidence=True),
    ),
    "what records say, learned": (
        "dowise.belief.monitor.Monitor",
        "learn",
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
    """What a path names: a module, or a class in one."""
    return pytest.importorskip(path) if path.islower() else _class(*path.rsplit(".", 1))


def _class(module, name):
    return getattr(pytest.importorskip(module), name)


@pytest.fixture
def warm():
    experiment = new()
    for number in range(4):
        asked = experiment.ask({"C": number % 2})
        experiment.tell(asked.id, outcome(asked, number))
    experiment.ask({"C": 1})
    return experiment


@pytest.mark.parametrize("name", LOOKS)
def test_a_look_that_takes_long_keeps_nobody_from_asking_and_telling(
    name, warm, monkeypatch, tmp_path
):
    path, function, look = LOOKS[name]
    held = Held(monkeypatch, owner_of(path), function)

    def others():
        asked = warm.ask({"C": 0})
        warm.acting_as("bob").tell(asked.id, outcome(asked, 1))
        warm.amend(1, {"Y": 1 - int(warm.case(1).values["Y"])}, "typo")
        assert warm.status(evidence=False).counts["asked"] == 6

    held.meanwhile(lambda: look(warm, tmp_path), others)
    assert warm.audit().ok


def test_a_look_shows_one_moment_whatever_is_written_meanwhile(warm, monkeypatch):
    held = Held(monkeypatch, Belief, "draw")
    early, early_records = warm.status(evidence=True), warm.records()

    def others():
        warm.tell(5, {"Y": 1, "Z": 1, "X": 1, "W": 0} | dict(warm.case(5).arm))
        warm.amend(1, {"C": 1 - int(warm.case(1).context["C"])}, "typo")

    late = held.meanwhile(lambda: warm.status(evidence=True), others)
    page = early.as_dict() | {"pending": [case.id for case in early.pending]}
    assert late.as_dict() | {"pending": [case.id for case in late.pending]} == page
    assert early_records[0] == early_records[0].copy() != warm.case(1)
    assert warm.status().counts["pending"] == 0


@pytest.mark.parametrize("look", ["status", "history", "explain"])
def test_two_looks_compute_at_the_same_time(look, warm, monkeypatch):
    both, draw = threading.Barrier(2), Belief.draw
    first = threading.local()

    def met(*arguments):
        if not hasattr(first, "done"):
            first.done = True
            both.wait(PATIENCE)
        return draw(*arguments)

    monkeypatch.setattr(Belief, "draw", met)
    works = {"status": warm.status, "history": warm.history, "explain": lambda: warm.explain(1)}
    with ThreadPoolExecutor(2) as pool:
        for result in [pool.submit(works[look]), pool.submit(warm.status)]:
            result.result(PATIENCE)


@pytest.mark.parametrize("policy", ["ids", "ucb"])
def test_looks_go_on_while_a_decision_is_made(policy, monkeypatch):
    experiment = new(policy=policy)
    experiment.ask({"C": 1})
    held = Held(monkeypatch, type(deciding_policy(experiment)), "decide")

    def looks():
        assert experiment.head.number == 2
        assert experiment.status().counts["asked"] == 1
        assert len(experiment.records()) == len(experiment.pending()) == 1
        assert experiment.belief.parameters.min() > 0
        assert len(experiment.frame()) == experiment.counted().all + 1 == 1

    assert held.meanwhile(lambda: experiment.ask({"C": 0}), looks).id == 2
    assert experiment.head.number == 3


def test_looks_go_on_while_one_waits_for_the_store():
    experiment = new()
    storage, begun, gate = experiment._journal.storage, threading.Event(), threading.Event()
    with ThreadPoolExecutor(2) as pool:

        def hold():
            with storage.transaction("w"):
                begun.set()
                assert gate.wait(PATIENCE)

        held = pool.submit(hold)
        assert begun.wait(PATIENCE)
        asked = pool.submit(experiment.ask, {"C": 0})
        try:
            for _ in range(20):
                assert experiment.status().counts["asked"] == 0
        finally:
            gate.set()
        held.result(PATIENCE)
        assert asked.result(PATIENCE).id == 1


@pytest.mark.parametrize("fails", [True, False])
def test_nobody_sees_what_is_not_durable(fails, monkeypatch):
    experiment = new()
    experiment.ask({"C": 0})
    commit, heads = MemoryStorage._commit, []
    watcher = threading.Thread(target=lambda: heads.append(experiment.head.number))

    def late(storage, block):
        watcher.start()
        watcher.join(0.1)  # it must wait, however long
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
    watcher.join(PATIENCE)
    assert heads == [2 if fails else 3]


def test_of_many_who_say_the_same_one_learns_that_it_was_news_and_what_was_before():
    experiment = new()
    number = experiment.ask({"C": 1}).id
    experiment.tell(number, {"Z": 0})
    told = together(lambda _: experiment.tell(number, {"Y": 1}))
    (before,) = [case.previous for case in told if case.changed]
    assert (before.values, before.status) == ({"Z": "0"}, "pending")
    assert experiment.case(number).previous is None and not experiment.case(number).changed
    assert sum(together(lambda _: experiment.revise(policy="ts", reason="faster"))) == 1
    assert sum(together(lambda _: experiment.erase(number, "asked for"))) == 1
