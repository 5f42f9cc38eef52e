"""Processes of the sandbox: one job each, limits, slots, and their end."""

import json
import logging
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest
from support.processes import wait_until

import dowise
from dowise.problem.problem_file import builtin_path
from dowise_web.sandbox import (
    BadInputError,
    LimitExceededError,
    RehearsalJobs,
    Sandbox,
    SandboxBusyError,
    SandboxFailedError,
    SandboxLimits,
    Worker,
    _environment,
)

pytestmark = pytest.mark.slow  # they wait for limits to be met

TINY = 'graph = "X -> Y"\nreward = "Y"\n'
TASK2 = builtin_path("task2").read_text()
ENDLESS = (  # has millions of intervention sets
    f'graph = "{"; ".join(f"X{i} -> Y; X{i} <-> Y" for i in range(30))}"\nreward = "Y"\n'
    "max_arms = 1000000000\n"
)


def spare_of(sandbox):
    """Return the spare process once it waits for the end of the server."""
    spare = sandbox._spare
    assert wait_until(lambda: psutil.Process(spare.pid).num_threads() > 1)
    return spare


def is_gone(pid):
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


# -- one job per process ----------------------------------------------------------------------


def test_each_job_has_its_own_process(sandbox):
    first = sandbox._spare.pid
    assert sandbox.preview(TINY)["arms"]["count"] == 2
    second = sandbox._spare.pid
    assert second != first and is_gone(first)
    with pytest.raises(BadInputError, match="unknown reward 'Z'") as caught:
        sandbox.preview(TINY.replace('"Y"\n', '"Z"\n'))
    assert (caught.value.line, caught.value.column, caught.value.field) == (2, 11, "problem")
    assert is_gone(second)


def test_begin_and_rehearse_return_their_results(sandbox):
    result = sandbox.begin(TASK2, "random", {"floor": 0.1})
    assert result["policy"] == "random" and result["options"]["floor"] == 0.1
    progress = []
    result = sandbox.rehearse(
        TASK2,
        5,
        worlds=3,
        policy="random",
        looks=2,
        progress=lambda *numbers: progress.append(numbers),
    )
    assert result["worlds"] == 3 and len(result["looks"]) == 3 and "In 3 worlds" in result["words"]
    assert progress[0] == (0, 3) and progress[-1] == (3, 3)


def test_a_spare_process_gets_ready_before_a_job_and_runs_it(sandbox):
    spare = sandbox._spare
    output = spare._process.stdout
    assert wait_until(lambda: select.select([output], [], [], 0)[0])  # it is ready
    pids = []

    def record(_finished, _worlds):
        pids.extend(worker.pid for worker in sandbox._running)

    sandbox.rehearse(TASK2, 2, worlds=1, policy="random", progress=record)
    assert set(pids) == {spare.pid}


IMPORTS = """
import sys
from dowise_web.sandbox_worker import _warm_up, run_job
_warm_up()
loaded = set(sys.modules)
run_job({"kind": "preview", "text": sys.argv[1]}, lambda message: print(*message))
print(*set(sys.modules) - loaded)
"""


def test_a_ready_process_has_imported_what_a_preview_needs():
    command = [sys.executable, "-c", IMPORTS, TASK2]
    assert subprocess.run(command, capture_output=True, check=True).stdout == b"answer\n\n"


def test_a_dead_spare_process_is_replaced(sandbox):
    os.kill(spare_of(sandbox).pid, signal.SIGKILL)
    assert wait_until(lambda: not sandbox._spare.is_alive())
    assert sandbox.preview(TINY)["arms"]["count"] == 2


def test_threads_take_turns(sandbox):
    sizes, errors = [], []

    def preview(i):
        try:
            names = " -> ".join(f"V{j}" for j in range(i + 2))
            sizes.append(len(sandbox.preview(f'graph = "{names}"\nreward = "V1"')["roles"]) - i)
        except SandboxBusyError as error:
            errors.append(error)

    threads = [threading.Thread(target=preview, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sizes == [2] * len(sizes) and len(sizes) + len(errors) == 4 and len(sizes) >= 2


# -- limits -----------------------------------------------------------------------------------


def test_a_timeout_does_not_delay_others():
    with Sandbox(SandboxLimits(preview_seconds=2)) as sandbox:
        errors = []

        def endless():
            with pytest.raises(LimitExceededError) as caught:
                sandbox.preview(ENDLESS)
            errors.append(str(caught.value))

        pid = spare_of(sandbox).pid
        thread = threading.Thread(target=endless)
        thread.start()
        assert sandbox.preview(TINY)["arms"]["count"] == 2 and thread.is_alive()
        thread.join()
        assert is_gone(pid)
    assert errors[0].startswith("reading this problem takes more than 2 seconds: make the graph")


def test_memory_is_limited():
    with Sandbox(SandboxLimits(megabytes=256)) as sandbox:
        arms = f'graph = "{"; ".join(f"X{i} -> Y" for i in range(22))}"\nreward = "Y"\n'
        with pytest.raises(LimitExceededError, match="more than 256 MB of memory"):
            sandbox.preview(arms + "max_arms = 1000000000")
        assert sandbox.preview(TINY)["arms"]["count"] == 2


def test_too_many_samples_exceed_the_memory(sandbox):
    with pytest.raises(LimitExceededError, match="or use fewer samples"):
        sandbox.begin(TASK2, "ids", {"samples": 150_000_000})


def test_an_abort_in_a_library_is_a_memory_error(sandbox):
    pids = []

    def abort(_finished, _worlds):
        pids.extend(worker.pid for worker in sandbox._running)
        os.kill(pids[0], signal.SIGABRT)

    with pytest.raises(LimitExceededError, match="more than 2,048 MB of memory"):
        sandbox.rehearse(TASK2, 100, worlds=100, policy="random", progress=abort)
    assert is_gone(pids[0])


def test_results_have_a_maximum_size():
    with (
        Sandbox(SandboxLimits(answer_bytes=500)) as sandbox,
        pytest.raises(LimitExceededError, match="more than 500 bytes"),
    ):
        sandbox.preview(TASK2)


def test_texts_and_options_have_a_maximum_size(sandbox):
    spare = sandbox._spare
    with pytest.raises(BadInputError, match="2,000,000 bytes, and at most 262,144"):
        sandbox.preview("X -> Y; " * 250_000)
    with pytest.raises(BadInputError, match="must be a text"):
        sandbox.preview(None)
    with pytest.raises(BadInputError, match="is not a character: remove it"):
        sandbox.preview("X -> \ud800")
    with pytest.raises(BadInputError, match="more than 65,536 characters"):
        sandbox.begin(TINY, options={"floor": "1" * 100_000})
    with pytest.raises(BadInputError, match="plain JSON"):
        sandbox.begin(TINY, options={"floor": float("nan")})
    assert sandbox._spare is spare  # no process was used


LIMITED = """
import json, resource, sys, os, threading
from dowise_web.sandbox_worker import limit_job, limit_process
limit_process(512)
limit_job("rehearse", 20)
limits = {name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))
          for name in ("AS", "CORE", "FSIZE", "NOFILE", "CPU", "NPROC")}
print(json.dumps({**limits, "nice": os.nice(0)}))
"""


def test_a_process_limits_itself():
    result = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, check=True)
    limits = json.loads(result.stdout)
    assert limits["AS"] == [512 * 2**20] * 2 and limits["CORE"] == [0, 0]
    assert limits["FSIZE"] == [16 * 2**20] * 2 and limits["NOFILE"] == [64, 64]
    assert limits["NPROC"] == [0, 0] and 20 <= limits["CPU"][0] < limits["CPU"][1] <= 30
    assert limits["nice"] >= 10


def test_processor_time_is_limited(sandbox):
    worker = Worker(sandbox.limits)
    try:
        job = json.dumps({"kind": "preview", "seconds": -2, "text": ENDLESS}).encode()
        with pytest.raises(LimitExceededError, match="takes more than 10 seconds"):
            worker.run("preview", job, None)
    finally:
        worker.close()


# -- slots ------------------------------------------------------------------------------------


def test_one_rehearsal_at_a_time_beside_previews():
    with Sandbox() as sandbox:
        started, may_continue = threading.Event(), threading.Event()

        def pause(_finished, _worlds):
            started.set()
            may_continue.wait()
            raise KeyboardInterrupt  # ends the rehearsal

        def rehearse():
            with pytest.raises(KeyboardInterrupt):
                sandbox.rehearse(TASK2, 5, worlds=3, policy="random", progress=pause)

        thread = threading.Thread(target=rehearse)
        thread.start()
        try:
            assert started.wait(60)
            with pytest.raises(SandboxBusyError, match="a rehearsal is already running"):
                sandbox.rehearse(TASK2, 5, worlds=3, policy="random")
            assert sandbox.preview(TINY)["arms"]["count"] == 2
            (busy,) = sandbox._running
        finally:
            may_continue.set()
            thread.join()
        assert is_gone(busy.pid)
        assert sandbox.rehearse(TASK2, 2, worlds=1, policy="random")["worlds"] == 1


def test_a_job_without_a_slot_is_refused():
    with Sandbox(SandboxLimits(max_running=1, slot_timeout=0.1)) as sandbox:

        def endless():
            with pytest.raises(SandboxFailedError):
                sandbox.preview(ENDLESS)

        thread = threading.Thread(target=endless)
        thread.start()
        assert wait_until(lambda: sandbox._running)
        with pytest.raises(SandboxBusyError, match="busy with other problems: try again"):
            sandbox.preview(TINY)
        sandbox.close()
        thread.join()


# -- the end of processes, and failures -------------------------------------------------------


def test_closing_ends_running_jobs():
    sandbox = Sandbox()
    messages = []

    def preview():
        with pytest.raises(SandboxFailedError) as caught:
            sandbox.preview(ENDLESS)
        messages.append(str(caught.value))

    thread = threading.Thread(target=preview)
    thread.start()
    assert wait_until(lambda: sandbox._running)
    pids = [worker.pid for worker in sandbox._running]
    sandbox.close()
    thread.join()
    assert messages == ["the server is shutting down: try again later"]
    assert wait_until(lambda: all(map(is_gone, pids)))
    with pytest.raises(dowise.DowiseError, match="the server is shutting down"):
        sandbox.preview(TINY)
    sandbox.close()


PARENT = """
import sys, threading, time
from dowise_web.sandbox import Sandbox
sandbox = Sandbox()
threading.Thread(target=sandbox.preview, args=(sys.argv[1],), daemon=True).start()
while not sandbox._running or sandbox._spare is not None:
    time.sleep(0.01)
sandbox._start_spare()
(busy,) = sandbox._running
time.sleep(0.5)
print(busy.pid, sandbox._spare.pid, flush=True)
time.sleep(60)
"""


def test_workers_end_with_a_killed_server():
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, ENDLESS], stdout=subprocess.PIPE, text=True
    )
    try:
        busy, spare = map(int, parent.stdout.readline().split())
        assert not is_gone(busy) and not is_gone(spare)
    finally:
        parent.kill()
        parent.communicate()
    assert wait_until(lambda: is_gone(busy) and is_gone(spare), 10)


def test_failures_are_logged(sandbox, caplog):
    worker = Worker(sandbox.limits)
    try:
        job = json.dumps({"kind": "preview", "seconds": 9}).encode()  # without a text: a bug
        with (
            caplog.at_level(logging.ERROR),
            pytest.raises(SandboxFailedError, match="^something went wrong in the server"),
        ):
            worker.run("preview", job, None)
    finally:
        worker.close()
    assert "KeyError: 'text'" in caplog.text


def test_a_process_that_does_not_start_is_an_error(caplog):
    with (
        Sandbox(SandboxLimits(megabytes=20)) as sandbox,
        caplog.at_level(logging.ERROR),
        pytest.raises(SandboxFailedError, match="^something went wrong in the server"),
    ):
        sandbox.preview(TINY)


def test_the_environment_has_no_secrets(monkeypatch):
    root = str(Path(dowise.__file__).parents[1])
    monkeypatch.setenv("DOWISE_TOKEN", "secret")
    monkeypatch.setenv("PGPASSWORD", "secret")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["/somewhere", root]))
    environment = _environment()
    assert "secret" not in environment.values() and root in environment["PYTHONPATH"]
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    assert "PYTHONPATH" not in _environment()


class FailingSandbox:
    """A sandbox with a bug."""

    def rehearse(self, *_text, **_settings):
        raise RuntimeError("a secret")


def test_an_unexpected_failure_ends_a_rehearsal(caplog):
    rehearsals = RehearsalJobs(FailingSandbox())
    job = rehearsals.find(rehearsals.start("graph").id)
    assert wait_until(lambda: job.is_finished, 5)
    assert "secret" not in str(job.error) and "log" in str(job.error)
    assert "a secret" in caplog.text
