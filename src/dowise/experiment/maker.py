"""Who and what made an event: the actor, the time, the versions and the processor."""

from __future__ import annotations

import getpass
import os
import platform
from datetime import UTC, datetime, timedelta
from functools import cache

from dowise.errors import DowiseError
from dowise.policies.reasons import WORDING
from dowise.randomness import DRAWS

__all__ = ["actor_of", "maker", "time_after"]

_LONGEST = 200  # characters of an actor's name
_SKEW = timedelta(minutes=5)  # so far clocks of machines that share a store may be apart


@cache
def maker() -> dict[str, str]:
    """What the bits and words of a decision depend on, besides what was known."""
    import llvmlite
    import llvmlite.binding
    import numba
    import numpy as np

    import dowise

    return {
        "dowise": dowise.__version__,
        "draws": DRAWS,
        "wording": WORDING,
        "numpy": np.__version__,
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "processor": f"{platform.machine()} {llvmlite.binding.get_host_cpu_name()}",
    }


def actor_of(given: str | None) -> str:
    """Who acts: the one named, or the system's user."""
    if given is not None:
        if not isinstance(given, str) or not given.strip() or not given.isprintable():
            raise DowiseError(f"actor={given!r:.80}: say who acts, by a short text")
        if len(given) > _LONGEST:
            raise DowiseError(f"the actor is a text of {len(given)} characters: use a short one")
        return given.strip()
    try:
        name = getpass.getuser().encode(errors="replace").decode()  # a name that is no UTF-8
        return "".join(letter if letter.isprintable() else "?" for letter in name)[:_LONGEST]
    except (KeyError, OSError, ImportError):  # a user without a name, as in a container
        return f"user {os.getuid()}" if hasattr(os, "getuid") else "unknown"


def now() -> datetime:
    """The time, which tests replace."""
    return datetime.now(UTC)


def time_after(last: str, accept_clock: bool = False) -> str:
    """The time of the next event: never before that of the last one.

    A clock that is a little behind gets the last event's time; one that is far behind is an error,
    unless it is accepted.
    """
    current = now()
    text = current.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if text >= last:
        return text
    behind = datetime.fromisoformat(last) - current
    if behind > _SKEW and not accept_clock:
        raise DowiseError(
            f"this machine's clock says {text}, but the last event was at {last}: one of the two "
            "clocks was wrong. Set the clock right, or go on with `accept_clock`, "
            "which gives events the last one's time until the clock has passed it"
        )
    return last
