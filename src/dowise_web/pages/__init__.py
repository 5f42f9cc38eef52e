"""The pages, one file each: HTML that the server renders, which htmx keeps up to date."""

from __future__ import annotations

from importlib.resources import files

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from dowise_web.pages import graph, history, new_experiment, now, results, users
from dowise_web.pages.rendering import error_page
from dowise_web.pages.users import OneTimeForm

__all__ = ["add_to"]


def add_to(app: FastAPI) -> None:
    """Give an app all of them, what they load, and the page for errors."""
    app.state.error_page = error_page
    app.state.once = OneTimeForm()
    static = str(files("dowise_web").joinpath("static"))
    app.mount("/static", StaticFiles(directory=static), "static")
    for router in (
        users.router,
        new_experiment.router,
        users.people_router,
        now.router,
        results.router,
        graph.router,
        history.router,
    ):
        app.include_router(router, include_in_schema=False)
