"""Panels of `dowise reproduce`: the seven of the paper, and some beyond it.

Beyond the paper there are hidden common causes, mild and strong ones, and graphs that are drawn
wrong: there the world has an edge that the policies' problem lacks.

>>> PANELS["task1"].beyond, BEYOND["missing-arrow"].labels[:3]
(False, ('ids, right', 'ids, drawn', 'ids, soft'))
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from dowise.environments import ChordalWorlds, resolve_worlds
from dowise.graph import CausalGraph
from dowise.problem import Problem, load_problem
from dowise.simulation.analysis import Claimed
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
    claimed: tuple[Claimed, ...] | None = None
    """The claims; without them those of the paper."""

    @property
    def beyond(self) -> bool:
        """True if the panel is not in the paper."""
        return self.claimed is not None

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


def _with(name: str, *edges: str, **changes: Any) -> Problem:
    """Return a built-in problem with more edges, and perhaps other arms or domains."""
    builtin = load_problem(name)
    options = {"domains": builtin.domains, "reward_values": builtin.reward_values, **changes}
    return Problem(
        builtin.graph.with_edges(edges),
        builtin.reward,
        builtin.context,
        builtin.non_manipulable,
        **options,
    )


def _hidden(name: str, problem: Problem, title: str) -> list[Panel]:
    """Worlds with mild hidden causes, and with strong ones."""
    claimed = tuple(Claimed("ids", other) for other in HIDDEN_POLICIES if other != "ids")
    return [
        Panel(name, problem, title, HIDDEN_POLICIES, 500, False, claimed),
        Panel(
            f"{name}-strong",
            problem,
            f"{title}, strong causes",
            HIDDEN_POLICIES,
            500,
            True,
            claimed,
        ),
    ]


def _problem(text: str, *non_manipulable: str) -> Problem:
    return Problem(CausalGraph.parse(text), "Y", non_manipulable=non_manipulable)


_TWO_CAUSES = _with("task2", "X1 <-> Y", "X1 <-> Z", domains={"X2": ("low", "mid", "high")})


# -- wrong graphs ----------------------------------------------------------------------------------


def _entries(**problems: Problem) -> tuple[PolicyLike, ...]:
    """Both Bayesian policies with each of these problems in mind, and one without any graph."""
    bayesian = (
        On(problem, policy, f"{policy}, {what}")
        for policy in ("ids", "ts")
        for what, problem in problems.items()
    )
    return *bayesian, "bernoulli-ts"


def _wrong(
    name: str, drawn: Problem, missing: str, title: str, times: float, strong: bool = False
) -> Panel:
    """Return a panel whose worlds have an undrawn edge; soft loses at most `times` drawn."""
    roles: Any = {"context": drawn.context, "non_manipulable": drawn.non_manipulable}
    graph = drawn.graph.with_edges(missing)
    world = Problem(graph, drawn.reward, **roles, arms="all")
    policies = _entries(
        right=Problem(graph, drawn.reward, **roles),
        drawn=drawn,
        soft=Problem(drawn.graph, drawn.reward, **roles, soft=SOFT),
    )
    claimed = [Claimed(f"{policy}, soft", f"{policy}, drawn", times) for policy in ("ids", "ts")]
    claimed += [Claimed(f"{policy}, soft", "bernoulli-ts") for policy in ("ids", "ts")]
    return Panel(name, world, title, policies, strong=strong, claimed=tuple(claimed))


def _right() -> Panel:
    """Return a panel in which the graph is right: the cost of doubting it."""
    policies = _entries(drawn=_with("task2"), soft=_with("task2", soft=SOFT))
    claimed = [Claimed(f"{policy}, soft", f"{policy}, drawn", NO_LOSS) for policy in ("ids", "ts")]
    claimed += [Claimed(f"{policy}, soft", "bernoulli-ts") for policy in ("ids", "ts")]
    world = _with("task2", arms="all")
    title = "Task 2: the graph is right"
    return Panel("right-graph", world, title, policies, claimed=tuple(claimed))


_SEVEN = Problem(
    CausalGraph.parse("C -> A -> B -> M -> Y; C -> D -> M; Z -> B; Z -> Y"), "Y", "C", ("D", "Z")
)


BEYOND = _by_name(
    [
        *_hidden("bow", _problem("X -> Y; X <-> Y"), "X → Y, X ↔ Y"),
        *_hidden("front-door", _problem("X -> Z -> Y; X <-> Y", "Z"), "Front door"),
        *_hidden("instrument", _problem("Z -> X -> Y; X <-> Y"), "Instrument Z → X → Y, X ↔ Y"),
        *_hidden("task2-hidden", _with("task2", "X1 <-> Y"), "Task 2 with X1 ↔ Y"),
        *_hidden("task3-hidden", _with("task3", "X1 <-> Y"), "Task 3 with X1 ↔ Y"),
        *_hidden("two-causes", _TWO_CAUSES, "Task 2 with X1 ↔ Y, X1 ↔ Z and a three-valued X2"),
        _wrong("missing-arrow", _with("task2"), "X1 -> Y", "Task 2, X1 → Y not drawn", HALF),
        _wrong(
            "missing-cause",
            _with("task2"),
            "X2 <-> Y",
            "Task 2, a strong X2 ↔ Y not drawn",
            NO_LOSS,
            strong=True,
        ),
        _wrong("missing-arrow-7", _SEVEN, "A -> Y", "Seven variables, A → Y not drawn", HALF),
        _right(),
    ]
)

ALL_PANELS = PANELS | BEYOND


def in_order(names: Container[str]) -> tuple[str, ...]:
    """Return these panels in the order of a report."""
    return tuple(name for name in ALL_PANELS if name in names)
