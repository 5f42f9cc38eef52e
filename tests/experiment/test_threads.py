"""Experiments that many threads share: no lost update, no gap, no wrong answer."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from live_tools import WARD, new

from dowise import Belief
from dowise.experiment.experiment import Experiment
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
