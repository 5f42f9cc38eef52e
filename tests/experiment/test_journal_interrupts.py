"""Ctrl-C, forks and lost connections leave neither partial changes nor locks."""

import multiprocessing
import sys
import threading

import pytest

from dowise import DowiseError, Experiment
from dowise.experiment.state import ExperimentState
from dowise.experiment.storage import sql

pytestmark = pytest.mark.slow  # processes and timeouts


@pytest.fixture
def experiment(place):
    with Experiment.create(place, "ward", "task2", "ts", seed=1) as experiment:
        experiment.ask({"C": 1})
        yield experiment


def interrupt_once(monkeypatch, module, name):
    """Let the next call of a function raise KeyboardInterrupt."""
    real = getattr(module, name)

    def stop(*_arguments):
        monkeypatch.setattr(module, name, real)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, name, stop)


def test_an_interrupted_digest_is_computed_again(experiment, monkeypatch):
    experiment.tell(1, {"Z": 0})
    interrupt_once(monkeypatch, ExperimentState, "_hash_row")
    with pytest.raises(KeyboardInterrupt):
        experiment.ask({"C": 1})
    assert experiment.ask({"C": 1}).id == 2
    audit = experiment.audit()
    assert audit.ok, audit.finding


def test_an_interrupted_transaction_releases_its_locks(experiment, monkeypatch):
    interrupt_once(monkeypatch, sql, "SqlTransaction")
    with pytest.raises(KeyboardInterrupt) as caught:  # keeps the traceback, as a notebook does
        experiment.ask({"C": 1})
    experiment._journal.storage._timeout = 2
    assert experiment.ask({"C": 1}).id == 2
    assert caught.value is not None


@pytest.mark.skipif(sys.platform == "win32", reason="nothing forks there")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_children_forked_while_another_thread_writes_can_write(experiment):
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


def test_a_connection_lost_at_a_commit_is_reported(postgres, database):
    with Experiment.create(database, "ward", "task2", "ucb", seed=1) as experiment:
        journal, errors = experiment._journal, 0
        for _ in range(5):
            message = None
            before = experiment.head.number
            try:
                with journal.storage.transaction("ward") as block:
                    number = block.connection.exec_driver_sql("SELECT pg_backend_pid()").scalar()
                    with postgres.connect(database.rpartition("/")[2]) as other:
                        other.execute(f"SELECT pg_terminate_backend({number})")
                    block.append([])
            except DowiseError as error:
                message, errors = str(error), errors + 1
            assert message is not None and "pipeline" not in message
            assert "lost" in message or "terminating" in message, message
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
