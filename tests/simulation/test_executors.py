"""Worker processes: they end with who started them, say what went wrong, and are used again."""

import os
import signal
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import cloudpickle
import psutil
import pytest
from support.processes import kill_session, living_processes, start_python, wait_until

from dowise import DowiseError
from dowise.simulation import executors
from dowise.simulation.executors import run_jobs

pytestmark = pytest.mark.slow  # real processes, and real waits

RACE = """
import sys
from dowise import simulate
simulate(["task3"], ["ucb", "ids"], horizon=1000, trials=200, workers=2, out=sys.argv[1])
"""


def test_workers_end_by_themselves_when_their_starter_is_killed(tmp_path):
    process = start_python("-c", RACE, tmp_path / "race")
    try:
        assert wait_until(lambda: len(living_processes(process)) == 3)
        assert wait_until(lambda: list(tmp_path.glob("race/results/*.parquet")))
        os.kill(process.pid, signal.SIGKILL)
        assert wait_until(lambda: not living_processes(process), 10), living_processes(process)
    finally:
        kill_session(process)


MANY = """
import time
from dowise.simulation.executors import run_jobs
for _ in run_jobs(time.sleep, [0.01] * 10**5, 2, None):
    pass
"""


def test_workers_that_have_hardly_started_end_too():
    process = start_python("-c", MANY)
    try:
        assert wait_until(lambda: len(living_processes(process)) > 1)
        os.kill(process.pid, signal.SIGKILL)
        assert wait_until(lambda: not living_processes(process), 10), living_processes(process)
    finally:
        kill_session(process)


def done(task, items=range(4)):
    """By workers that are there already: otherwise this process would do such small things."""
    if not executors._idle:
        executors._release_workers([executors._Worker(), executors._Worker()])
    return dict(run_jobs(task, items, 2, None))


def dismiss_all():
    """Those too that still start for work that others have done."""
    assert wait_until(lambda: executors._workers == {*executors._idle})
    executors._kill_idle_workers(list(executors._idle))


def test_workers_are_used_again_and_do_the_new_task():
    pids = {*done(lambda _: os.getpid()).values()}
    assert os.getpid() not in pids
    assert {*done(lambda _: os.getpid()).values()} <= {one.process.pid for one in executors._idle}
    assert done(lambda x: x * x) == {0: 0, 1: 1, 2: 4, 3: 9}


def test_what_is_done_in_a_moment_is_done_here_and_the_rest_by_workers_who_join_in(monkeypatch):
    dismiss_all()
    here = os.getpid()
    assert {*dict(run_jobs(lambda _: os.getpid(), range(9), 2, None)).values()} == {here}

    def slowly(_):
        time.sleep(0.05)
        return os.getpid()

    monkeypatch.setattr(executors, "HEAD_START", 0.1)
    pids, deadline = [], time.monotonic() + 60
    with closing(run_jobs(slowly, range(10**4), 2, None)) as results:
        while len({*pids}) < 3 and time.monotonic() < deadline:
            pids.append(next(results)[1])
        assert len({*pids}) == 3 and here in pids
        assert here not in [next(results)[1] for _ in range(20)]


@pytest.fixture
def delayed_worker(monkeypatch):
    """The first worker that is started, and an event that lets its thread continue."""
    dismiss_all()
    monkeypatch.setattr(executors, "HEAD_START", 0)
    workers, go, call = [], threading.Event(), executors._Worker.call

    def late(worker, task, *jobs):
        if not workers:
            workers.append(worker)
            assert go.wait(60)
        return call(worker, task, *jobs)

    monkeypatch.setattr(executors._Worker, "call", late)
    yield workers, go
    go.set()


@pytest.mark.parametrize("is_finished", [True, False])
def test_a_worker_that_is_still_starting_when_a_run_ends_is_killed(delayed_worker, is_finished):
    workers, go = delayed_worker
    threads = {*threading.enumerate()}
    task = cloudpickle.dumps(abs)
    run = executors._run_in_workers(lambda _: wait_until(lambda: workers), task, [1, 2], 1)
    with closing(run) as results:
        next(results)
        if is_finished:
            assert len([*results]) == 1
    assert workers[0].process.poll() is not None
    go.set()
    assert wait_until(lambda: not {*threading.enumerate()} - threads)
    assert workers[0] not in executors._idle and workers[0] not in executors._workers
    assert done(lambda x: x + 1) == {0: 1, 1: 2, 2: 3, 3: 4}


def test_an_idle_worker_that_died_is_replaced():
    done(abs)
    for worker in executors._idle:
        worker.process.kill()
        worker.process.wait()
    executors._release_workers([executors._Worker()])
    assert done(abs) == {0: 0, 1: 1, 2: 2, 3: 3}


def test_idle_workers_leave_after_a_while(monkeypatch):
    dismiss_all()
    monkeypatch.setattr(executors, "IDLE_TIMEOUT", 0.05)
    pids = {*done(lambda _: os.getpid()).values()}
    assert wait_until(lambda: not any(psutil.pid_exists(pid) for pid in pids), 10)
    assert wait_until(lambda: not executors._workers and not executors._idle, 10)


def test_signals_are_left_to_the_program():
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    done(abs)
    assert [signal.getsignal(number) for number in numbers] == before


def test_a_worker_that_dies_is_said_and_replaced():
    def die(_):
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(DowiseError, match="a worker died, perhaps out of memory"):
        done(die)
    assert done(abs) == {0: 0, 1: 1, 2: 2, 3: 3}


def test_who_wants_no_more_leaves_no_work_behind():
    done(abs)
    results = run_jobs(lambda _: os.getpid(), range(100), 2, None)
    _, pid = next(results)
    results.close()
    assert wait_until(lambda: not psutil.pid_exists(pid), 10)


class OddError(Exception):
    def __init__(self, one, two):
        super().__init__(one + two)


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (lambda: DowiseError("a reason"), "a reason"),
        (lambda: OddError(1, 2), "OddError"),  # can be pickled, but not read again
        (lambda: ValueError(lambda: 1), "lambda"),
        (lambda: SystemExit(3), "SystemExit"),
    ],
)
def test_an_error_comes_back_with_the_place_where_it_was(error, found):
    def fail(_):
        raise error()

    with pytest.raises((DowiseError, ValueError), match=found) as caught:
        done(fail)
    assert "in fail" in caught.value.__notes__[0]


def test_what_a_task_prints_or_reads_does_not_get_between_the_answers(capfd):
    def chatty(_):
        sys.stdout.write("hello\n")
        os.write(1, b"there\n")
        return sys.stdin.read()

    assert done(chatty) == dict.fromkeys(range(4), "")
    assert capfd.readouterr().err.count("there") == 4


def test_tasks_work_where_their_starter_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert {*done(lambda _: Path.cwd()).values()} == {tmp_path}


def test_what_can_t_be_sent_is_said():
    with pytest.raises(DowiseError, match="the work can't be sent to other processes"):
        done((x for x in ()).__next__)


def test_no_process_to_be_had_is_said(monkeypatch):
    dismiss_all()

    def refused(*_arguments, **_options):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("subprocess.Popen", refused)
    monkeypatch.setattr(executors, "HEAD_START", 0)
    with pytest.raises(DowiseError, match="can't be started .Resource temporarily unavailable"):
        dict(run_jobs(lambda _: time.sleep(0.1), range(100), 2, None))
