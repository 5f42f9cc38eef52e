"""Stores of journals: SQLite, PostgreSQL and memory. `base` has their contract."""

from dowise.experiment.storage.base import Snapshot, Storage, StorageTransaction
from dowise.experiment.storage.memory import MemoryStorage
from dowise.experiment.storage.url import open_storage

__all__ = ["MemoryStorage", "Snapshot", "Storage", "StorageTransaction", "open_storage"]
