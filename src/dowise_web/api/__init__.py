"""The API: JSON documents, the same that the commands print with `--json`."""

from __future__ import annotations

from fastapi import FastAPI

from dowise_web.api import admin, decisions, queries

__all__ = ["add_routes"]


def add_routes(app: FastAPI) -> None:
    """Add all routes of the API to an app."""
    # Last, because the path of an experiment itself matches everything below it.
    for router in (decisions.router, queries.router, admin.router):
        app.include_router(router)
