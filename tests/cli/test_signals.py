"""Commands stopped by real signals in real processes."""

import os
import random
import signal
import time

import pytest
from support.parametrize import one_in
from support.processes import (
    handles_signals,
    kill_session,
    living_processes,
    start_python,
    wait_until,
)

RACE = ("-m", "dowise", "simulate", "task3", "--policies", "ucb,ids", "--horizon", "600",
        "--trials", "200", "--samples", "300")  # fmt: skip
LONG = {
    "bounds": ("-m", "dowise", "bounds", "task3", "--horizon", "20000"),
    "simulate": RACE,
    "reproduce": ("-m", "dowise", "reproduce", "task3", "--out"),
    "rehearse": ("-m", "dowise", "rehearse", "task3", "--horizon", "5000"),
}
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


def stopped(process, number, everybody=False):
    """The errors of a program that gets a signal; it ends as it should, and leaves nobody."""
    try:
        (os.killpg if everybody else os.kill)(process.pid, number)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == STATUS[number], errors
        assert "Traceback" not in errors and "Error" not in errors
        assert wait_until(lambda: not living_processes(process), 5), living_processes(process)
    finally:
        kill_session(process)
    return errors


@pytest.mark.parametrize(
    ("number", "everybody", "workers"),
    one_in(
        4,
        [
            (signal.SIGTERM, False, 1),
            (signal.SIGTERM, True, 2),  # systemd
            (signal.SIGINT, True, 2),  # Ctrl-C at a terminal
            (signal.SIGHUP, True, 2),  # the terminal is closed
        ],
    ),
)
def test_a_race_is_stopped_and_says_what_is_kept(tmp_path, number, everybody, workers):
    process = start_python(*RACE, "--workers", workers, "--out", tmp_path / "race")
    try:
        assert wait_until(lambda: list(tmp_path.glob("race/results/*.parquet")))
        assert wait_until(lambda: len(living_processes(process)) == (1 if workers == 1 else 3))
    finally:
        errors = stopped(process, number, everybody)
    assert f"Stopped; finished results are kept in {tmp_path / 'race'}, and the same" in errors


@pytest.mark.slow
@pytest.mark.parametrize("command", LONG)
def test_every_long_command_hears_sigterm(tmp_path, command):
    arguments = LONG[command]
    process = start_python(*arguments, *([tmp_path / "out"] if arguments[-1] == "--out" else []))
    try:
        assert wait_until(lambda: handles_signals(process))
        time.sleep(1)
    finally:
        errors = stopped(process, signal.SIGTERM)
    assert errors.count("Stopped") == 1


@pytest.mark.slow
def test_no_stop_at_any_moment_shows_a_traceback_or_leaves_a_worker(tmp_path):
    rng = random.Random(13)
    for i in range(4):
        process = start_python(*RACE, "--workers", 2, "--out", tmp_path / str(i))
        try:
            assert wait_until(lambda: handles_signals(process))  # noqa: B023
            time.sleep(rng.uniform(0, 2))
        finally:
            stopped(process, rng.choice([signal.SIGINT, signal.SIGTERM]), rng.random() < 0.5)


DEAF = """
import hashlib
from dowise.cli.signals import set_stop_message, stop_on_signals
with stop_on_signals():
    set_stop_message("; all is kept")
    print("ready", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"compiled code that", b"does not hear", 10**9)
"""


def test_compiled_code_that_does_not_hear_is_ended_all_the_same():
    process = start_python("-c", DEAF)
    try:
        assert process.stdout.readline() == "ready\n"
    finally:
        errors = stopped(process, signal.SIGTERM)
    assert errors == "\nStopped; all is kept.\n"


@pytest.mark.slow
def test_a_signal_that_the_program_was_told_to_ignore_is_ignored():
    """As after `nohup`; a stop that comes twice is one."""
    process = start_python("-c", DEAF, ignored=[signal.SIGHUP])
    try:
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, signal.SIGHUP)
        time.sleep(0.2)
        os.kill(process.pid, signal.SIGTERM)
    finally:
        assert stopped(process, signal.SIGTERM).count("Stopped") == 1
