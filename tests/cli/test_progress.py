"""How far a long command is: a plain log, and a bar where there is a terminal."""

import io

import pytest
from rich.console import Console

from dowise.cli import console as progress


@pytest.fixture
def screen(monkeypatch):
    stream = io.StringIO()

    def on(terminal):
        console = Console(file=stream, force_terminal=terminal, width=80)
        monkeypatch.setattr(progress, "Console", lambda **_options: console)
        return stream

    return on


def test_a_plain_log_says_what_is_left_now_and_then(screen, monkeypatch):
    stream, clock = screen(False), iter([0, 0, 5, 30, 31, 32])
    monkeypatch.setattr(progress, "monotonic", lambda: next(clock))
    with progress.shown_progress() as show:
        for done in (0, 1, 3, 4, 10):
            show("race", done, 10)
    assert stream.getvalue().splitlines() == [
        "race: 3 of 10 jobs done, about 70 s left",
        "race: 10 of 10 jobs done",
    ]


def test_a_terminal_gets_a_bar(screen):
    stream = screen(True)
    with progress.shown_progress() as show:
        show("task1", 0, 4)
        show("task1", 3, 4)
    assert "task1" in stream.getvalue() and "3/4" in stream.getvalue()
