"""Sixteen processes that ask and tell at the same time: no lock errors, no gap, nothing lost."""

import multiprocessing
import random

import pytest

from dowise import Experiment

WRITERS, ROUNDS = 16, 5


def ask_and_tell(place, seed, results):
    """Ask and tell in another process; put the results into a queue."""
    rng = random.Random(seed)
    try:
        with Experiment.open(place, "ward") as experiment:
            answers = []
            for _ in range(ROUNDS):
                number = experiment.ask({"C": rng.randrange(2)}).id
                values = {"Z": str(rng.randrange(2)), "Y": str(rng.randrange(2))}
                experiment.tell(number, {"Z": values["Z"]})
                experiment.tell(number, {"Y": values["Y"]})
                answers.append((number, values))
        results.put(answers)
    except BaseException as error:
        results.put(repr(error))
        raise


@pytest.mark.slow
def test_16_processes_ask_and_tell(place):
    with Experiment.create(place, "ward", "task2", "ts", seed=1) as experiment:
        experiment.tell(experiment.ask({"C": 0}).id, {"Z": 0, "Y": 1})  # loads the kernels
    context = multiprocessing.get_context("fork")  # so that kernels are not loaded again
    results = context.Queue()
    writers = [
        context.Process(target=ask_and_tell, args=(place, i, results)) for i in range(WRITERS)
    ]
    for writer in writers:
        writer.start()
    answers = [results.get(timeout=120) for _ in writers]
    for writer in writers:
        writer.join(60)
    assert all(isinstance(answer, list) for answer in answers), answers
    answered = dict(pair for answer in answers for pair in answer)
    with Experiment.open(place) as experiment:
        cases = {case.id: case for case in experiment.records()}
        assert sorted(cases) == list(range(1, WRITERS * ROUNDS + 2))
        assert {i: cases[i].values for i in answered} == answered
        assert len(answered) == WRITERS * ROUNDS
        assert experiment.head.number == 1 + 2 + 3 * WRITERS * ROUNDS
        audit = experiment.audit()
        assert audit.ok, audit.finding
