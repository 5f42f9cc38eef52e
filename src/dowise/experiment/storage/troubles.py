"""What a database says when something goes wrong, in plain English and without a password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from dowise.errors import DowiseError

__all__ = ["is_busy", "saying_what_went_wrong"]

_MEANINGS = {
    "disk is full": "the disk is full, and nothing was written: make room",
    "readonly database": "it can't be written: it is read-only, or belongs to somebody else",
    "unable to open": "it can't be opened: look at the rights of the file and of its folder",
    "malformed": "the file is damaged or was cut off: take a backup",
    "not a database": "the file is damaged, or no store: take a backup",
    "disk I/O error": "the disk does not answer, or is full, and nothing was written",
    "no such table": "it is a database of something else, or damaged; it was left as it is",
}


def is_busy(error: DBAPIError) -> bool:
    """Whether somebody else is writing."""
    return "is locked" in str(error.orig) or "is busy" in str(error.orig)


@contextmanager
def saying_what_went_wrong(where: str, password: str | None) -> Iterator[None]:
    """Errors of the database as errors of ours that name the store."""
    try:
        yield
    except SQLAlchemyError as error:
        said = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        meaning = next((text for sign, text in _MEANINGS.items() if sign in said), said)
        if password:
            meaning = meaning.replace(password, "***")
        raise DowiseError(f"{where}: {meaning}") from None
    except DowiseError as error:
        if str(error).startswith("it is"):
            raise DowiseError(f"{where}: {error}") from None
        raise
