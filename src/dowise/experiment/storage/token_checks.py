"""The contract of a store of tokens, as a check to run on a store of one's own."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from dowise.errors import DowiseError
from dowise.experiment.storage.check_tools import demand, refuses, start
from dowise.experiment.storage.contract import Storage
from dowise.experiment.storage.token_contract import Token, TokenStorage, tokens_of

__all__ = ["check_token_storage"]

RACES = 8
RUNNERS = 4
_AT, _LATER = "2026-01-01T00:00:00.000000Z", "2026-01-02T00:00:00.000000Z"


class _Trial(NamedTuple):
    """The tokens of two stores at the same place."""

    one: TokenStorage
    other: TokenStorage


def check_token_storage(make: Callable[[], Storage]) -> None:
    """Try the tokens of a store, and raise a `DowiseError` that names the first broken promise.

    `make` is as for `check_storage`. The check leaves tokens there that nobody knows the secrets
    of, so give it a place that can be thrown away. What it can't see: whether tokens outlive a
    crash of the machine, or a process that dies in the midst of a call.
    """
    one, other = make(), make()
    try:
        for check in (_check_keeping, _check_children, _check_ending, _check_races):
            check(_Trial(tokens_of(one), tokens_of(other)))
    except DowiseError:
        raise
    except Exception as error:
        raise DowiseError(
            f"this storage breaks the contract: it raises {type(error).__name__}: {error}"
        ) from error
    finally:
        one.close()
        other.close()


def _new(parent: int | None = None, made_at: str = _AT, name: str = "Zoë") -> Token:
    return Token(0, secrets.token_hex(32), "token", "read", name, parent, made_at, None, None)


def _check_keeping(trial: _Trial) -> None:
    one, other = trial
    demand(one.find(secrets.token_hex(32)) is None, "find gives None for a hash that is not there")
    before = one.read()
    given = [_new(name=name) for name in ("quote ' \" % \\ :x ?", "☃𝄞", "long " * 1000)]
    given[1] = given[1]._replace(ends_at=_LATER, kind="link", role="admin")
    added = [one.add(token) for token in given]
    for i, (token, kept) in enumerate(zip(given, added, strict=True), start=len(before) + 1):
        demand(kept == token._replace(id=i), "add gives the token with its number: 1, 2, …")
    for tokens in trial:
        demand(tokens.read() == before + added, "read gives all that were added, in order")
        for token in added:
            demand(tokens.find(token.hash) == token, "find gives the token with this hash")
    with refuses("a hash that is there already is refused, with a DowiseError"):
        other.add(added[0])
    demand(one.read() == before + added, "after a refused call all is as it was before it")


def _check_children(trial: _Trial) -> None:
    one, other = trial
    token, link = one.add(_new()), one.add(_new())
    first, second = (one.add_child(_new(token.id), once=False) for _ in range(2))
    kept = first is not None and second is not None and first.parent == token.id
    demand(kept, "a token that has not ended may have any number of children")
    demand(one.find(token.hash) == token, "a child without `once` leaves its parent alone")
    only = other.add_child(_new(link.id, _LATER), once=True)
    used = link._replace(ended_at=_LATER)
    demand(only is not None and one.find(link.hash) == used, "with `once` the parent has ended")
    before = one.read()
    for parent in (link.id, len(before) + 9):
        for once in (False, True):
            promise = "what has ended, or is not there, gets no child"
            demand(one.add_child(_new(parent), once) is None and one.read() == before, promise)
    with refuses("a hash that is there already is refused, with a DowiseError"):
        one.add_child(link._replace(parent=token.id), once=True)
    demand(one.read() == before, "after a refused call all is as it was before it")


def _check_ending(trial: _Trial) -> None:
    one, other = trial
    token, beside, link = (one.add(_new()) for _ in range(3))
    child = _child(one, token)
    grandchild, session = _child(one, child), _child(one, link, once=True)
    ended = one.find(link.hash)
    demand(one.end(token.id, _LATER), "end says whether there is such a token")
    for tokens in trial:
        for gone in (token, child, grandchild):
            found = tokens.find(gone.hash)
            promise = "end ends a token, and all that came from it"
            demand(found == gone._replace(ended_at=_LATER), promise)
        kept = tokens.find(beside.hash) == beside and tokens.find(session.hash) == session
        demand(kept, "end leaves alone what did not come from the token")
    before = one.read()
    demand(other.end(token.id, _AT), "to end a token again is no error")
    demand(one.read() == before, "what has ended keeps its time")
    demand(one.end(link.id, _LATER), "a token that was used up can be ended")
    demand(one.find(link.hash) == ended, "what has ended keeps its time")
    demand(
        one.find(session.hash) == session._replace(ended_at=_LATER),
        "to end what was used up ends what came from it",
    )
    demand(not one.end(len(before) + 9, _LATER), "end says whether there is such a token")


def _child(tokens: TokenStorage, parent: Token, once: bool = False) -> Token:
    found = tokens.add_child(_new(parent.id), once)
    demand(found is not None, "what has not ended may have a child")
    assert found is not None
    return found


def _check_races(trial: _Trial) -> None:
    """Threads that use up the same token; in every other race one that ends it meanwhile."""
    for race in range(RACES):
        link, line = trial.one.add(_new()), threading.Barrier(RUNNERS + race % 2)
        runners = [start(partial(_use, trial[i % 2], link, line)) for i in range(RUNNERS)]
        ending = [start(partial(_end, trial.other, link, line)) for _ in range(race % 2)]
        results = [task.result("calls that wait for others all return", 60) for task in runners]
        won = [result for result in results if result is not None]
        promise = "of calls that use up the same token exactly one succeeds"
        demand(len(won) == 1 or (bool(ending) and not won), promise)
        for task in ending:
            task.result("calls that wait for others all return", 60)
            ended = {token.hash: token.ended_at for token in trial.one.read()}
            kept = [child for child in won if ended[child.hash] is None]
            demand(not kept, "nothing that came from a token outlives its end")
    numbers = [token.id for token in trial.one.read()]
    demand(numbers == list(range(1, len(numbers) + 1)), "tokens are numbered 1, 2, … as they come")


def _use(tokens: TokenStorage, link: Token, line: threading.Barrier) -> Token | None:
    line.wait()
    return tokens.add_child(_new(link.id), once=True)


def _end(tokens: TokenStorage, link: Token, line: threading.Barrier) -> bool:
    line.wait()
    return tokens.end(link.id, _LATER)
