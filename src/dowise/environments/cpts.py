"""CPTs of a world: validated if they are passed, drawn if they are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dowise._core.types import FloatArray
from dowise.belief.pooling import grid
from dowise.errors import DowiseError, suggestion, type_name
from dowise.graph import CausalGraph
from dowise.problem import Problem
from dowise.problem.prior import is_pooled, is_prior_name

_ROUNDING = 1e-9


def validate_graph(problem: Problem, graph: CausalGraph) -> CausalGraph:
    """Validate the DAG of a world, and return it without marks.

    With the hidden variables projected out it must have the problem's certain edges, any of the
    doubtful ones, soft ones included, and no other.
    """
    if not isinstance(graph, CausalGraph):
        raise DowiseError(
            f"the world's graph must be a CausalGraph, not {type_name(graph)}", code="invalid-type"
        )
    for left, right in graph.bidirected_edges:
        raise DowiseError(
            f"{left} <-> {right}: a world needs the hidden cause as a variable with a CPT; pass a "
            "DAG that has it as graph, or draw a world with make_environment(problem, seed)",
            code="bidirected-edge",
        )
    for name in problem.graph:
        if name not in graph:
            raise DowiseError(
                f"the world's graph lacks {name}{suggestion(name, graph)}: it must have every "
                "variable of the problem",
                code="unknown-variable",
            )
    projected = graph.project(name for name in graph if name not in problem.graph)
    edges, possible = set(projected.edge_texts), set(problem.possible.edge_texts)
    certain = possible - problem.edge_priors.keys()
    extra, missing = sorted(edges - possible), sorted(certain - edges)
    differences = [f"the world has {edge}, the problem has not" for edge in extra]
    differences += [f"the problem has {edge}, the world has not" for edge in missing]
    if differences:
        except_for = ", except for doubtful edges" if problem.edge_priors else ""
        raise DowiseError(
            f"with hidden variables projected out, the world's graph must equal the problem's"
            f"{except_for}, but {'; '.join(differences)}",
            code="wrong-problem",
        )
    return CausalGraph(graph.directed_edges, variables=graph.variables) if graph.marks else graph


def validate_cpts(
    problem: Problem, graph: CausalGraph, cpts: Mapping[str, ArrayLike]
) -> dict[str, FloatArray]:
    """Validate the CPTs of a DAG, and return them as arrays.

    The number of values of a hidden variable is the length of its CPT's last axis.
    """
    if not isinstance(cpts, Mapping):
        raise DowiseError(
            f"cpts must map each variable to its table, not be {cpts!r}", code="invalid-type"
        )
    for name in cpts:
        if name not in graph:
            raise DowiseError(
                f"unknown variable {name!r} in cpts{suggestion(str(name), graph)}",
                code="unknown-variable",
            )
    tables = {name: _as_array(name, cpts) for name in graph}
    sizes = {
        name: len(problem.domains[name]) if name in problem.graph else _hidden_size(name, table)
        for name, table in tables.items()
    }
    for name, table in tables.items():
        axes = (*graph.parents(name), name)
        shape = tuple(sizes[axis] for axis in axes)
        if table.shape != shape:
            raise DowiseError(
                f"the CPT of {name} has the shape {table.shape}, not {shape}: its axes are "
                f"{', '.join(axes)}",
                code="invalid-shape",
            )
        sums = table.sum(axis=-1)
        if not (table >= 0).all() or not (np.abs(sums - 1) <= _ROUNDING).all():
            bad = np.argwhere(~((table >= 0).all(axis=-1) & (np.abs(sums - 1) <= _ROUNDING)))[0]
            indices = ", ".join(f"{axis} at {i}" for axis, i in zip(axes, bad, strict=False))
            position = f" (with {indices})" if indices else ""
            raise DowiseError(
                f"the rows of the CPT of {name} must be probabilities that sum to 1, not "
                f"{table[tuple(bad)].tolist()}{position}",
                code="invalid-number",
            )
    return tables


def random_cpts(
    shapes: Mapping[str, tuple[int, ...]],
    sources: Sequence[np.random.Generator],
    concentration: float = 1.0,
) -> dict[str, FloatArray]:
    """Draw CPTs with independent rows from a symmetric Dirichlet distribution.

    The first axis of each CPT has one world per source. Gamma variates of all CPTs are drawn
    together and each row is divided by its sum, which gives the bits of `source.dirichlet` for each
    CPT in turn in a fraction of the time.
    """
    ends = np.cumsum([prod(shape) for shape in shapes.values()])
    gammas = np.array([source.standard_gamma(concentration, size=ends[-1]) for source in sources])
    tables = {}
    for (name, shape), end in zip(shapes.items(), ends.tolist(), strict=True):
        rows = gammas[:, end - prod(shape) : end].reshape(len(sources), *shape)
        # In sequence, as dirichlet adds them; sum() would add in pairs.
        tables[name] = rows * (1 / rows.cumsum(axis=-1)[..., -1:])
    return tables


def cpts_from_prior(
    problem: Problem,
    graph: CausalGraph,
    sizes: Mapping[str, int],
    prior: Any,
    source: np.random.Generator,
    concentration: float = 1.0,
) -> dict[str, FloatArray]:
    """Draw CPTs with independent rows from the Dirichlet distributions of a prior.

    `prior` is a number, a mapping, "flat" or "pooled", as for `Belief`. If the graph has no hidden
    causes, worlds are as the belief expects them. Rows that the prior does not name, such as those
    of hidden variables, have the `concentration`. Counts of single factors ("Y | X") are ignored,
    because worlds have CPTs.
    """
    pools, counts_by_name = is_pooled(prior), prior
    if pools:
        counts_by_name = problem.prior if isinstance(problem.prior, Mapping) else {}
    elif not isinstance(prior, Mapping):
        counts_by_name = dict.fromkeys(problem.graph, 1.0 if is_prior_name(prior) else prior)
    tables = {}
    for name in graph:
        shape = tuple(sizes[axis] for axis in (*graph.parents(name), name))
        if pools and name in problem.graph and name not in counts_by_name:
            tables[name] = _pooled_rows(shape, source)
            continue
        counts = np.asarray(counts_by_name.get(name, concentration), dtype=np.float64)
        if counts.ndim > 1:
            counts = _over_hidden_parents(problem, graph, name, counts)
        tables[name] = _dirichlet_rows(np.broadcast_to(counts, shape), source)
    return tables


def _pooled_rows(shape: tuple[int, ...], source: np.random.Generator) -> FloatArray:
    """Draw a table from the pooled prior: the hypothesis, the common sticks, then the rows."""
    *axes, values = shape
    if np.prod(axes, dtype=int) == 1 or source.random() < 0.5:
        return _dirichlet_rows(np.ones(shape), source)
    pairs, table, left = grid(values), np.empty(shape), np.ones(axes)
    for stick in range(values - 1):
        g = source.choice(len(pairs.a), p=np.exp(pairs.log_prior[values - 1 - stick]))
        share = source.beta(pairs.a[g], pairs.b[g], axes)
        table[..., stick] = left * share
        left = left * (1 - share)
    table[..., -1] = left
    return table


def _over_hidden_parents(
    problem: Problem, graph: CausalGraph, name: str, counts: FloatArray
) -> FloatArray:
    """Add an axis for each hidden parent to counts with axes for the observed parents."""
    parents = graph.parents(name)
    observed = tuple(parent for parent in parents if parent in problem.graph)
    if observed != problem.graph.parents(name):
        raise DowiseError(
            f"the prior of {name} has rows for its parents in the problem's graph, but in a world "
            f"it has other parents ({', '.join(parents)}): pass a number, or one per value",
            code="invalid-shape",
        )
    whole = np.broadcast_to(counts, tuple(len(problem.domains[x]) for x in (*observed, name)))
    return np.expand_dims(whole, [i for i, parent in enumerate(parents) if parent not in observed])


def _dirichlet_rows(counts: FloatArray, source: np.random.Generator) -> FloatArray:
    """Draw a row for each row of counts, with logarithms, which stay finite for tiny counts."""
    logs = (
        np.log(source.standard_gamma(counts + 1)) + np.log1p(-source.random(counts.shape)) / counts
    )
    rows = np.exp(logs - logs.max(axis=-1, keepdims=True))
    shares: FloatArray = rows / rows.sum(axis=-1, keepdims=True)
    return shares


def _as_array(name: str, cpts: Mapping[str, ArrayLike]) -> FloatArray:
    if name not in cpts:
        raise DowiseError(
            f"cpts has no table for {name}: every variable needs one", code="missing-value"
        )
    try:
        return np.asarray(cpts[name], dtype=np.float64)
    except (TypeError, ValueError):
        raise DowiseError(
            f"the CPT of {name} must be an array of numbers", code="invalid-type"
        ) from None


def _hidden_size(name: str, table: FloatArray) -> int:
    size = table.shape[-1] if table.ndim else 0
    if size < 2:
        raise DowiseError(
            f"the last axis of the CPT of {name} has the length {size}: a hidden variable needs "
            "at least two values; remove it from the graph if it can't vary",
            code="invalid-shape",
        )
    return size
