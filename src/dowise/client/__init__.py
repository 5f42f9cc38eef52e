"""Experiments on a server: `Client` has the methods of `Experiment`, over HTTP.

`Client` is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dowise.client.client import Client as Client

__all__ = ["Client"]


def __getattr__(name: str) -> Any:
    if name == "Client":
        from dowise.client.client import Client

        return Client
    raise AttributeError(f"module 'dowise.client' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
