"""Where journals live."""

from dowise.experiment.storage.checks import check_storage
from dowise.experiment.storage.contract import Snapshot, Storage, Writing
from dowise.experiment.storage.memory import MemoryStorage
from dowise.experiment.storage.opening import open_storage

__all__ = ["MemoryStorage", "Snapshot", "Storage", "Writing", "check_storage", "open_storage"]
