"""Asking and telling on SQLite, durable, beside Optuna's with the same storage.

    make bench

Both have 10,000 decisions before; Optuna's sampler is its random one. Ours makes each decision by
`ids` with 1000 draws of the posterior. The aim: ten times as many a second as Optuna's. Then how
the speed at 100,000 events compares with that at the start, and how long opening takes there. No
time is asserted.
"""

from __future__ import annotations

import random
from time import perf_counter

import optuna
import pytest

from dowise import Experiment, load_problem
from dowise.experiment.storage import MemoryStorage, open_storage

DECISIONS = 10_000


def grown(path, decisions, policy="ids", samples=1000):
    """An experiment of task 2 with so many decisions told, made in memory and then copied."""
    rng, memory = random.Random(0), MemoryStorage()
    options = {"samples": 20} if policy == "ids" else {}
    small = Experiment.create(memory, "ward", load_problem("task2"), policy, options, seed=1)
    for _ in range(decisions):
        answer(small, rng)
    small.revise(options={"samples": samples}, reason="as many as there will be") if policy == (
        "ids"
    ) else None
    store = open_storage(path, create=True)
    with store.transaction("ward") as writing:
        writing.append(memory.read("ward"))
    snapshot = memory.snapshot("ward")
    if snapshot is not None:
        store.save_snapshot(snapshot)
    store.close()
    return Experiment.open(path)


def answer(experiment, rng):
    decision = experiment.ask({"C": rng.randrange(2)})
    experiment.tell(decision.id, {"Z": rng.randrange(2), "Y": rng.randrange(2)})


def per_second(step, count):
    started = perf_counter()
    for _ in range(count):
        step()
    return count / (perf_counter() - started)


def ours(experiment, count=300):
    rng = random.Random(1)
    answer(experiment, rng)
    return per_second(lambda: answer(experiment, rng), count)


def optunas(path, count=60):
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    storage = optuna.storages.RDBStorage(f"sqlite:///{path}")
    study = optuna.create_study(storage=storage, sampler=optuna.samplers.RandomSampler(seed=0))
    choices = optuna.distributions.CategoricalDistribution(("do()", "do(X1=0)", "do(X1=1)"))
    finished = optuna.trial.create_trial(
        params={"arm": "do()"}, distributions={"arm": choices}, value=1.0
    )
    study.add_trials([finished] * DECISIONS)
    rng = random.Random(1)

    def step():
        trial = study.ask({"arm": choices})
        study.tell(trial, rng.randrange(2))

    step()
    found = per_second(step, count)
    storage.remove_session()
    storage.engine.dispose()
    return found


@pytest.mark.filterwarnings("ignore")
def test_asking_and_telling_beside_optuna(benchmark, tmp_path):
    with grown(tmp_path / "ward.db", DECISIONS) as experiment:
        own = ours(experiment)
    other = optunas(tmp_path / "optuna.db")
    print(
        f"\nafter {DECISIONS:,} decisions: {own:.0f} a second, Optuna's {other:.1f}, "
        f"{own / other:.0f} times"
    )
    benchmark.extra_info["ratio"] = own / other
    benchmark.pedantic(lambda: None, rounds=1)


def test_the_speed_at_100_000_events(benchmark, tmp_path):
    with grown(tmp_path / "new.db", 0) as experiment:
        start = ours(experiment)
    grown(tmp_path / "old.db", 50_000).close()
    times = []
    for _ in range(3):
        began = perf_counter()
        experiment = Experiment.open(tmp_path / "old.db")
        times.append(perf_counter() - began)
    late = ours(experiment)
    began = perf_counter()
    asked = Experiment.open(tmp_path / "old.db")
    asked.ask({"C": 0})
    first = perf_counter() - began
    print(
        f"\nask and tell: {start:.0f} a second at the start, {late:.0f} at 100,000 events "
        f"({late / start:.2f} times); opening {min(times):.2f} s, with the first decision "
        f"{first:.2f} s"
    )
    benchmark.extra_info["ratio"] = late / start
    for one in (asked, experiment):
        one.close()
    benchmark.pedantic(lambda: None, rounds=1)
