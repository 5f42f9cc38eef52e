"""Conformance suites for custom policies, environments and storages.

Each name below is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dowise.testing.environments import check_environment as check_environment
    from dowise.testing.policies import check_policy as check_policy
    from dowise.testing.storage import check_storage as check_storage

_MODULES = {
    "check_environment": "dowise.testing.environments",
    "check_policy": "dowise.testing.policies",
    "check_storage": "dowise.testing.storage",
}

__all__ = ["check_environment", "check_policy", "check_storage"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'dowise.testing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
