"""Live experiments: ask, do, tell, and a journal that loses nothing.

Each name below is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dowise.experiment.experiment import Experiment as Experiment

_HOME = {
    "Experiment": "dowise.experiment.experiment",
    "check_storage": "dowise.testing",
}

__all__ = ["Experiment", "check_storage"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'dowise.experiment' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
