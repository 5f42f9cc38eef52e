"""The numbers of a world: what it is given is checked, what it is not given is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dowise.errors import DowiseError, suggestion, type_name
from dowise.graph import CausalGraph
from dowise.problem import Problem

__all__ = ["cpts_from_prior", "random_cpts", "validate_cpts", "validate_graph"]

_ROUNDING = 1e-9


def validate_graph(problem: Problem, graph: CausalGraph) -> CausalGraph:
    """This DAG, which must be one that the problem allows once hidden variables are projected out.

    Then it has the problem's certain edges, any of the doubtful ones, soft ones included, and no
    other. In a world they are there or not, so it has no marks.
    """
    if not isinstance(graph, CausalGraph):
        raise DowiseError(f"the world's graph must be a CausalGraph, not {type_name(graph)}")
    for one, other in graph.bidirected_edges:
        raise DowiseError(
            f"{one} <-> {other} share a hidden cause, and a world needs it as a variable: give "
            "graph=, a DAG in which it is one, with a CPT; make_environment(problem, seed) draws "
            "such a world"
        )
    for name in problem.graph:
        if name not in graph:
            raise DowiseError(
                f"the world's graph lacks {name}{suggestion(name, graph)}: it must hold every "
                "variable of the problem, and the hidden ones besides"
            )
    projected = graph.project(name for name in graph if name not in problem.graph)
    own, possible = set(projected.edge_texts), set(problem.possible.edge_texts)
    certain = possible - problem.edge_priors.keys()
    strange, lacking = sorted(own - possible), sorted(certain - own)
    differences = [f"the world has {edge}, the problem has not" for edge in strange]
    differences += [f"the problem has {edge}, the world has not" for edge in lacking]
    if differences:
        besides = ", but for doubtful edges" if problem.edge_priors else ""
        raise DowiseError(
            f"with its hidden variables projected out the world's graph must be the problem's"
            f"{besides}, but {'; '.join(differences)}"
        )
    return CausalGraph(graph.directed_edges, variables=graph.variables) if graph.marks else graph


def validate_cpts(
    problem: Problem, graph: CausalGraph, cpts: Mapping[str, ArrayLike]
) -> dict[str, NDArray[np.float64]]:
    """The CPTs of a DAG as arrays, each of the right shape, its rows probabilities.

    The number of values of a hidden variable is the length of its CPT's last axis.
    """
    if not isinstance(cpts, Mapping):
        raise DowiseError(f"cpts must map each variable to its table, not {type(cpts).__name__}")
    for name in cpts:
        if name not in graph:
            raise DowiseError(f"unknown variable {name!r} in cpts{suggestion(str(name), graph)}")
    tables = {name: _array(name, cpts) for name in graph}
    sizes = {
        name: len(problem.domains[name]) if name in problem.graph else _own_size(name, table)
        for name, table in tables.items()
    }
    for name, table in tables.items():
        axes = (*graph.parents(name), name)
        shape = tuple(sizes[axis] for axis in axes)
        if table.shape != shape:
            raise DowiseError(
                f"the CPT of {name} has the shape {table.shape}, not {shape}: its axes are "
                f"{', '.join(axes)}"
            )
        sums = table.sum(axis=-1)
        if not (table >= 0).all() or not (np.abs(sums - 1) <= _ROUNDING).all():
            bad = np.argwhere(~((table >= 0).all(axis=-1) & (np.abs(sums - 1) <= _ROUNDING)))[0]
            given = ", ".join(f"{axis} at {i}" for axis, i in zip(axes, bad, strict=False))
            where = f", but with {given} they are" if given else ", but they are"
            raise DowiseError(
                f"the rows of the CPT of {name} must be probabilities that sum to 1{where} "
                f"{table[tuple(bad)].tolist()}"
            )
    return tables


def random_cpts(
    shapes: Mapping[str, tuple[int, ...]],
    sources: Sequence[np.random.Generator],
    concentration: float = 1.0,
) -> dict[str, NDArray[np.float64]]:
    """CPTs whose rows are independent draws from a symmetric Dirichlet distribution.

    Of one world for each source, the first axis. Gammas of all CPTs at once, each row divided by
    its sum: bit by bit what `source.dirichlet` gives CPT by CPT, in a fraction of the time.
    """
    ends = np.cumsum([prod(shape) for shape in shapes.values()])
    gammas = np.array([source.standard_gamma(concentration, size=ends[-1]) for source in sources])
    tables = {}
    for (name, shape), end in zip(shapes.items(), ends.tolist(), strict=True):
        rows = gammas[:, end - prod(shape) : end].reshape(len(sources), *shape)
        # One after the other, as dirichlet adds them; sum() would add in pairs.
        tables[name] = rows * (1 / rows.cumsum(axis=-1)[..., -1:])
    return tables


def cpts_from_prior(
    problem: Problem,
    graph: CausalGraph,
    sizes: Mapping[str, int],
    prior: Any,
    source: np.random.Generator,
    concentration: float = 1.0,
) -> dict[str, NDArray[np.float64]]:
    """CPTs whose rows are independent draws from the Dirichlet distributions that a prior gives.

    `prior` is one that `Belief` takes, a number or a mapping. Where the graph has no hidden causes
    worlds are as the belief expects them. Other rows, those of hidden variables among them, have
    the `concentration`; what is said of single factors ("Y | X") is left out: worlds have CPTs.
    """
    given = prior if isinstance(prior, Mapping) else dict.fromkeys(problem.graph, prior)
    tables = {}
    for name in graph:
        shape = tuple(sizes[axis] for axis in (*graph.parents(name), name))
        counts = np.asarray(given.get(name, concentration), dtype=np.float64)
        if counts.ndim > 1:
            counts = _over_hidden_parents(problem, graph, name, counts)
        tables[name] = _dirichlet_rows(np.broadcast_to(counts, shape), source)
    return tables


def _over_hidden_parents(
    problem: Problem, graph: CausalGraph, name: str, counts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Counts with axes for the parents that the problem knows, with one for each hidden parent."""
    parents = graph.parents(name)
    seen = tuple(parent for parent in parents if parent in problem.graph)
    if seen != problem.graph.parents(name):
        raise DowiseError(
            f"the prior of {name} has rows for its parents in the problem's graph, but in a world "
            f"its parents are others ({', '.join(parents)}): give a number, or one for each value"
        )
    whole = np.broadcast_to(counts, (*(len(problem.domains[axis]) for axis in (*seen, name)),))
    return np.expand_dims(whole, [i for i, parent in enumerate(parents) if parent not in seen])


def _dirichlet_rows(
    counts: NDArray[np.float64], source: np.random.Generator
) -> NDArray[np.float64]:
    """A draw for each row of counts: by logarithms, which even the smallest count leaves finite."""
    logs = (
        np.log(source.standard_gamma(counts + 1)) + np.log1p(-source.random(counts.shape)) / counts
    )
    rows = np.exp(logs - logs.max(axis=-1, keepdims=True))
    shares: NDArray[np.float64] = rows / rows.sum(axis=-1, keepdims=True)
    return shares


def _array(name: str, cpts: Mapping[str, ArrayLike]) -> NDArray[np.float64]:
    if name not in cpts:
        raise DowiseError(f"cpts has no table for {name}: give one for each variable")
    try:
        return np.asarray(cpts[name], dtype=np.float64)
    except (TypeError, ValueError):
        raise DowiseError(f"the CPT of {name} must be an array of numbers") from None


def _own_size(name: str, table: NDArray[np.float64]) -> int:
    size = table.shape[-1] if table.ndim else 0
    if size < 2:
        raise DowiseError(
            f"the last axis of the CPT of {name} has the length {size}: a hidden variable needs "
            "at least two values; take it out of the graph if it can't vary"
        )
    return size
