"""The page The graph: the causal graph, the evidence against it, and the tables of its variables.

The picture is SVG inside the page. Variables in it and arms beside it are links, which show details
in a panel that htmx loads; without JavaScript they load the whole page.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool

from dowise.belief import Belief, Evidence, likely_soft_edges
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
from dowise_web.auth import Principal, Reader
from dowise_web.pages.rendering import page_message, page_url, render, render_in_thread

router = APIRouter(prefix="/experiments/{name:path}/graph")
Selection = Annotated[str, Query(max_length=10_000)]

MAX_ARMS = 60  # listed; others can be typed
MAX_EDGES = 12  # uncertain edges that are listed before the others are folded away
_OTHER_SURFACES = " (evidence=True, --evidence)"  # how to request evidence elsewhere


@dataclass(frozen=True)
class UncertainEdge:
    """An edge that may be absent, with its probability before and after the records."""

    text: str
    prior: float
    probability: float
    is_testable: bool
    """False if no record can tell."""


@dataclass(frozen=True)
class GraphSummary:
    """The evidence against a graph, its uncertain edges, and what its picture shows of them."""

    problem: Problem
    evidence: Evidence | None
    no_evidence_reason: str
    edges: tuple[UncertainEdge, ...]
    """The most probable first."""
    suspected: tuple[str, ...]
    """Edges that the graph lacks and that the data suggest."""
    soft: tuple[str, ...]
    """Uncertain edges that the graph lacks."""


@dataclass(frozen=True)
class GraphDrawing:
    """Markup of a picture, with its legend, and the links of the arms beside it."""

    svg: Markup
    legend: tuple[tuple[Markup, str], ...]
    """Samples and labels."""
    arms: tuple[tuple[str, dict[str, str]], ...]
    """Texts and attributes of their links."""


@dataclass(frozen=True)
class DetailsPanel:
    """Details of one variable or one arm; empty if none is selected."""

    link_id: str = ""
    url: str = ""
    variable: VariableView | None = None
    formula: FormulaView | None = None
    text: str = ""
    error: str = ""

    @property
    def status(self) -> int:
        """HTTP status of the response."""
        return 422 if self.error else 200


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
    query = {"variable": variable, "arm": arm, "evidence": evidence}
    return await run_in_threadpool(_render, request, principal, view, summary, panel, query)


def _render(
    request: Request,
    principal: Principal,
    view: StateView,
    summary: GraphSummary,
    panel: DetailsPanel,
    query: dict[str, str],
) -> Response:
    url, problem = page_url(view.name, "graph"), summary.problem
    soft = summary.soft[:MAX_EDGES]
    return render(
        request,
        "graph.html",
        principal,
        panel.status,
        view=view,
        active_page="graph",
        url=url,
        current_url=_url(url, query),
        evidence_url=_url(url, query | {"evidence": "1"}),
        summary=summary,
        drawing=_draw(problem, summary.edges, summary.suspected, soft, url, panel.link_id),
        panel=panel,
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
    return await render_in_thread(
        request, "graph_panel.html", principal, panel.status, panel=panel, roles=LABELS
    )


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
    problem, untestable = belief.problem, belief.undecidable_edges
    if isinstance(belief, IndependentArmsBelief) and not reason:
        reason = f"The graph is too large to be tested: {belief.why}."
    edges = [
        UncertainEdge(text, problem.edge_priors[text], probability, text not in untestable)
        for text, probability in belief.edges().items()
    ]
    edges.sort(key=lambda edge: -edge.probability)
    return GraphSummary(
        problem,
        evidence,
        reason.removesuffix(_OTHER_SURFACES),
        tuple(edges),
        suspected=(*(evidence.suspected if evidence else ()), *likely_soft_edges(belief)),
        soft=tuple(edge.text for edge in edges if edge.text not in problem.graph.edge_texts),
    )


# -- the picture: laid out and drawn again only if the problem or an edge has changed ------------


@lru_cache(maxsize=64)
def _draw(
    problem: Problem,
    edges: tuple[UncertainEdge, ...],
    suspected: tuple[str, ...],
    soft: tuple[str, ...],
    url: str,
    current: str,
) -> GraphDrawing:
    """Draw the picture with links, of which the one with the id `current` is marked."""
    shapes = _lay_out(problem, edges, suspected, soft)

    def link(link_id: str, query: Mapping[str, str]) -> dict[str, str]:
        address = _url(url, query)
        attributes = {
            "id": link_id,
            "href": f"{address}#panel",
            "hx-get": _url(f"{url}/panel", query),
            "hx-push-url": address,
        }
        return attributes | ({"aria-current": "true"} if link_id == current else {})

    def link_of(name: str) -> dict[str, str]:
        return link(f"variable-{problem.positions[name]}", {"variable": name})

    return GraphDrawing(
        Markup(inline_svg(shapes, link_of)),  # which escapes every name
        tuple((Markup(entry.sample), entry.label) for entry in legend(shapes)),
        tuple(
            (str(arm), link(f"arm-{i}", {"arm": str(arm)}))
            for i, arm in enumerate(problem.arms[:MAX_ARMS])
        ),
    )


@lru_cache(maxsize=16)
def _lay_out(
    problem: Problem,
    edges: tuple[UncertainEdge, ...],
    suspected: tuple[str, ...],
    soft: tuple[str, ...],
) -> GraphPicture:
    return picture(problem, {edge.text: edge.probability for edge in edges}, suspected, soft)


def _url(url: str, query: Mapping[str, str]) -> str:
    parts = {name: text for name, text in query.items() if text}
    # A name may contain lone surrogates, which no URL can: such a link leads nowhere.
    return f"{url}?{urlencode(parts, errors='replace')}" if parts else url


# -- the panel ----------------------------------------------------------------------------------


async def _panel(request: Request, view: StateView, variable: str, arm: str) -> DetailsPanel:
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
            return DetailsPanel(link_id, _url(url, {"variable": variable}), variable=tables)
        if arm:
            formula, index = formula_view(problem, arm), problem.arm_index(arm)
            return DetailsPanel(
                f"arm-{index}",
                _url(url, {"arm": formula.arm}),
                formula=formula,
                text=problem.arms[index].in_words(),
            )
    except UnavailableError:
        raise
    except DowiseError as error:
        return DetailsPanel(error=page_message(request, error))
    return DetailsPanel()
