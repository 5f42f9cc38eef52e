"""Turns for long looks: few at once, and a part of them for one visitor."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.processes import until

from dowise.errors import UnavailableError
from dowise_web import limits as turns
from dowise_web.errors import RefusedError
from dowise_web.limits import FairLimiter


@pytest.fixture
def held():
    """Visitors who take a turn and stay until the test lets them go."""
    line, go, began = FairLimiter(), threading.Event(), []

    def work(visitor):
        with line.take(visitor):
            began.append(visitor)
            go.wait(20)

    with ThreadPoolExecutor(20) as threads:
        try:
            yield line, began, lambda visitor: threads.submit(work, visitor), go
        finally:
            go.set()


def test_one_visitor_leaves_places_and_a_turn_for_others(held):
    line, began, come, _ = held
    for _ in range(4):
        come(1)
    assert until(lambda: len(line._waiting) == 3) and began == [1]
    with pytest.raises(RefusedError, match="4 long looks of yours") as refused, line.take(1):
        pass
    assert refused.value.status == 429 and refused.value.headers["Retry-After"]
    come(2)
    assert until(lambda: began == [1, 2])


def test_who_came_first_goes_first(held):
    line, began, come, go = held
    for count, visitor in enumerate((1, 2, 3, 4, 5), 1):
        come(visitor)
        assert until(lambda: len(line._at_work + line._waiting) == count)  # noqa: B023
    go.set()
    assert until(lambda: len(began) == 5) and began[2] == 3


def test_the_line_has_an_end(held):
    line, _, come, _ = held
    for visitor in range(10):
        come(visitor)
    assert until(lambda: len(line._at_work + line._waiting) == 10)
    with pytest.raises(UnavailableError, match="busy"), line.take(10):
        pass


def test_patience_has_an_end_and_who_gave_up_is_not_in_line(held, monkeypatch):
    line, began, come, go = held
    for visitor in (1, 2):
        come(visitor)
    assert until(lambda: len(began) == 2)
    monkeypatch.setattr(turns, "_PATIENCE", 0.01)
    with pytest.raises(UnavailableError, match="busy"), line.take(3):
        pass
    assert not line._waiting
    go.set()
    assert until(lambda: not line._at_work)
    with line.take(3):
        pass
