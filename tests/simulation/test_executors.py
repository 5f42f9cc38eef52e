"""Worker processes: their start, their end, their errors, and their reuse."""

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
from support.errors import raises_code
from support.processes import kill_session, living_processes, start_python, wait_until

from dowise import DowiseError
from dowise.simulation import executors
from dowise.simulation.executors import run_jobs

pytestmark = pytest.mark.slow  # real processes, and real waits

SIMULATION = """
import sys
from dowise import simulate
simulate(["task3"], ["ucb", "ids"], horizon=1000, trials=200, workers=2, out=sys.argv[1])
"""
MANY_JOBS = """
import time
from dowise.simulation.executors import run_jobs
for _ in run_jobs(time.sleep, [0.01] * 10**5, 2, None):
    pass
"""


def test_workers_end_if_their_parent_is_killed(tmp_path):
    process = start_python("-c", SIMULATION, tmp_path / "run")
    try:
        assert wait_until(lambda: len(living_processes(process)) == 3)
        assert wait_until(lambda: list(tmp_path.glob("run/results/*.parquet")))
        os.kill(process.pid, signal.SIGKILL)
        assert wait_until(lambda: not living_processes(process), 10), living_processes(process)
    finally:
        kill_session(process)


def test_starting_workers_end_if_their_parent_is_killed():
    process = start_python("-c", MANY_JOBS)
    try:
        assert wait_until(lambda: len(living_processes(process)) > 1)
        os.kill(process.pid, signal.SIGKILL)
        assert wait_until(lambda: not living_processes(process), 10), living_processes(process)
    finally:
        kill_session(process)


def run_in_workers(task, jobs=range(4)):
    """Run in workers that have started; otherwise this process would run such small jobs."""
    if not executors._idle:
        executors._release_workers([executors._Worker(), executors._Worker()])
    return dict(run_jobs(task, jobs, 2, None))


def kill_all_workers():
    """Kill idle workers, and those that are still starting for a run that has ended."""
    assert wait_until(lambda: executors._workers == {*executors._idle})
    executors._kill_idle_workers(list(executors._idle))


def test_workers_are_reused_for_another_task():
    pids = {*run_in_workers(lambda _: os.getpid()).values()}
    idle = {worker.process.pid for worker in executors._idle}
    assert os.getpid() not in pids
    assert {*run_in_workers(lambda _: os.getpid()).values()} <= idle
    assert run_in_workers(lambda x: x * x) == {0: 0, 1: 1, 2: 4, 3: 9}


def test_short_runs_stay_in_this_process_and_workers_join_long_ones(monkeypatch):
    kill_all_workers()
    this_process = os.getpid()
    assert {*dict(run_jobs(lambda _: os.getpid(), range(9), 2, None)).values()} == {this_process}

    def run_slowly(_):
        time.sleep(0.05)
        return os.getpid()

    monkeypatch.setattr(executors, "HEAD_START", 0.1)
    pids, deadline = [], time.monotonic() + 60
    with closing(run_jobs(run_slowly, range(10**4), 2, None)) as results:
        while len({*pids}) < 3 and time.monotonic() < deadline:
            pids.append(next(results)[1])
        assert len({*pids}) == 3 and this_process in pids
        assert this_process not in [next(results)[1] for _ in range(20)]


@pytest.fixture
def delayed_worker(monkeypatch):
    """The first worker that is started, and an event that lets its thread continue."""
    kill_all_workers()
    monkeypatch.setattr(executors, "HEAD_START", 0)
    workers, event, call = [], threading.Event(), executors._Worker.call

    def delayed_call(worker, task, *jobs):
        if not workers:
            workers.append(worker)
            assert event.wait(60)
        return call(worker, task, *jobs)

    monkeypatch.setattr(executors._Worker, "call", delayed_call)
    yield workers, event
    event.set()


@pytest.mark.parametrize("is_finished", [True, False])
def test_worker_that_is_still_starting_when_a_run_ends_is_killed(delayed_worker, is_finished):
    workers, event = delayed_worker
    threads = {*threading.enumerate()}
    task = cloudpickle.dumps(abs)
    run = executors._run_in_workers(lambda _: wait_until(lambda: workers), task, [1, 2], 1)
    with closing(run) as results:
        next(results)
        if is_finished:
            assert len([*results]) == 1
    assert workers[0].process.poll() is not None
    event.set()
    assert wait_until(lambda: not {*threading.enumerate()} - threads)
    assert workers[0] not in executors._idle and workers[0] not in executors._workers
    assert run_in_workers(lambda x: x + 1) == {0: 1, 1: 2, 2: 3, 3: 4}


def test_dead_idle_worker_is_replaced():
    run_in_workers(abs)
    for worker in executors._idle:
        worker.process.kill()
        worker.process.wait()
    executors._release_workers([executors._Worker()])
    assert run_in_workers(abs) == {0: 0, 1: 1, 2: 2, 3: 3}


def test_idle_workers_end_after_the_timeout(monkeypatch):
    kill_all_workers()
    monkeypatch.setattr(executors, "IDLE_TIMEOUT", 0.05)
    pids = {*run_in_workers(lambda _: os.getpid()).values()}
    assert wait_until(lambda: not any(psutil.pid_exists(pid) for pid in pids), 10)
    assert wait_until(lambda: not executors._workers and not executors._idle, 10)


def test_signal_handlers_of_the_program_are_unchanged():
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    run_in_workers(abs)
    assert [signal.getsignal(number) for number in numbers] == before


def test_dying_worker_is_an_error_and_replaced():
    with raises_code("workers-failed", "died"):
        run_in_workers(lambda _: os.kill(os.getpid(), signal.SIGKILL))
    assert run_in_workers(abs) == {0: 0, 1: 1, 2: 2, 3: 3}


def test_closing_the_results_stops_the_workers():
    run_in_workers(abs)
    results = run_jobs(lambda _: os.getpid(), range(100), 2, None)
    _, pid = next(results)
    results.close()
    assert wait_until(lambda: not psutil.pid_exists(pid), 10)


class TwoArgumentsError(Exception):
    def __init__(self, first, second):
        super().__init__(first + second)


@pytest.mark.parametrize(
    ("make_error", "message"),
    [
        (lambda: DowiseError("a reason"), "a reason"),
        (lambda: TwoArgumentsError(1, 2), "TwoArgumentsError"),  # can be pickled but not unpickled
        (lambda: ValueError(lambda: 1), "lambda"),
        (lambda: SystemExit(3), "SystemExit"),
    ],
)
def test_error_of_a_task_has_the_traceback_of_the_worker(make_error, message):
    def fail(_):
        raise make_error()

    with pytest.raises((DowiseError, ValueError), match=message) as caught:
        run_in_workers(fail)
    assert "in fail" in caught.value.__notes__[0]


def test_standard_streams_of_tasks_are_separate_from_messages(capfd):
    def print_and_read(_):
        sys.stdout.write("from Python\n")
        os.write(1, b"from C\n")
        return sys.stdin.read()

    assert run_in_workers(print_and_read) == dict.fromkeys(range(4), "")
    assert capfd.readouterr().err.count("from C") == 4


def test_tasks_run_in_the_directory_of_the_parent(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert {*run_in_workers(lambda _: Path.cwd()).values()} == {tmp_path}


def test_task_that_can_not_be_pickled_is_an_error():
    with raises_code("not-picklable", "the work"):
        run_in_workers((x for x in ()).__next__)


def test_process_that_can_not_be_started_is_an_error(monkeypatch):
    kill_all_workers()

    def popen(*_arguments, **_options):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("subprocess.Popen", popen)
    monkeypatch.setattr(executors, "HEAD_START", 0)
    with raises_code("workers-failed", "Resource temporarily unavailable"):
        dict(run_jobs(lambda _: time.sleep(0.1), range(100), 2, None))
