"""The notice while the kernels compile."""

import io

import pytest

from dowise.belief import compiled


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Impatient:
    """A timer that goes off at once."""

    def __init__(self, _seconds, say):
        self.start = say

    def cancel(self):
        pass


@pytest.mark.parametrize(("stream", "told"), [(Terminal, True), (io.StringIO, False)])
def test_a_terminal_is_told_that_the_kernels_are_being_compiled(monkeypatch, stream, told):
    stderr = stream()
    monkeypatch.setattr("sys.stderr", stderr)
    monkeypatch.setattr(compiled, "Timer", Impatient)
    compiled.kernels.cache_clear()
    assert hasattr(compiled.kernels(), "draw_results")
    assert ("compiling its kernels" in stderr.getvalue()) == told
