"""Many processes that append to one experiment, some of them killed."""

import json
import time
from random import Random

import pytest
from support.journal_writers import AT, Writer, is_chain, run

from dowise.experiment.event import next_event


def check_journal(storage, team):
    """Check that every acknowledged event is stored once; return the number of other events."""
    journal = storage.read("ward")
    assert [event.number for event in journal] == list(range(1, len(journal) + 1))
    assert is_chain(journal)
    stored = {event.head for event in journal}
    acknowledged = [head for writer in team for head in writer.acknowledged]
    assert len(set(acknowledged)) == len(acknowledged)
    assert set(acknowledged) <= stored
    return len(journal) - len(acknowledged)


@pytest.mark.slow
def test_16_processes_append_to_one_experiment(place, store):
    _, team = run(place, 16, 20)
    assert check_journal(store, team) == 0
    assert len(store.read("ward")) == 16 * 20
    assert {event.actor for event in store.read("ward")} == {f"writer {i}" for i in range(16)}


@pytest.mark.slow
def test_killed_writers_lose_no_acknowledged_event(place, store):
    """Kill one of two writers at ten random moments while the other one writes."""
    rng = Random(12)
    team = [Writer(place, "writer 0"), Writer(place, "writer 1")]
    for writer in team:
        writer.start_writing()
    running = list(team)
    for kill in range(10):
        time.sleep(rng.uniform(0.01, 0.2))
        victim = rng.randrange(2)
        running[victim].kill()
        running[victim] = Writer(place, f"writer {kill + 2}")
        running[victim].start_writing()
        team.append(running[victim])
    for writer in running:
        writer.kill()
    assert 0 <= check_journal(store, team) <= 12
    assert sum(len(writer.acknowledged) for writer in team) > 50
    with store.transaction("ward") as block:
        block.append([next_event(block.read()[-1], "ward", "told", AT, "ann", {"after": "all"})])
    assert is_chain(store.read("ward"))
    assert json.loads(store.last("ward").body) == {"after": "all"}
