"""The API: JSON documents, the same that the commands print with `--json`."""

from __future__ import annotations

from fastapi import FastAPI

from dowise.service.api import access, changing, deciding, experiments, journal, looking, trying

__all__ = ["add_to"]


def add_to(app: FastAPI) -> None:
    """Give an app all of it."""
    for part in (deciding, looking, journal, changing, access, trying, experiments):
        app.include_router(part.router)
