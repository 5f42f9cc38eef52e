"""Ctrl-C at the worst moments, and forks: nothing half done is kept, nobody is locked out."""

import multiprocessing
import sys
import threading

import pytest

from dowise import DowiseError, Experiment
from dowise.experiment.state import ExperimentState
from dowise.experiment.storage import sql

pytestmark = pytest.mark.slow  # real processes, and real waits


@pytest.fixture
def experiment(place):
    with Experiment.create(place, "ward", "task2", "ts", seed=1) as experiment:
        experiment.ask({"C": 1})
        yield experiment


def stopped_once(monkeypatch, module, name):
    """Let the next call of a function be Ctrl-C."""
    real = getattr(module, name)

    def stop(*_arguments):
        monkeypatch.setattr(module, name, real)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, name, stop)


def test_a_sum_that_was_stopped_half_way_is_not_gone_on_with(experiment, monkeypatch):
    experiment.tell(1, {"Z": 0})
    stopped_once(monkeypatch, ExperimentState, "_hash_row")
    with pytest.raises(KeyboardInterrupt):
        experiment.ask({"C": 1})
    assert experiment.ask({"C": 1}).id == 2
    audit = experiment.audit()
    assert audit.ok, audit.finding


def test_who_is_stopped_just_after_beginning_to_write_locks_nobody_out(experiment, monkeypatch):
    stopped_once(monkeypatch, sql, "SqlTransaction")
    with pytest.raises(KeyboardInterrupt) as kept:  # as a notebook keeps it
        experiment.ask({"C": 1})
    experiment._journal.storage._timeout = 2
    assert experiment.ask({"C": 1}).id == 2
    assert kept.value is not None


@pytest.mark.skipif(sys.platform == "win32", reason="nothing forks there")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_children_forked_while_another_thread_writes_go_on(experiment):
    done = threading.Event()

    def write():
        while not done.is_set():
            experiment.ask({"C": 1})

    thread = threading.Thread(target=write)
    thread.start()
    codes = []
    for _ in range(4):
        child = multiprocessing.get_context("fork").Process(
            target=experiment.tell, args=(1, {"Z": 0})
        )
        child.start()
        child.join(20)
        codes.append(child.exitcode)
        if child.exitcode is None:
            child.kill()
    done.set()
    thread.join()
    assert codes == [0] * 4
    assert experiment.case(1).values == {"Z": "0"} and experiment.audit().ok


def test_a_server_that_ends_at_a_commit_is_told_so_that_one_looks(postgres, database):
    with Experiment.create(database, "ward", "task2", "ucb", seed=1) as experiment:
        journal, errors = experiment._journal, 0
        for _ in range(5):
            said = None
            before = experiment.head.number
            try:
                with journal.storage.transaction("ward") as block:
                    number = block.connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
                    with postgres.connect(database.rpartition("/")[2]) as other:
                        other.execute(f"SELECT pg_terminate_backend({number})")
                    block.append([])
            except DowiseError as error:
                said, errors = str(error), errors + 1
            assert said is not None and "pipeline" not in said
            assert "lost" in said or "terminating" in said, said
            assert experiment.head.number == before
        assert errors == 5
        assert experiment.ask({"C": 1}).id == 1


def test_a_failed_insert_is_not_committed(postgres, database):
    with Experiment.create(database, "ward", "task2", "ucb", seed=1) as experiment:
        with postgres.connect(database.rpartition("/")[2]) as other:
            other.execute("ALTER TABLE events ADD CONSTRAINT none_told CHECK (kind <> 'told')")
        number = experiment.ask({"C": 1}).id
        with pytest.raises(DowiseError, match="none_told"):
            experiment.tell(number, {"Z": 0})
        assert experiment.case(number).values == {}
        assert experiment.head.number == 2 and experiment.audit().ok
