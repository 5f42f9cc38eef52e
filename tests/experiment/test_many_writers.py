"""Sixteen processes that ask and tell at once: no lock to be seen, no gap, nothing lost."""

import multiprocessing
import random
from threading import Thread

import pytest

from dowise import Experiment

WRITERS, ROUNDS = 16, 5


def write(place, seed, results):
    """Ask and tell, in a process of its own; what was answered goes to `results`."""
    rng = random.Random(seed)
    try:
        with Experiment.open(place, "ward") as experiment:
            said = []
            for _ in range(ROUNDS):
                number = experiment.ask({"C": rng.randrange(2)}).id
                values = {"Z": str(rng.randrange(2)), "Y": str(rng.randrange(2))}
                experiment.tell(number, {"Z": values["Z"]})
                experiment.tell(number, {"Y": values["Y"]})
                said.append((number, values))
        results.put(said)
    except BaseException as error:
        results.put(repr(error))
        raise


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["ts", "ucb"])
def test_sixteen_processes_at_once(place, policy):
    with Experiment.create(place, "ward", "task2", policy, seed=1) as experiment:
        experiment.tell(experiment.ask({"C": 0}).id, {"Z": 0, "Y": 1})  # kernels are loaded
    context = multiprocessing.get_context("fork")  # which the kernels need not be loaded again for
    results = context.Queue()
    writers = [context.Process(target=write, args=(place, i, results)) for i in range(WRITERS)]
    for writer in writers:
        writer.start()
    said = [results.get(timeout=120) for _ in writers]
    for writer in writers:
        writer.join(60)
    assert all(isinstance(one, list) for one in said), said
    answered = dict(pair for one in said for pair in one)
    with Experiment.open(place) as experiment:
        cases = {case.id: case for case in experiment.records()}
        assert sorted(cases) == list(range(1, WRITERS * ROUNDS + 2))
        assert {i: cases[i].values for i in answered} == answered
        assert len(answered) == WRITERS * ROUNDS
        assert experiment.head.number == 1 + 2 + 3 * WRITERS * ROUNDS
        audit = experiment.audit()
        assert audit.ok, audit.finding


def test_threads_of_one_experiment(tmp_path):
    experiment = Experiment.create(tmp_path / "ward.db", "ward", "task1", "ts", seed=1)
    errors = []

    def work(seed):
        rng = random.Random(seed)
        try:
            for _ in range(10):
                number = experiment.ask().id
                experiment.tell(number, {"Z": rng.randrange(2), "Y": rng.randrange(2)})
                assert experiment.status(evidence=False).counts["asked"] >= number
        except BaseException as error:
            errors.append(error)

    threads = [Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert [case.id for case in experiment.records()] == list(range(1, 61))
    assert {case.status for case in experiment.records()} == {"done"}
    assert experiment.audit().ok
    experiment.close()
