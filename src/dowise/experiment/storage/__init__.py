"""Where journals live, and the tokens of those who use them over HTTP."""

from dowise.experiment.storage.checks import check_storage
from dowise.experiment.storage.contract import Snapshot, Storage, Writing
from dowise.experiment.storage.memory import MemoryStorage
from dowise.experiment.storage.opening import open_storage
from dowise.experiment.storage.token_checks import check_token_storage
from dowise.experiment.storage.token_contract import Token, TokenStorage

__all__ = [
    "MemoryStorage", "Snapshot", "Storage", "Token", "TokenStorage", "Writing", "check_storage",
    "check_token_storage", "open_storage",
]  # fmt: skip
