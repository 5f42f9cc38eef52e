"""The page The graph: what causes what, what the records say of it, and what is known of each part.

The picture is drawn by our own layout, as SVG in the page. A variable in it and an arm beside it
are links: they show what is known of that one in a panel, which htmx loads, or the whole page where
there is no script.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from markupsafe import Markup

from dowise.belief import Belief
from dowise.belief.evidence import Evidence, risen
from dowise.errors import DowiseError, UnavailableError
from dowise.experiment.experiment import Experiment
from dowise.experiment.factor_tables import formula_view, variable_view
from dowise.experiment.read_model import IndependentArmsBelief
from dowise.plotting.scene import LABELS, GraphPicture, picture
from dowise.plotting.svg import inline_svg, legend
from dowise.problem import Problem
from dowise_web.api.dependencies import Here, house_of, whose
from dowise_web.auth import Reader
from dowise_web.cache import PatientRoute
from dowise_web.errors import says
from dowise_web.pages.rendering import address_of, in_page_words, render

router = APIRouter(prefix="/experiments/{name:path}/graph", route_class=PatientRoute)
Chosen = Annotated[str, Query(max_length=10_000)]

MOST_ARMS = 60  # that are listed; the text of any other can be typed
MOST_EDGES = 12  # doubtful ones that are listed before the rest is folded away
_HOW_ELSEWHERE = " (evidence=True, --evidence)"  # how to ask for it where there is no page


@dataclass(frozen=True)
class Drawn:
    """The graph as of now: the picture, what the records say against it, its doubtful edges."""

    problem: Problem
    picture: GraphPicture
    evidence: Evidence | None
    why_none: str
    edges: tuple[tuple[str, float, float, bool], ...]
    """Text, how likely before and now, and whether any record can tell; the likeliest first."""
    soft: int
    """How many of these edges nobody drew; the likeliest are in the picture all the same."""


@dataclass(frozen=True)
class Panel:
    """What is known of one variable or one arm, or nothing where none was chosen."""

    shows: str = ""
    """The id of the link that leads to it."""
    address: str = ""
    """Where it is asked for again."""
    variable: Any = None
    formula: Any = None
    words: str = ""
    wrong: str = ""


@router.get("")
def graph(
    request: Request,
    experiment: Here,
    visitor: Reader,
    variable: Chosen = "",
    arm: Chosen = "",
    evidence: Annotated[str, Query(max_length=10)] = "",
) -> Response:
    """The page; `evidence=1` looks at the evidence however long that takes."""
    drawn = _drawn(request, experiment, evidence == "1")
    panel = _panel(request, experiment, drawn.problem, variable, arm)
    place = address_of(experiment.name, "graph")
    problem = drawn.problem
    return render(
        request, "graph.html", visitor,
        422 if panel.wrong else 200,
        experiment=experiment,
        here="graph",
        place=place,
        this=_address(place, {"variable": variable, "arm": arm, "evidence": evidence}),
        with_evidence=_address(place, {"variable": variable, "arm": arm, "evidence": "1"}),
        drawn=drawn,
        picture=_markup(drawn, place, panel.shows),
        legend=[(Markup(one.sample), one.label) for one in legend(drawn.picture)],
        panel=panel,
        arms=[
            _arm(problem, position, place, panel.shows)
            for position in range(min(len(problem.arms), MOST_ARMS))
        ],
        more_arms=max(len(problem.arms) - MOST_ARMS, 0),
        most_edges=MOST_EDGES,
        roles=LABELS,
    )  # fmt: skip


@router.get("/panel")
def panel(
    request: Request,
    experiment: Here,
    visitor: Reader,
    variable: Chosen = "",
    arm: Chosen = "",
) -> Response:
    """The panel alone."""
    found = _panel(request, experiment, experiment.problem, variable, arm)
    status = 422 if found.wrong else 200
    return render(request, "graph_panel.html", visitor, status, panel=found, roles=LABELS)


# -- the picture --------------------------------------------------------------------------------


def _drawn(request: Request, experiment: Experiment, is_wanted: bool) -> Drawn:
    """The graph, shared with all who look at it at the same time."""
    house = house_of(request)
    if not is_wanted:
        return house.look(experiment, "graph", lambda: _made(*experiment.judged()))[1]

    def compute() -> Drawn:
        try:
            return _made(*experiment.judged(evidence=True))
        except UnavailableError:
            raise
        except DowiseError as error:
            return _made(experiment.belief, None, in_page_words(says(request, error)))

    return house.look(experiment, "graph with evidence", compute, whose(request))[1]


def _made(belief: Belief, evidence: Evidence | None, why_none: str) -> Drawn:
    problem, chances = belief.problem, belief.edges()
    if isinstance(belief, IndependentArmsBelief) and not why_none:
        why_none = f"The graph is too large to be judged: {belief.why}."
    suspected = (*(evidence.suspected if evidence else ()), *risen(belief))
    untold = belief.undecidable_edges
    edges = sorted(
        ((x, problem.edge_priors[x], now, x not in untold) for x, now in chances.items()),
        key=lambda edge: -edge[2],
    )
    soft = [text for text, *_ in edges if text not in problem.graph.edge_texts]
    drawn = picture(problem, chances, suspected, soft[:MOST_EDGES])
    why = why_none.removesuffix(_HOW_ELSEWHERE)
    return Drawn(problem, drawn, evidence, why, tuple(edges), len(soft))


def _markup(drawn: Drawn, place: str, chosen: str) -> Markup:
    positions = drawn.problem.positions

    def link_of(name: str) -> dict[str, str]:
        return _link(f"variable-{positions[name]}", place, {"variable": name}, chosen)

    return Markup(inline_svg(drawn.picture, link_of))  # which escapes every name


def _link(own: str, place: str, query: Mapping[str, str], chosen: str) -> dict[str, str]:
    """The attributes of what shows itself in the panel."""
    address = _address(place, query)
    link = {
        "id": own,
        "href": f"{address}#panel",
        "hx-get": _address(f"{place}/panel", query),
        "hx-push-url": address,
    }
    return link | ({"aria-current": "true"} if own == chosen else {})


def _address(place: str, query: Mapping[str, str]) -> str:
    asked = {name: text for name, text in query.items() if text}
    # Half a character, which a name may hold and no address can, leads nowhere but harms nobody.
    return f"{place}?{urlencode(asked, errors='replace')}" if asked else place


def _arm(problem: Problem, position: int, place: str, chosen: str) -> dict[str, Any]:
    text = str(problem.arms[position])
    return {"text": text, "link": _link(f"arm-{position}", place, {"arm": text}, chosen)}


# -- the panel ----------------------------------------------------------------------------------


def _panel(
    request: Request, experiment: Experiment, problem: Problem, variable: str, arm: str
) -> Panel:
    place = address_of(experiment.name, "graph/panel")
    try:
        if variable:
            _, view = house_of(request).look(
                experiment,
                ("variable", variable),
                lambda: variable_view(experiment.belief, variable),
            )
            shows = f"variable-{problem.positions[variable]}"
            return Panel(shows, _address(place, {"variable": variable}), variable=view)
        if arm:
            formula, position = formula_view(problem, arm), problem.arm_index(arm)
            words = problem.arms[position].in_words()
            address = _address(place, {"arm": formula.arm})
            return Panel(f"arm-{position}", address, formula=formula, words=words)
    except UnavailableError:
        raise
    except DowiseError as error:
        return Panel(wrong=in_page_words(says(request, error)))
    return Panel()
