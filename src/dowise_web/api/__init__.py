"""The API: JSON documents, the same that the commands print with `--json`."""

from __future__ import annotations

from fastapi import FastAPI

from dowise_web.api import admin, decisions, queries

__all__ = ["add_to"]


def add_to(app: FastAPI) -> None:
    """Add all routes of the API to the app."""
    for router in (
        decisions.router,
        queries.router,
        queries.journal_router,
        admin.router,
        admin.access_router,
        admin.trying_router,
        admin.experiments_router,
    ):
        app.include_router(router)
