"""The pages, one file each: HTML that the server renders, which htmx keeps up to date."""

from __future__ import annotations

from importlib.resources import files

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from dowise.service.pages import beginning, doors, graph, history, known, now, people
from dowise.service.pages.once import Once
from dowise.service.pages.rendering import error_page

__all__ = ["add_to"]


def add_to(app: FastAPI) -> None:
    """Give an app all of them, what they load, and the page for errors."""
    app.state.error_page = error_page
    app.state.once = Once()
    static = str(files("dowise.service").joinpath("static"))
    app.mount("/static", StaticFiles(directory=static), "static")
    for part in (doors, beginning, people, now, known, graph, history):
        app.include_router(part.router, include_in_schema=False)
