"""The pages, one file each: HTML that the server renders, which htmx keeps up to date."""

from __future__ import annotations

from importlib.resources import files

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from dowise_web.pages import graph, history, now
from dowise_web.pages import new_experiment as beginning
from dowise_web.pages import results as known
from dowise_web.pages import users as doors
from dowise_web.pages import users as people
from dowise_web.pages.rendering import error_page
from dowise_web.pages.users import Once

__all__ = ["add_to"]


def add_to(app: FastAPI) -> None:
    """Give an app all of them, what they load, and the page for errors."""
    app.state.error_page = error_page
    app.state.once = Once()
    static = str(files("dowise_web").joinpath("static"))
    app.mount("/static", StaticFiles(directory=static), "static")
    for part in (doors, beginning, people, now, known, graph, history):
        app.include_router(part.router, include_in_schema=False)
