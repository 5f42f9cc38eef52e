"""The page The graph: the causal graph, the evidence against it, and what is known of its parts.

The picture is SVG inside the page. Variables in it and arms beside it are links, which show details
in a panel that htmx loads; without JavaScript they load the whole page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from markupsafe import Markup

from dowise.belief import Belief, Evidence, risen
from dowise.errors import DowiseError, UnavailableError
from dowise.experiment import (
    FormulaView,
    IndependentArmsBelief,
    StateView,
    VariableView,
    formula_view,
    variable_view,
)
from dowise.plotting import LABELS, GraphPicture, inline_svg, legend, picture
from dowise.problem import Problem
from dowise_web.api.dependencies import CurrentView, cached
from dowise_web.auth import Reader
from dowise_web.pages.rendering import page_message, page_url, render_in_thread

router = APIRouter(prefix="/experiments/{name:path}/graph")
Selection = Annotated[str, Query(max_length=10_000)]

MAX_ARMS = 60  # listed; others can be typed
MAX_EDGES = 12  # doubtful edges that are listed before the rest is folded away
_OTHER_SURFACES = " (evidence=True, --evidence)"  # how to request evidence elsewhere


@dataclass(frozen=True)
class DoubtfulEdge:
    """An edge that may be absent, with its probability before and after the records."""

    text: str
    prior: float
    probability: float
    is_testable: bool
    """False if no record can tell."""


@dataclass(frozen=True)
class GraphSummary:
    """The picture of the graph, the evidence against it, and its doubtful edges."""

    problem: Problem
    picture: GraphPicture
    evidence: Evidence | None
    no_evidence_reason: str
    edges: tuple[DoubtfulEdge, ...]
    """The most probable first."""
    soft: int
    """Number of the edges that are not drawn in the problem's graph."""


@dataclass(frozen=True)
class Panel:
    """Details of one variable or one arm; empty if none is chosen."""

    link_id: str = ""
    url: str = ""
    variable: VariableView | None = None
    formula: FormulaView | None = None
    text: str = ""
    error: str = ""


@router.get("")
async def graph(
    request: Request,
    view: CurrentView,
    principal: Reader,
    variable: Selection = "",
    arm: Selection = "",
    evidence: Annotated[str, Query(max_length=10)] = "",
) -> Response:
    """Show the page; `evidence=1` computes the evidence however long that takes."""
    view, summary = await _summary(request, view, evidence == "1")
    panel = await _panel(request, view, variable, arm)
    url, problem = page_url(view.name, "graph"), summary.problem
    return await render_in_thread(
        request,
        "graph.html",
        principal,
        422 if panel.error else 200,
        view=view,
        here="graph",
        url=url,
        current_url=_url(url, {"variable": variable, "arm": arm, "evidence": evidence}),
        evidence_url=_url(url, {"variable": variable, "arm": arm, "evidence": "1"}),
        summary=summary,
        picture=_svg(summary, url, panel.link_id),
        legend=[(Markup(entry.sample), entry.label) for entry in legend(summary.picture)],
        panel=panel,
        arms=[
            {"text": str(arm), "link": _link(f"arm-{i}", url, {"arm": str(arm)}, panel.link_id)}
            for i, arm in enumerate(problem.arms[:MAX_ARMS])
        ],
        more_arms=max(len(problem.arms) - MAX_ARMS, 0),
        max_edges=MAX_EDGES,
        roles=LABELS,
    )


@router.get("/panel")
async def panel(
    request: Request,
    view: CurrentView,
    principal: Reader,
    variable: Selection = "",
    arm: Selection = "",
) -> Response:
    """Show the panel alone."""
    panel = await _panel(request, view, variable, arm)
    status = 422 if panel.error else 200
    return await render_in_thread(
        request, "graph_panel.html", principal, status, panel=panel, roles=LABELS
    )


# -- the picture --------------------------------------------------------------------------------


async def _summary(
    request: Request, view: StateView, wants_evidence: bool
) -> tuple[StateView, GraphSummary]:
    if not wants_evidence:
        return await cached(request, view, "graph", lambda view: _summarize(*view.judged()))

    def compute(view: StateView) -> GraphSummary:
        try:
            return _summarize(*view.judged(evidence=True))
        except UnavailableError:
            raise
        except DowiseError as error:
            return _summarize(view.belief, None, page_message(request, error))

    return await cached(request, view, "graph with evidence", compute, is_long=True)


def _summarize(belief: Belief, evidence: Evidence | None, reason: str) -> GraphSummary:
    problem, probabilities = belief.problem, belief.edges()
    if isinstance(belief, IndependentArmsBelief) and not reason:
        reason = f"The graph is too large to be tested: {belief.why}."
    suspected = (*(evidence.suspected if evidence else ()), *risen(belief))
    undecidable = belief.undecidable_edges
    edges = sorted(
        (
            DoubtfulEdge(text, problem.edge_priors[text], probability, text not in undecidable)
            for text, probability in probabilities.items()
        ),
        key=lambda edge: -edge.probability,
    )
    soft = [edge.text for edge in edges if edge.text not in problem.graph.edge_texts]
    drawn = picture(problem, probabilities, suspected, soft[:MAX_EDGES])
    reason = reason.removesuffix(_OTHER_SURFACES)
    return GraphSummary(problem, drawn, evidence, reason, tuple(edges), len(soft))


def _svg(summary: GraphSummary, url: str, current: str) -> Markup:
    positions = summary.problem.positions

    def link(name: str) -> dict[str, str]:
        return _link(f"variable-{positions[name]}", url, {"variable": name}, current)

    return Markup(inline_svg(summary.picture, link))  # which escapes every name


def _link(link_id: str, url: str, query: Mapping[str, str], current: str) -> dict[str, str]:
    """Return the attributes of a link that shows its target in the panel."""
    address = _url(url, query)
    link = {
        "id": link_id,
        "href": f"{address}#panel",
        "hx-get": _url(f"{url}/panel", query),
        "hx-push-url": address,
    }
    return link | ({"aria-current": "true"} if link_id == current else {})


def _url(url: str, query: Mapping[str, str]) -> str:
    parts = {name: text for name, text in query.items() if text}
    # A name may contain lone surrogates, which no URL can: such a link leads nowhere.
    return f"{url}?{urlencode(parts, errors='replace')}" if parts else url


# -- the panel ----------------------------------------------------------------------------------


async def _panel(request: Request, view: StateView, variable: str, arm: str) -> Panel:
    url, problem = page_url(view.name, "graph/panel"), view.problem
    try:
        if variable:
            _, tables = await cached(
                request,
                view,
                ("variable", variable),
                lambda view: variable_view(view.belief, variable),
                is_exact=True,
            )
            link_id = f"variable-{problem.positions[variable]}"
            return Panel(link_id, _url(url, {"variable": variable}), variable=tables)
        if arm:
            formula, index = formula_view(problem, arm), problem.arm_index(arm)
            return Panel(
                f"arm-{index}",
                _url(url, {"arm": formula.arm}),
                formula=formula,
                text=problem.arms[index].in_words(),
            )
    except UnavailableError:
        raise
    except DowiseError as error:
        return Panel(error=page_message(request, error))
    return Panel()
