"""Tokens in stores of all kinds keep their contract."""

import re
import threading

import pytest

from dowise import DowiseError
from dowise.experiment.storage import (
    MemoryStorage,
    check_storage,
    check_token_storage,
    open_storage,
)
from dowise.experiment.storage.memory_tokens import MemoryTokens
from dowise.experiment.storage.token_contract import tokens_of


def test_tokens_in_memory_keep_the_contract():
    storage = MemoryStorage()
    check_token_storage(lambda: storage)


def test_tokens_in_tables_keep_the_contract(place):
    open_storage(place, create=True).close()
    check_token_storage(lambda: open_storage(place))


@pytest.mark.slow
def test_a_store_of_ones_own_need_not_keep_tokens():
    storage = MemoryStorage()
    storage.tokens = None
    check_storage(lambda: storage)
    with pytest.raises(DowiseError, match="a store in memory keeps no tokens, so it can't be se"):
        tokens_of(storage)


def forgetful(self, token):
    return token._replace(id=len(self._tokens) + 1)


def twice(self, token):
    self._tokens.append(added := token._replace(id=len(self._tokens) + 1))
    return added


def unnumbered(self, token):
    MemoryTokens.add(self, token)
    return token


def orphans(self, token, once):  # noqa: ARG001
    return MemoryTokens.add(self, token)._replace(parent=token.parent)


def never_used_up(self, token, once):  # noqa: ARG001
    return MemoryTokens.add_child(self, token, once=False)


def always_used_up(self, token, once):  # noqa: ARG001
    return MemoryTokens.add_child(self, token, once=True)


def used_up_by_nothing(self, token, once):
    parent = self._numbered(token.parent)
    if once and parent is not None and parent.ended_at is None:
        self._end(parent, token.made_at)
        return self._add(token)
    return MemoryTokens.add_child(self, token, once)


def in_two_steps(self, token, once):
    parent = self._numbered(token.parent)
    if parent is None or parent.ended_at is not None:
        return None
    threading.Event().wait(0.05)
    with self._guard:
        added = self._add(token)
        if once:
            self._end(parent, token.made_at)
        return added


def end_alone(self, number, at):
    token = self._numbered(number)
    if token is not None:
        self._end(token, at)
    return token is not None


def end_children_only(self, number, at):
    for token in self._tokens:
        if number in (token.id, token.parent):
            self._end(token, at)
    return self._numbered(number) is not None


def end_all(self, number, at):
    for token in list(self._tokens):
        self._end(token, at)
    return self._numbered(number) is not None


def end_once(self, number, at):
    token = self._numbered(number)
    if token is None or token.ended_at is not None:
        return False
    return MemoryTokens.end(self, number, at)


def end_what_is_used_up_alone(self, number, at):
    token = self._numbered(number)
    return (token is not None and token.ended_at is not None) or MemoryTokens.end(self, number, at)


def end_anew(self, number, at):
    found = MemoryTokens.end(self, number, at)
    if found:
        self._tokens[number - 1] = self._tokens[number - 1]._replace(ended_at=at)
    return found


def end_anything(self, number, at):
    MemoryTokens.end(self, number, at)
    return True


def fail(self, hash_):  # noqa: ARG001
    raise RuntimeError("out of order")


@pytest.mark.parametrize(
    ("methods", "promise"),
    [
        ({"find": fail}, "it raises RuntimeError: out of order"),
        ({"find": lambda self, _: self._tokens[0] if self._tokens else None}, "find gives the tok"),
        ({"add": unnumbered}, "with its number"),
        ({"add": forgetful}, "with its number|read gives all"),
        ({"add": twice}, "there already is refused"),
        ({"read": lambda self: self._tokens[::-1]}, "in order"),
        ({"add_child": orphans}, "has ended|children"),
        ({"add_child": never_used_up}, "with `once` the parent has ended"),
        ({"add_child": always_used_up}, "any number of children|leaves its parent alone"),
        ({"add_child": used_up_by_nothing}, "all is as it was before|the parent has ended"),
        ({"add_child": in_two_steps}, "exactly one succeeds"),
        ({"end": end_alone}, "all that came from it"),
        ({"end": end_children_only}, "all that came from it"),
        ({"end": end_all}, "leaves alone"),
        ({"end": end_once}, "again is no error"),
        ({"end": end_what_is_used_up_alone}, "used up ends what came from it"),
        ({"end": end_anew}, "keeps its time"),
        ({"end": end_anything}, "whether there is such a token"),
    ],
)
def test_each_broken_promise_is_found(methods, promise):
    storage = MemoryStorage()
    storage.tokens = type("Broken", (MemoryTokens,), methods)()
    with pytest.raises(DowiseError, match="breaks the contract") as error:
        check_token_storage(lambda: storage)
    assert re.search(promise, str(error.value))
