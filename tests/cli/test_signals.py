"""Signals that stop commands in processes of their own."""

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

SIMULATE = ("-m", "dowise", "simulate", "task3", "--policies", "ucb,ids")
SIMULATE += ("--horizon", "600", "--trials", "200", "--samples", "300")
LONG = {
    "bounds": ("-m", "dowise", "bounds", "task3", "--horizon", "20000"),
    "simulate": SIMULATE,
    "reproduce": ("-m", "dowise", "reproduce", "task3", "--out"),
    "rehearse": ("-m", "dowise", "rehearse", "task3", "--horizon", "5000"),
}
STATUS = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


def stop(process, number, is_group=False):
    """Send a signal to a program; it must end without a traceback or a living process."""
    try:
        (os.killpg if is_group else os.kill)(process.pid, number)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == STATUS[number], errors
        assert "Traceback" not in errors and "Error" not in errors
        assert wait_until(lambda: not living_processes(process), 5), living_processes(process)
    finally:
        kill_session(process)
    return errors


@pytest.mark.parametrize(
    ("number", "is_group", "workers"),
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
def test_a_stopped_simulation_names_the_results_that_are_kept(tmp_path, number, is_group, workers):
    process = start_python(*SIMULATE, "--workers", workers, "--out", tmp_path / "race")
    try:
        assert wait_until(lambda: list(tmp_path.glob("race/results/*.parquet")))
        assert wait_until(lambda: len(living_processes(process)) == (1 if workers == 1 else 3))
    finally:
        errors = stop(process, number, is_group)
    assert f"Stopped; finished results are kept in {tmp_path / 'race'}, and the same" in errors


@pytest.mark.slow
@pytest.mark.parametrize("command", LONG)
def test_every_long_command_reacts_to_sigterm(tmp_path, command):
    arguments = LONG[command]
    process = start_python(*arguments, *([tmp_path / "out"] if arguments[-1] == "--out" else []))
    try:
        assert wait_until(lambda: handles_signals(process))
        time.sleep(1)
    finally:
        errors = stop(process, signal.SIGTERM)
    assert errors.count("Stopped") == 1


@pytest.mark.slow
def test_a_stop_at_any_moment_shows_no_traceback_and_leaves_no_worker(tmp_path):
    rng = random.Random(13)
    for i in range(4):
        process = start_python(*SIMULATE, "--workers", 2, "--out", tmp_path / str(i))
        try:
            assert wait_until(lambda: handles_signals(process))  # noqa: B023
            time.sleep(rng.uniform(0, 2))
        finally:
            stop(process, rng.choice([signal.SIGINT, signal.SIGTERM]), rng.random() < 0.5)


BLOCKED = """
import hashlib
from dowise.cli.signals import set_stop_message, stop_on_signals
with stop_on_signals():
    set_stop_message("; all is kept")
    print("ready", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"compiled code that", b"does not react", 10**9)
"""


def test_compiled_code_that_does_not_react_is_ended():
    process = start_python("-c", BLOCKED)
    try:
        assert process.stdout.readline() == "ready\n"
    finally:
        errors = stop(process, signal.SIGTERM)
    assert errors == "\nStopped; all is kept.\n"


@pytest.mark.slow
def test_signals_that_are_ignored_at_the_start_stay_ignored():
    """As after `nohup`. Two further signals are reported as one stop."""
    process = start_python("-c", BLOCKED, ignored=[signal.SIGHUP])
    try:
        assert process.stdout.readline() == "ready\n"
        os.kill(process.pid, signal.SIGHUP)
        time.sleep(0.2)
        os.kill(process.pid, signal.SIGTERM)
    finally:
        assert stop(process, signal.SIGTERM).count("Stopped") == 1
