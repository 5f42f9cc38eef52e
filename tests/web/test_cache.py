"""The result cache: sharing, failures, freshness, and jobs that wait for a slot."""

import asyncio
import gc
import threading
import weakref

import pytest
from support.result_cache import cached_keys, unfinished_keys

from dowise.errors import UnavailableError
from dowise.experiment import Head
from dowise_web import cache
from dowise_web.cache import ResultCache
from dowise_web.errors import RefusedError
from dowise_web.rate_limits import FairLimiter


class ViewStub:
    """Stands for the view of an experiment with a number of events."""

    def __init__(self, number):
        self.name, self.head = "ward", Head(number, f"{number:064x}")


async def settle():
    """Let all tasks run until they wait."""
    for _ in range(20):
        await asyncio.sleep(0.005)


def run(test):
    """Run a coroutine function with a cache, and a timeout."""

    async def limited():
        await asyncio.wait_for(test(ResultCache(FairLimiter())), 20)

    asyncio.run(limited())


class PausedComputation:
    """A computation that ends when the test allows it."""

    def __init__(self):
        self.may_end, self.heads = threading.Event(), []

    def __call__(self, view):
        self.heads.append(view.head.number)
        assert self.may_end.wait(10)
        return view.head.number


def test_requests_for_the_same_view_share_one_computation():
    async def test(results):
        held = PausedComputation()
        tasks = [asyncio.create_task(results.get(ViewStub(3), "x", held, i)) for i in range(5)]
        await settle()
        assert len(held.heads) == 1 and results.waiting.total() == 4
        held.may_end.set()
        assert [result for _, result in await asyncio.gather(*tasks)] == [3] * 5
        assert (await results.get(ViewStub(3), "x", held, 1))[1] == 3 and len(held.heads) == 1

    run(test)


def test_a_later_view_is_computed_again():
    async def test(results):
        await results.get(ViewStub(3), "x", lambda view: view.head.number, 1)
        view, result = await results.get(ViewStub(4), "x", lambda view: view.head.number, 1)
        assert view.head.number == result == 4

    run(test)


def test_waiting_requests_share_a_computation_of_the_newest_view():
    async def test(results):
        held = PausedComputation()
        first = asyncio.create_task(results.get(ViewStub(1), "x", held, 1))
        await settle()
        others = [asyncio.create_task(results.get(ViewStub(n), "x", held, 1)) for n in (2, 4, 3)]
        await settle()
        held.may_end.set()
        assert (await first)[1] == 1
        assert [result for _, result in await asyncio.gather(*others)] == [4, 4, 4]
        assert held.heads == [1, 4]

    run(test)


def test_an_exact_result_belongs_to_the_requested_view():
    async def test(results):
        held = PausedComputation()
        first = asyncio.create_task(results.get(ViewStub(5), "x", held, 1))
        await settle()
        exact = asyncio.create_task(results.get(ViewStub(4), "x", held, 1, is_exact=True))
        await settle()
        held.may_end.set()
        assert (await first)[1] == 5
        view, result = await exact
        assert view.head.number == result == 4

    run(test)


def test_a_failure_is_not_cached():
    async def test(results):
        with pytest.raises(ZeroDivisionError):
            await results.get(ViewStub(1), "x", lambda _: 1 / 0, 1)
        assert not cached_keys(results)
        assert (await results.get(ViewStub(1), "x", lambda _: 1, 1))[1] == 1

    run(test)


def test_short_computations_and_results_are_limited(monkeypatch):
    monkeypatch.setattr(cache, "MAX_SHORT_JOBS", 1)
    monkeypatch.setattr(cache, "MAX_RESULTS", 2)

    async def test(results):
        held, other = PausedComputation(), PausedComputation()
        other.may_end.set()
        tasks = [
            asyncio.create_task(results.get(ViewStub(1), key, compute, 1))
            for key, compute in (("x", held), ("y", other))
        ]
        await settle()
        assert held.heads and not other.heads
        held.may_end.set()
        await asyncio.gather(*tasks)
        for key in "abc":
            await results.get(ViewStub(1), key, lambda _: 1, 1)
        assert cached_keys(results) == [("ward", "b"), ("ward", "c")]

    run(test)


def test_views_of_requests_that_waited_are_released(monkeypatch):
    monkeypatch.setattr(cache, "MAX_RESULTS", 2)

    async def test(results):
        views = weakref.WeakSet()
        for key in range(6):
            held = PausedComputation()
            tasks = []
            for number in (1, 1, 2):
                view = ViewStub(number)
                views.add(view)
                tasks.append(asyncio.create_task(results.get(view, key, held, 1)))
                del view
            await settle()
            tasks.pop().cancel()  # a user who leaves while the page loads
            held.may_end.set()
            await asyncio.gather(*tasks)
        del held, tasks
        gc.collect()
        assert len(views) <= 2 * len(cached_keys(results)) == 4

    run(test)


def test_waiting_requests_are_limited_per_principal():
    async def test(results):
        held = PausedComputation()
        tasks = [
            asyncio.create_task(results.get(ViewStub(1), "x", held, 7))
            for _ in range(cache.MAX_WAITING_PER_PRINCIPAL + 1)
        ]
        await settle()
        with pytest.raises(RefusedError) as refused:
            await results.get(ViewStub(1), "x", held, 7)
        assert refused.value.status == 429 and refused.value.code == "too-many-requests"
        held.may_end.set()
        await asyncio.gather(*tasks)
        assert not results.waiting

    run(test)


# -- long queries -------------------------------------------------------------------------------


def test_a_principal_with_a_free_slot_lends_it_to_a_shared_job():
    """Principal 1 runs A and waits for B; principal 2 wants B as well, and has a free slot."""

    async def test(results):
        held = PausedComputation()
        a = asyncio.create_task(results.get(ViewStub(1), "A", held, 1, is_long=True))
        await settle()
        first = asyncio.create_task(results.get(ViewStub(1), "B", lambda _: "B", 1, is_long=True))
        await settle()
        assert not first.done()
        second = await results.get(ViewStub(1), "B", lambda _: "other", 2, is_long=True)
        assert second[1] == "B" and (await first)[1] == "B" and not a.done()
        held.may_end.set()
        assert (await a)[1] == 1

    run(test)


def test_a_job_without_a_slot_fails_for_all_waiting_requests(monkeypatch):
    monkeypatch.setattr("dowise_web.rate_limits.SLOT_TIMEOUT", 0.1)

    async def test(results):
        held = PausedComputation()
        a = asyncio.create_task(results.get(ViewStub(1), "A", held, 1, is_long=True))
        await settle()
        tasks = [
            asyncio.create_task(results.get(ViewStub(1), "B", lambda _: 1, 1, is_long=True))
            for _ in range(3)
        ]
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(error, UnavailableError) for error in outcomes)
        assert {error.code for error in outcomes} == {"server-busy"}
        held.may_end.set()
        await a
        assert not unfinished_keys(results)

    run(test)
