"""Threads that share one experiment, as a server has it: does one of them hold up the others?

    make bench

On a SQLite file, with 2,000 decisions in it. Asking and telling by eight threads beside the same by
one: the steps are one after the other either way, so that a ratio of 1 is the best there is. And
how long an ask takes while another thread looks, beside an ask that is alone.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dowise import Experiment

DECISIONS, ROUNDS, THREADS = 2000, 400, 8
LOOKS = {
    "nobody": None,
    "status": lambda e: e.status(evidence=False),
    "status with evidence": lambda e: e.status(),
    "records": lambda e: e.records(),
    "history": lambda e: e.history(),
    "export": lambda e: e.frame(),
}


def steps(experiment, rounds, seed=0):
    """Ask, and tell in two pieces; the seconds that each ask took."""
    rng, took = random.Random(seed), []
    for _ in range(rounds):
        start = time.perf_counter()
        number = experiment.ask({"C": rng.randrange(2)}).id
        took.append(time.perf_counter() - start)
        experiment.tell(number, {"Z": rng.randrange(2)})
        experiment.tell(number, {"Y": rng.randrange(2)})
    return took


@pytest.fixture(scope="module")
def experiment(tmp_path_factory):
    path = tmp_path_factory.mktemp("threads") / "ward.db"
    with Experiment.create(path, "ward", "task2", seed=1) as experiment:
        steps(experiment, DECISIONS)
        for look in LOOKS.values():
            if look is not None:
                look(experiment)
        yield experiment


def by(experiment, threads):
    """The seconds that some threads take for all rounds together."""
    actors = [experiment.acting_as(f"thread {i}") for i in range(threads)]
    start = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(steps, actors, [ROUNDS // threads] * threads, range(threads)))
    return time.perf_counter() - start


def test_eight_threads_beside_one(benchmark, experiment):
    def both():
        return min(by(experiment, 1) for _ in range(3)), min(
            by(experiment, THREADS) for _ in range(3)
        )

    one, many = benchmark.pedantic(both, rounds=1)
    print(
        f"\nask and tell twice, {ROUNDS} times: one thread {1e3 * one / ROUNDS:.2f} ms each, "
        f"{THREADS} threads {1e3 * many / ROUNDS:.2f} ms ({many / one:.2f} times)"
    )


def asks(experiment, look):
    """How long asks take while another thread looks and looks: the median, and 19 of 20."""
    stop = threading.Event()

    def work():
        while not stop.is_set():
            look(experiment)

    thread = threading.Thread(target=work) if look is not None else None
    if thread is not None:
        thread.start()
    try:
        return np.quantile(steps(experiment, 200), [0.5, 0.95])
    finally:
        stop.set()
        if thread is not None:
            thread.join()


@pytest.mark.parametrize("name", LOOKS)
def test_an_ask_while_another_thread_looks(benchmark, experiment, name):
    alone, most = asks(experiment, None)
    beside, longest = benchmark.pedantic(asks, (experiment, LOOKS[name]), rounds=1)
    print(
        f"\nask beside {name}: median {1e3 * beside:.2f} ms, 19 of 20 within {1e3 * longest:.2f} "
        f"ms (alone {1e3 * alone:.2f} and {1e3 * most:.2f}; threads take turns after "
        f"{1e3 * sys.getswitchinterval():.1f} ms)"
    )
