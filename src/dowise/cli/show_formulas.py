"""What `dowise formulas` prints: text for people, or LaTeX and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Protocol

import click

from dowise.cli.tables import MOST_ROWS, plain_console, print_wrapped
from dowise.identification.estimators import iter_estimators
from dowise.problem import Problem
from dowise.problem.formulas import iter_formulas, notation_of

__all__ = ["show_formulas"]

_MOST_EDGES = 12  # in a sentence; --json lists them all


class _Page(Protocol):
    """Where formulas and what is said about them go."""

    def formula(self, written: str) -> None: ...

    def note(self, text: str) -> None: ...


class _Text:
    """Formulas are not broken: a terminal does that, and a file need not have it."""

    def formula(self, written: str) -> None:
        click.echo(written)

    def note(self, text: str) -> None:
        click.echo()
        print_wrapped(plain_console(), text)


class _Latex:
    """A display for each formula; what is said about them is a comment."""

    def formula(self, written: str) -> None:
        click.echo(rf"\[ {written} \]")

    def note(self, text: str) -> None:
        click.echo(f"% {text}")


def show_formulas(problem: Problem, latex: bool, everything: bool) -> None:
    """Each arm's reward in factors, then what other arms' data tell of it."""
    page = _Latex() if latex else _Text()
    if latex:
        page.note(_needs(problem))
    of_arms = (found.latex() if latex else str(found) for found in iter_formulas(problem))
    _show(page, of_arms, everything, len(problem.arms))
    page.note(_legend(problem))
    if problem.edge_priors:
        page.note(_doubts(problem))
    where = ", in the graph as drawn" if problem.possible != problem.graph else ""
    where += ", within each context value" if problem.context else ""
    page.note(f"From the data of other arms{where}")
    _show(page, _from_other_arms(problem, latex), everything)


def _show(page: _Page, formulas: Iterator[str], everything: bool, total: int = 0) -> None:
    """All formulas, or as many as people read; without a total it is not known how many follow."""
    for written in formulas if everything else islice(formulas, MOST_ROWS):
        page.formula(written)
    if not everything and next(formulas, None) is not None:
        rest = f"{total - MOST_ROWS:,} more" if total else "more"
        page.note(f"… and {rest}; --all prints them all")


def _from_other_arms(problem: Problem, latex: bool) -> Iterator[str]:
    """For each intervention set how its reward can be estimated from other sets' experiments."""
    for found in iter_estimators(problem):
        direct, *others = (way.latex() if latex else str(way) for way in found)
        alone = r" \quad\text{(only from its own data)}" if latex else ": only from its own data"
        yield from (f"{direct} = {other}" for other in others) if others else (direct + alone,)


def _legend(problem: Problem) -> str:
    example = notation_of(problem).text.event((*problem.manipulable, problem.reward)[0])
    return f"A small letter is any value of its variable: {example}."


def _needs(problem: Problem) -> str:
    notation = notation_of(problem)
    plain = all(map(str.isascii, (*notation.variables, *notation.labels)))
    other = "" if plain else "; letters beyond ASCII need XeLaTeX or LuaLaTeX, and a font with them"
    return rf"needs \usepackage{{amsmath,amssymb}}{other}"


def _doubts(problem: Problem) -> str:
    """Which doubtful edges the formulas take for granted."""
    edges = list(problem.edge_priors)
    rest = f" and {len(edges) - _MOST_EDGES} more" if len(edges) > _MOST_EDGES else ""
    return (
        "So far as if every doubtful edge were there; where one is not, formulas may be simpler. "
        f"Doubtful: {', '.join(edges[:_MOST_EDGES])}{rest}"
    )
