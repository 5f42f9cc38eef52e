"""The pages, one module each: HTML that the server renders and htmx keeps up to date."""

from __future__ import annotations

from importlib.resources import files

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from dowise_web.pages import graph, history, new_experiment, now, results, users
from dowise_web.pages.rendering import error_page
from dowise_web.pages.users import OneTimeForm

__all__ = ["add_routes"]


def add_routes(app: FastAPI) -> None:
    """Add all pages, their static files and the page for errors to an app."""
    app.state.error_page = error_page
    app.state.one_time_form = OneTimeForm()
    static = str(files("dowise_web").joinpath("static"))
    app.mount("/static", StaticFiles(directory=static), "static")
    for page in (users, new_experiment, now, results, graph, history):
        app.include_router(page.router, include_in_schema=False)
