"""The API: JSON documents, the same that the commands print with `--json`."""

from __future__ import annotations

from fastapi import FastAPI

from dowise_web.api import admin as access
from dowise_web.api import admin as changing
from dowise_web.api import admin as experiments
from dowise_web.api import admin as trying
from dowise_web.api import decisions as deciding
from dowise_web.api import queries as journal
from dowise_web.api import queries as looking

__all__ = ["add_to"]


def add_to(app: FastAPI) -> None:
    """Give an app all of it."""
    for part in (deciding, looking, journal, changing, access, trying, experiments):
        app.include_router(part.router)
