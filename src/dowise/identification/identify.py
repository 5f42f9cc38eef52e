"""General identification: the effect of an intervention from a set of experiments.

gID (Lee, Correa & Bareinboim 2019), with Tian's (2002) identification of a factor from the
distribution of one experiment. The graph may have bidirected edges.

A factor Q[S] = P_{V∖S}(S) is what a set S of variables does when all others are set. P_x(y) is a
sum of a product of the factors of the c-components of G∖X, each of which is an effect of its own;
and from an experiment on Z the factors of the c-components of G∖Z are products of conditionals of
P_Z.

>>> from dowise.identification.formula import as_text
>>> front_door = CausalGraph.parse("X -> Z -> Y; X <-> Y")
>>> print(as_text(identify(front_door, "Y", {"X"}, [frozenset()])))
Σ_{z} P(z | x) Σ_{x'} P(x') P(y | x', z)
"""

from __future__ import annotations

from collections.abc import Iterable

from dowise.graph import CausalGraph
from dowise.identification.formula import Expression, Term, product, quotient, total

__all__ = ["identify"]

Names = frozenset[str]


def identify(
    graph: CausalGraph, reward: str, settings: Iterable[str], experiments: Iterable[Names]
) -> Expression | None:
    """P_settings(reward) from the experiments, or None where they do not tell.

    A variable that stays free in the formula, other than the reward and the settings, may have any
    value. Experiments are tried in the order given; the first that serves a factor is used.
    """
    return _effect(graph, frozenset({reward}), frozenset(settings), tuple(experiments))


def _effect(
    graph: CausalGraph, target: Names, fixed: Names, experiments: tuple[Names, ...]
) -> Expression | None:
    """P_fixed(target). What is no cause of the target, set or not, makes no difference."""
    graph = graph.subgraph(graph.ancestors(target))
    everything = frozenset(graph.variables)
    fixed &= everything
    for experiment in experiments:
        if experiment & everything == fixed:
            return Term(experiment, target)
    idle = everything - graph.cut(fixed).ancestors(target) - fixed
    if idle:  # no causes of the target once `fixed` is set: may be set as well, to anything
        return _effect(graph, target, fixed | idle, experiments)
    components = _components(graph.subgraph(everything - fixed))
    if len(components) == 1:
        return _from_first(graph, components[0], target, experiments)
    factors = []
    for component in components:
        factor = _effect(graph, component, everything - component, experiments)
        if factor is None:
            return None
        factors.append(factor)
    return total(everything - fixed - target, product(factors))


def _from_first(
    graph: CausalGraph, component: Names, target: Names, experiments: tuple[Names, ...]
) -> Expression | None:
    """Σ Q[component] from the first experiment that tells it."""
    everything = frozenset(graph.variables)
    for experiment in experiments:
        if not experiment & component:
            left = graph.subgraph(everything - experiment)
            found = _from_experiment(left, component, experiment)
            if found is not None:
                return total(component - target, found)
    return None


def _from_experiment(graph: CausalGraph, component: Names, experiment: Names) -> Expression | None:
    """Q[component] from P_experiment, in the graph of what the experiment leaves to vary."""
    around = graph.c_component(min(component))
    order = graph.topological_order()
    conditionals = []
    for i, name in enumerate(order):
        if name in around:
            before = graph.subgraph(order[: i + 1])
            together = before.c_component(name)
            given = together.union(*(before.parents(v) for v in together)) - {name}
            conditionals.append(Term(experiment, frozenset({name}), given))
    return _narrowed(graph, component, around, product(conditionals))


def _narrowed(
    graph: CausalGraph, target: Names, around: Names, factor: Expression
) -> Expression | None:
    """Tian's Identify: Q[target] from Q[around], both one c-component of their own subgraphs."""
    inner = graph.subgraph(around)
    ancestors = inner.ancestors(target)
    if ancestors == target:
        return total(around - target, factor)
    if ancestors == around:
        return None
    factor = total(around - ancestors, factor)
    smaller = inner.subgraph(ancestors)
    component = smaller.c_component(min(target))
    order = smaller.topological_order()
    parts = []
    for i, name in enumerate(order):
        if name in component:
            top, bottom = (total(order[k:], factor) for k in (i + 1, i))
            parts.append(quotient(top, bottom) if i else top)
    return _narrowed(graph, target, component, product(parts))


def _components(graph: CausalGraph) -> list[Names]:
    """The c-components, in the order of their first names."""
    found: list[Names] = []
    for name in graph.variables:
        if not any(name in component for component in found):
            found.append(graph.c_component(name))
    return found
