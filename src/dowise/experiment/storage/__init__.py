"""Where journals live: SQLite, PostgreSQL, or memory."""

from dowise.experiment.storage.contract import Snapshot, Storage, Writing
from dowise.experiment.storage.location import open_storage
from dowise.experiment.storage.memory import MemoryStorage

__all__ = ["MemoryStorage", "Snapshot", "Storage", "Writing", "open_storage"]
