"""Open the store of an experiment, and resolve its name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dowise.errors import DowiseError, NotFoundError, suggestion
from dowise.experiment.storage import open_storage
from dowise.experiment.storage.base import HOW_TO_MAKE, WITHOUT_WAL, Storage

Store = str | Path | Storage


@contextmanager
def opened(store: Store, create: bool = False) -> Iterator[Storage]:
    """Open a store, and close it again if the block fails."""
    storage = open_storage(store, create=create)
    try:
        yield storage
    except BaseException:
        if storage is not store:
            storage.close()
        raise


def name_in(storage: Storage, name: str | None) -> str:
    """Return the name of an experiment in a store; it is optional if there is only one."""
    names = storage.experiments()
    if not names:
        is_file = not str(storage).startswith("postgresql")
        raise DowiseError(
            f"{storage} holds no experiment: make one ({HOW_TO_MAKE})"
            f"{f'; or {WITHOUT_WAL}' if is_file else ''}"
        )
    if name is None and len(names) > 1:
        raise DowiseError(f"{storage} holds {', '.join(names)}: say which (`name`)")
    if name is not None and name not in names:
        raise NotFoundError(
            f"{storage} has no experiment {name!r}{suggestion(str(name), names)}: it holds "
            f"{', '.join(names)}"
        )
    return names[0] if name is None else name


def checked_name(name: object) -> str:
    """Validate the name of an experiment, and strip it."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > 200:
        raise DowiseError(f"{name!r:.80} is no name for an experiment: use a short text")
    return name.strip()
