"""Worlds from Bayesian networks in BIF files, and the front-door example."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from dowise._core.files import file_extension, file_stem, read_file
from dowise._core.types import FloatArray
from dowise.environments.environment import Environment
from dowise.errors import DowiseError, join_names, suggestion
from dowise.graph import CausalGraph
from dowise.graph.formats import format_of
from dowise.graph.formats.bif import Network, parse_bif, read_bif
from dowise.problem import Problem, builtin_names, load_problem
from dowise.problem.problem import ArmLike
from dowise.problem.problem_file import builtin_path

Names = str | Iterable[str]
WorldParts = tuple[Problem, dict[str, FloatArray], CausalGraph]


def read_world(
    path: str | Path,
    reward: str | None,
    context: Names | None,
    non_manipulable: Names | None,
    reward_values: Mapping[str, float] | None,
    hidden: Names,
    arms: str | Iterable[ArmLike],
    minimise: bool | None,
) -> WorldParts:
    """Return the problem, CPTs and graph for `Environment.from_bif`."""
    file, builtin = _find(path)
    network = read_bif(file)
    hidden = {hidden} if isinstance(hidden, str) else set(hidden)
    observed = network.graph.project(hidden)
    if builtin is not None:
        if reward is None or reward == builtin.reward:
            reward = builtin.reward
            reward_values = builtin.reward_values if reward_values is None else reward_values
            minimise = builtin.minimise if minimise is None else minimise
        used = hidden | {reward}
        context = [v for v in builtin.context if v not in used] if context is None else context
        if non_manipulable is None:
            used |= {context} if isinstance(context, str) else {*context}
            non_manipulable = [v for v in builtin.non_manipulable if v not in used]
    if reward is None:
        raise DowiseError(
            f"{path}: reward is required; the network has {join_names(network.graph)}",
            code="missing-value",
        )
    problem = Problem(
        observed,
        reward,
        context=context or (),
        non_manipulable=non_manipulable or (),
        domains={name: network.domains[name] for name in observed},
        reward_values=reward_values,
        arms=arms,
        name=file_stem(file),
        minimise=False if minimise is None else minimise,
    )
    return problem, network.cpts, network.graph


def network_world(source: str | Path) -> Environment:
    """Create the world of a problem whose graph comes from a .bif file, with the file's numbers.

    Parameters
    ----------
    source : str or Path
        Problem file, or name of a built-in problem. Roles, arms and the order of labels are those
        of the problem.

    Returns
    -------
    Environment

    Raises
    ------
    DowiseError
        If the problem's graph does not come from a .bif file ("missing-value"), or the labels of
        the problem and the network differ ("invalid-domain").

    Examples
    --------
    >>> network_world("asia").problem.name
    'asia'
    """
    problem = load_problem(source)
    file = _graph_file(source)
    network = None if file is None else read_file(file, partial(_network, file_extension(file)))
    if network is None:
        raise DowiseError(
            f"{source} has no CPTs: its graph must come from a .bif file (graph_file), as for "
            f"{', '.join(_networks())}",
            code="missing-value",
        )
    return Environment(problem, cpts_for_problem(problem, network), network.graph)


def _network(ending: str, text: str) -> Network | None:
    return parse_bif(text) if format_of(ending, text) == "BIF" else None


def _graph_file(source: str | Path) -> Path | None:
    path = Path(source)
    if str(source) in builtin_names() and not path.is_file():
        path = builtin_path(str(source))
    named = read_file(path, tomllib.loads).get("graph_file")
    return None if named is None else path.parent / str(named)


def cpts_for_problem(problem: Problem, network: Network) -> dict[str, FloatArray]:
    """Return the CPTs of a network, the labels of every axis in the problem's order."""
    indices: dict[str, list[int]] = {}
    for name, labels in network.domains.items():
        order = problem.domains.get(name, labels)
        if sorted(order) != sorted(labels):
            raise DowiseError(
                f"{name} has the labels {join_names(order)} in the problem but "
                f"{join_names(labels)} in the network: use the labels of the network",
                code="invalid-domain",
            )
        position = {label: i for i, label in enumerate(labels)}
        indices[name] = [position[label] for label in order]
    return {
        name: table[np.ix_(*(indices[axis] for axis in (*network.graph.parents(name), name)))]
        for name, table in network.cpts.items()
    }


def _networks() -> list[str]:
    """Return the names of built-in problems that are Bayesian networks."""
    return [name for name in builtin_names() if _network_of(name).exists()]


def _find(path: str | Path) -> tuple[Path, Problem | None]:
    """Return the file of a network, and the built-in problem with its roles if there is one."""
    networks = _networks()
    if not isinstance(path, str) or os.path.lexists(path) or file_extension(path) == ".bif":
        return Path(path) if isinstance(path, str) else path, None
    if path in networks:
        return _network_of(path), load_problem(path)
    if path in builtin_names():
        raise DowiseError(
            f"the built-in problem {path!r} has no CPTs; make_environment({path!r}, seed) draws "
            "some",
            code="missing-value",
        )
    raise DowiseError(
        f"unknown network {path!r}{suggestion(path, networks)} (expected the path of a .bif file "
        f"or one of {', '.join(networks)})",
        code="unknown-problem",
    )


def _network_of(name: str) -> Path:
    return builtin_path(name).with_name("networks") / f"{name}.bif"


_IS_ZERO, _IS_ONE = [1.0, 0.0], [0.0, 1.0]


def front_door_world() -> Environment:
    """Create the front-door world: X -> Z -> Y; X <-> Y, where Z can't be set.

    Returns
    -------
    Environment

    Examples
    --------
    >>> front_door_world().means().round(2).tolist()
    [0.5, 0.44, 0.56]
    """
    problem = Problem(
        CausalGraph.parse("X -> Z -> Y; X <-> Y"), "Y", non_manipulable="Z", name="front-door"
    )
    graph = CausalGraph.parse("U_X -> X; U_XY -> X; U_XY -> Y; U_Z -> Z; U_Y -> Y; X -> Z -> Y")
    exclusive_or = [[_IS_ZERO, _IS_ONE], [_IS_ONE, _IS_ZERO]]
    cpts: dict[str, ArrayLike] = {
        "U_X": [0.5, 0.5],
        "U_Y": [0.6, 0.4],
        "U_Z": [0.6, 0.4],
        "U_XY": [0.5, 0.5],
        "X": exclusive_or,  # of U_X and U_XY
        "Z": exclusive_or,  # of U_Z and X
        "Y": [[[_IS_ZERO, _IS_ONE]] * 2, exclusive_or],  # of U_XY, U_Y and Z: Z unless both U are 1
    }
    return Environment(problem, cpts, graph)
