"""Writers that are killed at random moments lose and double nothing that was acknowledged."""

import random
import time

import pytest
from support import experiment_writers

from dowise import Experiment


def kill_writers(store, folder, kills, seed, together=2):
    """Kill several writers while others are running; return their logs."""
    Experiment.create(store, "ward", "task2", policy="ts", seed=1).close()
    rng, running, logs = random.Random(seed), [], []
    for number in range(kills + together - 1):
        log = folder / f"{number}.log"
        logs.append(log)
        running.append((experiment_writers.start(store, "ward", number, log), log))
        if len(running) < together:
            continue
        process, log = running.pop(0)
        wait_for_first_answer(process, log)
        time.sleep(rng.random() * 0.1)
        process.kill()
        process.communicate()
    for process, log in running:
        wait_for_first_answer(process, log)
        process.kill()
        process.communicate()
    return logs


def wait_for_first_answer(process, log, timeout=120):
    end = time.monotonic() + timeout
    while not (log.exists() and log.read_text("utf-8").endswith("\n")):
        assert process.poll() is None, process.stderr.read().decode()
        assert time.monotonic() < end, "the writer does not start"
        time.sleep(0.005)


def check_nothing_is_lost(store, logs):
    with Experiment.open(store) as experiment:
        cases = {case.id: case for case in experiment.records()}
        for log in logs:
            asked, told = experiment_writers.acknowledged(log)
            for number, arm in asked.items():
                assert str(cases[number].arm) == arm
            for number, value in told.items():
                assert cases[number].values["Y"] == value
        kinds = [(e.kind, e.payload["decision"], *e.payload.get("values", ()))
                 for e in experiment.events(after=1)]  # fmt: skip
        assert len(set(kinds)) == len(kinds), "an event was stored twice"
        assert sorted(cases) == list(range(1, len(cases) + 1))
        audit = experiment.audit()
        assert audit.ok, audit.finding
        last = experiment.ask({"C": 0})
        assert last.id == len(cases) + 1
        return len(cases), audit.events


@pytest.mark.slow
def test_killed_writers_lose_no_acknowledged_event(place, tmp_path):
    logs = kill_writers(place, tmp_path, kills=8, seed=3)
    decisions, _ = check_nothing_is_lost(place, logs)
    assert decisions > 8
