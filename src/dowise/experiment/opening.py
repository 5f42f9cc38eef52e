"""Finding an experiment: the store, and the name in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dowise.errors import DowiseError, NotFoundError, suggestion
from dowise.experiment.storage import open_storage
from dowise.experiment.storage.contract import Storage
from dowise.experiment.storage.rules import HOW_TO_MAKE, WITHOUT_WAL

__all__ = ["Store", "checked_name", "name_in", "opened"]

Store = str | Path | Storage


@contextmanager
def opened(store: Store, create: bool = False) -> Iterator[Storage]:
    """A store, let go of again where what is done with it fails."""
    storage = open_storage(store, create=create)
    try:
        yield storage
    except BaseException:
        if storage is not store:
            storage.close()
        raise


def name_in(storage: Storage, name: str | None) -> str:
    """The name of an experiment in a store, which may be left out where there is only one."""
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
    """What an experiment may be called."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > 200:
        raise DowiseError(f"{name!r:.80} is no name for an experiment: use a short text")
    return name.strip()
