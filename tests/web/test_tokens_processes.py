"""Tokens used by several processes, and damaged rows."""

import os
import signal
import sqlite3
from contextlib import closing

import pytest
from support.errors import raises_code
from support.journal_writers import append
from support.system_users import FORK, run_in_child
from support.tokens import CREATED_AT, new_token, opened

from dowise import DowiseError, Experiment
from dowise.experiment.storage import open_storage
from dowise_web import tokens
from dowise_web.tokens import TokenTable

pytestmark = pytest.mark.slow  # real processes and waits


def test_exactly_one_process_uses_up_a_link(place):
    links = 20
    with closing(open_storage(place, create=True)) as storage:
        for i in range(links):
            TokenTable(storage).add(new_token(f"link {i}"))
    barrier = FORK.Barrier(2)
    queue = FORK.SimpleQueue()

    def use(name):
        with opened(place) as storage:
            for i in range(links):
                barrier.wait(60)
                won = TokenTable(storage).add_child(new_token(f"{name} {i}", i + 1), once=True)
                queue.put((i, name, won is not None))

    children = [FORK.Process(target=use, args=(name,)) for name in ("one", "other")]
    for child in children:
        child.start()
    results = [queue.get() for _ in range(2 * links)]
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    winners = {i: name for i, name, won in results if won}
    assert sum(won for _, _, won in results) == links == len(winners)
    with opened(place) as storage:
        stored = TokenTable(storage).read()
        assert [token.ended_at for token in stored[:links]] == [CREATED_AT] * links
        assert [token.parent for token in stored[links:]] == list(range(1, links + 1))
        assert [token.hash for token in stored[links:]] == [f"{winners[i]} {i}" for i in winners]


def test_a_killed_process_leaves_the_link_unused(place, monkeypatch):
    with closing(open_storage(place, create=True)) as storage:
        link = TokenTable(storage).add(new_token("link"))

    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    def use():
        monkeypatch.setattr(tokens, "insert", die)  # after the link has ended
        with opened(place) as storage:
            TokenTable(storage).add_child(new_token("session", link.id), once=True)

    child = FORK.Process(target=use)
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    with opened(place) as storage:
        assert TokenTable(storage).read() == [link]
        assert TokenTable(storage).add_child(new_token("session", link.id), once=True).id == 2


def test_tokens_do_not_change_journals(place):
    with Experiment.create(place, "ward", "task1", policy="ucb", seed=1) as experiment:
        experiment.ask()
        head = experiment.head
        with opened(place) as storage:
            TokenTable(storage).add(new_token("one"))
            TokenTable(storage).end(1, CREATED_AT)
        assert experiment.head == head and experiment.audit().ok
        assert experiment.ask().id == 2


def test_tokens_work_in_a_forked_child_and_in_a_transaction(place):
    with closing(open_storage(place, create=True)) as storage:
        TokenTable(storage).add(new_token("one"))
        assert run_in_child(lambda: TokenTable(storage).add(new_token("two")).id) == 2
        assert TokenTable(storage).add(new_token("three")).id == 3
        append(storage)
        with storage.transaction("ward"):
            assert TokenTable(storage).find("two").id == 2  # readers never wait
        if "://" not in place:
            with (
                storage.transaction("ward"),
                pytest.raises(DowiseError, match="list of tokens can't be written: this thread"),
            ):
                TokenTable(storage).add(new_token("four"))


def test_a_damaged_row_is_an_error(tmp_path):
    path = tmp_path / "ward.db"
    with closing(open_storage(path, create=True)) as storage:
        TokenTable(storage).add(new_token("one"))
        with closing(sqlite3.connect(path)) as raw:
            raw.execute("UPDATE tokens SET role = x'00'")
            raw.commit()
        with raises_code("damaged-file", "token 1 ", "restore the store"):
            TokenTable(storage).find("one")
