"""Panels of `dowise reproduce`: the seven of the paper, and some beyond it.

The panels beyond the paper have hidden common causes, mild or strong, or wrong graphs, in which the
policies' problem lacks an edge of the world.

>>> PANELS["task1"].beyond, BEYOND["missing-arrow"].labels[:3]
(False, ('ids, right', 'ids, drawn', 'ids, soft'))
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

from dowise.environments import ChordalWorlds, resolve_worlds
from dowise.graph import CausalGraph
from dowise.problem import Problem, load_problem
from dowise.simulation.analysis import Claim, paper_claims
from dowise.simulation.spec import On, PolicyLike, policy_specs

POLICIES = ("ids", "ts", "z2-ts", "z2-kl-ucb", "bernoulli-ts", "ucb")
"""Policies of the paper's panels."""
SOFT = 0.1
HALF, NO_LOSS = 0.5, 1.25
"""Claimed limits of the loss with a soft graph, relative to the graph as drawn."""

HIDDEN_POLICIES = ("ids", "ts", "bernoulli-ts", "kl-ucb", "z2-ts", "z2-kl-ucb")


@dataclass(frozen=True)
class Panel:
    """Plot of policies in the worlds of a problem, and the claims about them."""

    name: str
    problem: str | Problem
    title: str
    policies: tuple[PolicyLike, ...] = POLICIES
    horizon: int = 1000
    strong: bool = False
    claims_beyond: tuple[Claim, ...] | None = None
    """Claims of a panel beyond the paper."""

    @property
    def beyond(self) -> bool:
        """True if the panel is not in the paper."""
        return self.claims_beyond is not None

    @property
    def claims(self) -> Sequence[Claim]:
        """Claims about the policies; those of the paper for its own panels."""
        return paper_claims(self.labels) if self.claims_beyond is None else self.claims_beyond

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the policies."""
        return tuple(policy.label for policy in policy_specs(self.policies))

    @property
    def random(self) -> ChordalWorlds | None:
        """Source of the graphs, if every trial has its own graph."""
        worlds = resolve_worlds(self.problem)
        return worlds if isinstance(worlds, ChordalWorlds) else None


def _by_name(panels: list[Panel]) -> dict[str, Panel]:
    return {panel.name: panel for panel in panels}


PANELS = _by_name(
    [
        Panel("task1", "task1", "Task 1"),
        Panel("task2", "task2", "Task 2"),
        Panel("task3", "task3", "Task 3"),
        Panel("random-10-0.1", "chordal-10-0.1", "Random chordal graphs, n = 10, ρ = 0.1"),
        Panel("random-15-0.1", "chordal-15-0.1", "Random chordal graphs, n = 15, ρ = 0.1"),
        Panel("random-15-0.2", "chordal-15-0.2", "Random chordal graphs, n = 15, ρ = 0.2"),
        Panel("healthcare", "healthcare", "Healthcare"),
    ]
)


# -- hidden causes ---------------------------------------------------------------------------------


def _with_edges(name: str, *edges: str, **changes: Any) -> Problem:
    """Return a built-in problem with more edges and other options."""
    builtin = load_problem(name)
    options = {"domains": builtin.domains, "reward_values": builtin.reward_values, **changes}
    return Problem(
        builtin.graph.with_edges(edges),
        builtin.reward,
        builtin.context,
        builtin.non_manipulable,
        **options,
    )


def _hidden_cause_panels(name: str, problem: Problem, title: str) -> list[Panel]:
    """Return panels with mild hidden causes and with strong ones."""
    claims = tuple(Claim("ids", policy) for policy in HIDDEN_POLICIES if policy != "ids")
    return [
        Panel(name, problem, title, HIDDEN_POLICIES, 500, False, claims),
        Panel(
            f"{name}-strong",
            problem,
            f"{title}, strong causes",
            HIDDEN_POLICIES,
            500,
            True,
            claims,
        ),
    ]


def _problem(text: str, *non_manipulable: str) -> Problem:
    return Problem(CausalGraph.parse(text), "Y", non_manipulable=non_manipulable)


_TWO_CAUSES = _with_edges("task2", "X1 <-> Y", "X1 <-> Z", domains={"X2": ("low", "mid", "high")})


# -- wrong graphs ----------------------------------------------------------------------------------


def _entries(**problems: Problem) -> tuple[PolicyLike, ...]:
    """Return both Bayesian policies with each of these problems, and one without a graph."""
    bayesian = (
        On(problem, policy, f"{policy}, {label}")
        for policy in ("ids", "ts")
        for label, problem in problems.items()
    )
    return *bayesian, "bernoulli-ts"


def _soft_claims(times: float) -> tuple[Claim, ...]:
    """Soft loses at most `times` as much as drawn, and less than a policy without a graph."""
    return (
        *(Claim(f"{policy}, soft", f"{policy}, drawn", times) for policy in ("ids", "ts")),
        *(Claim(f"{policy}, soft", "bernoulli-ts") for policy in ("ids", "ts")),
    )


def _wrong_graph_panel(
    name: str, drawn: Problem, missing: str, title: str, times: float, strong: bool = False
) -> Panel:
    """Return a panel whose worlds have an edge that `drawn` lacks."""
    roles: Any = {"context": drawn.context, "non_manipulable": drawn.non_manipulable}
    graph = drawn.graph.with_edges(missing)
    world = Problem(graph, drawn.reward, **roles, arms="all")
    policies = _entries(
        right=Problem(graph, drawn.reward, **roles),
        drawn=drawn,
        soft=Problem(drawn.graph, drawn.reward, **roles, soft=SOFT),
    )
    return Panel(name, world, title, policies, strong=strong, claims_beyond=_soft_claims(times))


def _right_graph_panel() -> Panel:
    """Return a panel whose graph is right, to measure the cost of doubting it."""
    policies = _entries(drawn=_with_edges("task2"), soft=_with_edges("task2", soft=SOFT))
    world, title = _with_edges("task2", arms="all"), "Task 2: the graph is right"
    return Panel("right-graph", world, title, policies, claims_beyond=_soft_claims(NO_LOSS))


_SEVEN = Problem(
    CausalGraph.parse("C -> A -> B -> M -> Y; C -> D -> M; Z -> B; Z -> Y"), "Y", "C", ("D", "Z")
)


BEYOND = _by_name(
    [
        *_hidden_cause_panels("bow", _problem("X -> Y; X <-> Y"), "X → Y, X ↔ Y"),
        *_hidden_cause_panels("front-door", _problem("X -> Z -> Y; X <-> Y", "Z"), "Front door"),
        *_hidden_cause_panels(
            "instrument", _problem("Z -> X -> Y; X <-> Y"), "Instrument Z → X → Y, X ↔ Y"
        ),
        *_hidden_cause_panels(
            "task2-hidden", _with_edges("task2", "X1 <-> Y"), "Task 2 with X1 ↔ Y"
        ),
        *_hidden_cause_panels(
            "task3-hidden", _with_edges("task3", "X1 <-> Y"), "Task 3 with X1 ↔ Y"
        ),
        *_hidden_cause_panels(
            "two-causes", _TWO_CAUSES, "Task 2 with X1 ↔ Y, X1 ↔ Z and a three-valued X2"
        ),
        _wrong_graph_panel(
            "missing-arrow", _with_edges("task2"), "X1 -> Y", "Task 2, X1 → Y not drawn", HALF
        ),
        _wrong_graph_panel(
            "missing-cause",
            _with_edges("task2"),
            "X2 <-> Y",
            "Task 2, a strong X2 ↔ Y not drawn",
            NO_LOSS,
            strong=True,
        ),
        _wrong_graph_panel(
            "missing-arrow-7", _SEVEN, "A -> Y", "Seven variables, A → Y not drawn", HALF
        ),
        _right_graph_panel(),
    ]
)

ALL_PANELS = PANELS | BEYOND


def in_order(names: Container[str]) -> tuple[str, ...]:
    """Return these panels in the order of a report."""
    return tuple(name for name in ALL_PANELS if name in names)
