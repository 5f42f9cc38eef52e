"""Base of immutable classes, apart from `types` so that `dowise.graph` does not load NumPy."""

from __future__ import annotations


class Frozen:
    """Base of immutable classes: `__init__` sets the attributes, then calls `_freeze`."""

    __slots__ = ("_is_frozen",)
    _is_frozen: bool

    def _freeze(self) -> None:
        object.__setattr__(self, "_is_frozen", True)

    def __setattr__(self, name: str, value: object) -> None:
        if getattr(self, "_is_frozen", False):
            raise AttributeError(f"{type(self).__name__} is immutable: create a new one")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: create a new one")
