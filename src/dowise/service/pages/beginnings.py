"""What the page New experiment is made of: examples, the lines around a mistake, charts."""

from __future__ import annotations

from functools import cache
from math import isfinite
from typing import Any

from starlette.datastructures import FormData

from dowise.problem import builtin_names, load_problem
from dowise.problem.problem_file import builtin_path, problem_text
from dowise.service.pages.forms import text_in
from dowise.service.pages.past import Chart
from dowise.service.workshop import BadInputError

__all__ = ["charts_of", "example_text", "examples", "excerpt", "number_in", "whole_in"]

_AROUND = 2  # lines before and after a mistake
_WIDEST = 160  # letters of a line that are shown
_DIGITS = 20  # of a number


@cache
def examples() -> tuple[tuple[str, str], ...]:
    """The problems that come built in, each with what it is about."""
    return tuple((name, load_problem(name).description or "") for name in builtin_names())


def example_text(name: str) -> str:
    """The text of a built-in problem, in one piece; of any other name nothing.

    >>> example_text("asia").splitlines()[0], example_text("../secret")
    ('name = "asia"', '')
    """
    return _text_of(name) if name in builtin_names() else ""


@cache  # of built-in problems alone: others could be any number
def _text_of(name: str) -> str:
    text = builtin_path(name).read_text("utf-8")
    return problem_text(load_problem(name)) if "graph_file" in text else text


def excerpt(text: str, line: int) -> list[tuple[int, str]]:
    """The lines around one, by their numbers.

    >>> excerpt("a\\nb\\nc\\nd\\ne", 4)
    [(2, 'b'), (3, 'c'), (4, 'd'), (5, 'e')]
    """
    lines = text.split("\n")
    first = max(line - _AROUND, 1)
    return [
        (first + i, f"{one[:_WIDEST]} …" if len(one) > _WIDEST else one)
        for i, one in enumerate(lines[first - 1 : line + _AROUND])
    ]


def number_in(form: FormData, field: str, called: str) -> float | None:
    """The number of a field that may be empty; whole ones as such."""
    text = text_in(form, field)
    if not text:
        return None
    try:
        number = float(text.replace(",", "."))
    except ValueError:
        number = float("nan")
    if not isfinite(number) or len(text) > _DIGITS:
        raise BadInputError(f"{called}: {text!r:.40} is no number", field)
    return int(number) if number.is_integer() else number


def whole_in(form: FormData, field: str, called: str) -> int:
    """The whole number of a field."""
    text = text_in(form, field)
    if not (text.isascii() and text.isdigit()) or len(text) > _DIGITS:
        raise BadInputError(f"{called}: {text!r:.40} is no whole number", field)
    return int(text)


def charts_of(found: dict[str, Any]) -> list[Chart]:
    """The curves of a rehearsal, means over its worlds."""
    looks = found["looks"]
    rounds = [look["round"] for look in looks]
    regret = [
        {"name": found["policy"], "colour": 1, "leads": True,
         "values": [look["regret"]["mean"] for look in looks]},
        {"name": "at random", "colour": "others", "leads": False,
         "values": [look["at_random"] for look in looks]},
    ]  # fmt: skip
    shares = [
        {"name": "sure", "colour": 1, "leads": True,
         "values": [look["sure"]["mean"] for look in looks]},
        {"name": "right", "colour": 2, "leads": False, "values": [look["best"] for look in looks]},
        {"name": "advised to stop", "colour": 3, "leads": False,
         "values": [look["stopped"] for look in looks]},
    ]  # fmt: skip
    return [
        Chart("What it costs in all (regret)", "rounds", rounds, regret),
        Chart("How sure one is, and how rightly", "rounds", rounds, shares, [0, 1]),
    ]
