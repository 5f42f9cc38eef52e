"""Rate limits of requests, and the fair limiter of long-running queries."""

import asyncio

import pytest

from dowise.errors import UnavailableError
from dowise_web import rate_limits
from dowise_web.errors import RefusedError
from dowise_web.rate_limits import FairLimiter, TokenBucket


def run(test):
    async def limited():
        await asyncio.wait_for(test(FairLimiter()), 20)

    asyncio.run(limited())


def test_a_principal_leaves_slots_for_others():
    async def test(limiter):
        tickets = [limiter.enqueue(1) for _ in range(4)]
        assert limiter.running == tickets[:1] and limiter.queue == tickets[1:]
        with pytest.raises(RefusedError) as refused:
            limiter.enqueue(1)
        assert refused.value.status == 429 and refused.value.headers["Retry-After"]
        assert refused.value.code == "too-many-queries"
        other = limiter.enqueue(2)
        assert limiter.running == [tickets[0], other]

    run(test)


def test_jobs_start_in_order():
    async def test(limiter):
        tickets = [limiter.enqueue(principal) for principal in (1, 2, 3, 4, 5)]
        limiter.remove(tickets[0])
        assert limiter.running == tickets[1:3]
        limiter.remove(tickets[2])
        assert limiter.running == [tickets[1], tickets[3]]

    run(test)


def test_the_queue_is_limited():
    async def test(limiter):
        for principal in range(10):
            limiter.enqueue(principal)
        with pytest.raises(UnavailableError) as busy:
            limiter.enqueue(10)
        assert busy.value.code == "server-busy"

    run(test)


def test_a_job_that_times_out_leaves_the_queue(monkeypatch):
    monkeypatch.setattr(rate_limits, "SLOT_TIMEOUT", 0.01)

    async def test(limiter):
        tickets = [limiter.enqueue(principal) for principal in (1, 2)]
        with pytest.raises(UnavailableError):
            async with limiter.enqueue(3):
                pass
        assert not limiter.queue
        for ticket in tickets:
            async with ticket:
                pass
        assert not limiter.running
        async with limiter.enqueue(3):
            assert len(limiter.running) == 1

    run(test)


def test_a_cancelled_job_leaves_the_queue():
    async def test(limiter):
        limiter.enqueue(1)
        waiting = limiter.enqueue(1)

        async def wait():
            async with waiting:
                pass

        task = asyncio.create_task(wait())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert waiting not in limiter.queue

    run(test)


# -- rates ----------------------------------------------------------------------------------------


def test_a_refused_key_is_not_the_first_to_be_forgotten(monkeypatch):
    """Otherwise the busiest key would get a full burst again."""
    monkeypatch.setattr(rate_limits, "MAX_BUCKETS", 2)
    bucket = TokenBucket(rate=1e-6, burst=1)
    assert [bucket.take("busy"), bucket.take("idle")] == [0, 0]
    assert bucket.take("busy") > 0
    assert bucket.take("new") == 0
    assert bucket.take("busy") > 0
    assert bucket.take("idle") == 0


def test_a_refusal_does_not_delay_the_next_token(monkeypatch):
    now = 0.0
    monkeypatch.setattr(rate_limits.time, "monotonic", lambda: now)
    bucket = TokenBucket(rate=1, burst=2)
    assert [bucket.take("key"), bucket.take("key"), bucket.take("key")] == [0, 0, 1]
    now = 0.5
    assert bucket.take("key") == 0.5
    now = 1.0
    assert [bucket.take("key"), bucket.take("key")] == [0, 1]
