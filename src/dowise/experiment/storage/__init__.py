"""Stores of journals: SQLite, PostgreSQL and memory. `base` has their contract."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dowise.experiment.storage.base import TIMEOUT as TIMEOUT
from dowise.experiment.storage.base import Snapshot, Storage, StorageTransaction
from dowise.experiment.storage.memory import MemoryStorage
from dowise.experiment.storage.url import open_storage

if TYPE_CHECKING:
    from dowise.experiment.storage.sql import Row as Row
    from dowise.experiment.storage.sql import SqlStorage as SqlStorage
    from dowise.experiment.storage.sql import Statement as Statement
    from dowise.experiment.storage.sql import schema as schema
    from dowise.experiment.storage.sql import tokens as tokens

__all__ = ["MemoryStorage", "Snapshot", "Storage", "StorageTransaction", "open_storage"]

_SQL = ("Row", "SqlStorage", "Statement", "schema", "tokens")  # for the tokens of dowise_web


def __getattr__(name: str) -> Any:
    if name in _SQL:  # SQLAlchemy is loaded when it is needed
        return getattr(importlib.import_module("dowise.experiment.storage.sql"), name)
    raise AttributeError(f"module 'dowise.experiment.storage' has no attribute {name!r}")
