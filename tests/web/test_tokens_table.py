"""The table of tokens: numbering, children, ends, and calls at the same time."""

import secrets
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from support.errors import raises_code
from support.tokens import CREATED_AT, new_token

from dowise.experiment.storage import open_storage
from dowise_web.tokens import TokenTable

LATER = "2026-01-02T00:00:00.000000Z"


@pytest.fixture
def tables(place):
    """The tokens of two stores at the same place."""
    with (
        closing(open_storage(place, create=True)) as first,
        closing(open_storage(place)) as second,
    ):
        yield TokenTable(first), TokenTable(second)


def fresh(parent=None, **changes):
    return new_token(secrets.token_hex(32), parent)._replace(**changes)


def test_tokens_are_stored_and_numbered(tables):
    table, other = tables
    assert table.find(secrets.token_hex(32)) is None and table.read() == []
    tokens = [fresh(name=name) for name in ("quote ' \" % \\ :x ?", "☃𝄞", "long " * 1000)]
    tokens[1] = tokens[1]._replace(ends_at=LATER, kind="link", role="admin")
    added = [table.add(token) for token in tokens]
    assert added == [token._replace(id=i) for i, token in enumerate(tokens, start=1)]
    for either in tables:
        assert either.read() == added
        assert [either.find(token.hash) for token in added] == added
    with raises_code("duplicate-name", added[0].hash[:8]):
        other.add(added[0])
    assert table.read() == added


def test_only_tokens_that_have_not_ended_get_children(tables):
    table, other = tables
    token, link = table.add(fresh()), table.add(fresh())
    children = [table.add_child(fresh(token.id), once=False) for _ in range(2)]
    assert [child.parent for child in children] == [token.id] * 2
    assert table.find(token.hash) == token
    assert other.add_child(fresh(link.id, made_at=LATER), once=True) is not None
    assert table.find(link.hash) == link._replace(ended_at=LATER)
    before = table.read()
    for parent in (link.id, len(before) + 9):
        for once in (False, True):
            assert table.add_child(fresh(parent), once) is None
    with raises_code("duplicate-name", link.hash[:8]):
        table.add_child(link._replace(parent=token.id), once=True)
    assert table.read() == before


def test_ending_a_token_ends_its_descendants(tables):
    table, other = tables
    token, unrelated, link = (table.add(fresh()) for _ in range(3))
    child = table.add_child(fresh(token.id), once=False)
    grandchild = table.add_child(fresh(child.id), once=False)
    session = table.add_child(fresh(link.id), once=True)
    used = table.find(link.hash)
    assert table.end(token.id, LATER)
    for either in tables:
        for ended in (token, child, grandchild):
            assert either.find(ended.hash) == ended._replace(ended_at=LATER)
        assert [either.find(token.hash) for token in (unrelated, session)] == [unrelated, session]
    before = table.read()
    assert other.end(token.id, CREATED_AT) and table.read() == before  # its time stays
    assert table.end(link.id, LATER) and table.find(link.hash) == used
    assert table.find(session.hash) == session._replace(ended_at=LATER)
    assert not table.end(len(before) + 9, LATER)


@pytest.mark.slow
@pytest.mark.parametrize("is_revoked", [False, True])
def test_exactly_one_thread_uses_up_a_token(tables, is_revoked):
    table, other = tables
    for _ in range(4):
        link, barrier = table.add(fresh()), threading.Barrier(4 + is_revoked)

        def use(i, link=link, barrier=barrier):
            barrier.wait(60)
            return tables[i % 2].add_child(fresh(link.id), once=True)

        def revoke(link=link, barrier=barrier):
            barrier.wait(60)
            return other.end(link.id, LATER)

        with ThreadPoolExecutor(5) as pool:
            results = [pool.submit(use, i) for i in range(4)]
            if is_revoked:
                assert pool.submit(revoke).result(60)
            sessions = [session for task in results if (session := task.result(60)) is not None]
        if is_revoked:
            assert len(sessions) <= 1
            assert all(table.find(session.hash).ended_at is not None for session in sessions)
        else:
            assert len(sessions) == 1
    numbers = [token.id for token in table.read()]
    assert numbers == list(range(1, len(numbers) + 1))
