"""Progress of long commands: lines in a log, a bar on a terminal."""

import io

import pytest
from rich.console import Console

from dowise.cli import console as console_module


@pytest.fixture
def screen(monkeypatch):
    stream = io.StringIO()

    def on(terminal):
        console = Console(file=stream, force_terminal=terminal, width=80)
        monkeypatch.setattr(console_module, "make_error_console", lambda: console)
        return stream

    return on


def test_a_log_gets_a_line_now_and_then(screen, monkeypatch):
    stream, clock = screen(False), iter([0, 0, 5, 30, 31, 32])
    monkeypatch.setattr(console_module, "monotonic", lambda: next(clock))
    with console_module.progress_bars() as show:
        for done in (0, 1, 3, 4, 10):
            show("simulation", done, 10)
    assert stream.getvalue().splitlines() == [
        "simulation: 3 of 10 jobs done, about 70 s left",
        "simulation: 10 of 10 jobs done",
    ]


def test_a_terminal_gets_a_bar(screen):
    stream = screen(True)
    with console_module.progress_bars() as show:
        show("task1", 0, 4)
        show("task1", 3, 4)
    assert "task1" in stream.getvalue() and "3/4" in stream.getvalue()
