"""Worlds from Bayesian networks: a BIF file has the graph, the labels and the CPTs."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dowise._core.files import file_extension, file_stem, read_file
from dowise.environments.environment import Environment
from dowise.errors import DowiseError, join_names, suggestion
from dowise.graph import CausalGraph
from dowise.graph.formats import format_of
from dowise.graph.formats.bif import Network, parse_bif, read_bif
from dowise.problem import Problem, builtin_names, load_problem
from dowise.problem.problem import ArmLike
from dowise.problem.problem_file import builtin_path

OneOrMore = str | Iterable[str]
WorldParts = tuple[Problem, dict[str, NDArray[np.float64]], CausalGraph]


def read_world(
    path: str | Path,
    reward: str | None,
    context: OneOrMore | None,
    non_manipulable: OneOrMore | None,
    reward_values: Mapping[str, float] | None,
    hidden: OneOrMore,
    arms: str | Iterable[ArmLike],
    minimise: bool | None,
) -> WorldParts:
    """The problem, CPTs and graph that `Environment.from_bif` makes a world of."""
    file, own = _find(path)
    network = read_bif(file)
    unseen = {hidden} if isinstance(hidden, str) else set(hidden)
    observed = network.graph.project(unseen)
    if own is not None:
        if reward is None or reward == own.reward:
            reward = own.reward
            reward_values = own.reward_values if reward_values is None else reward_values
            minimise = own.minimise if minimise is None else minimise
        taken = unseen | {reward}
        context = [v for v in own.context if v not in taken] if context is None else context
        if non_manipulable is None:
            taken |= {context} if isinstance(context, str) else {*context}
            non_manipulable = [v for v in own.non_manipulable if v not in taken]
    if reward is None:
        raise DowiseError(
            f"{path}: say which variable to maximise, reward=…, or to minimise, minimise=True; "
            f"the network has {join_names(network.graph)}"
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
    """The world of a problem whose graph comes from a .bif file, with that file's numbers.

    `source` is a problem file or the name of a built-in problem, and the problem is the one that
    `load_problem` gives: its roles, its arms, and its order of labels, which may be another than
    the network's.
    """
    problem = load_problem(source)
    file = _graph_file(source)
    network = None if file is None else read_file(file, partial(_network, file_extension(file)))
    if network is None:
        raise DowiseError(
            f"{source} has no numbers of its own: its graph would have to come from a .bif file "
            f"(graph_file), as those of {', '.join(_networks())} do"
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


def cpts_for_problem(problem: Problem, network: Network) -> dict[str, NDArray[np.float64]]:
    """The network's CPTs with the labels of every axis in the problem's order."""
    places: dict[str, list[int]] = {}
    for name, labels in network.domains.items():
        wanted = problem.domains.get(name, labels)
        if sorted(wanted) != sorted(labels):
            raise DowiseError(
                f"{name} has the labels {join_names(wanted)} in the problem and "
                f"{join_names(labels)} in the network: without the network's own its numbers mean "
                "nothing"
            )
        position = {label: place for place, label in enumerate(labels)}
        places[name] = [position[label] for label in wanted]
    return {
        name: table[np.ix_(*(places[axis] for axis in (*network.graph.parents(name), name)))]
        for name, table in network.cpts.items()
    }


def _networks() -> list[str]:
    """The built-in problems that are Bayesian networks."""
    return [name for name in builtin_names() if _network_of(name).exists()]


def _find(path: str | Path) -> tuple[Path, Problem | None]:
    """The network's file, and the built-in problem with its roles where there is one."""
    networks = _networks()
    if not isinstance(path, str) or os.path.lexists(path) or file_extension(path) == ".bif":
        return Path(path) if isinstance(path, str) else path, None
    if path in networks:
        return _network_of(path), load_problem(path)
    if path in builtin_names():
        raise DowiseError(
            f"the built-in problem {path!r} has no CPTs of its own: "
            f"make_environment({path!r}, seed) draws some"
        )
    raise DowiseError(
        f"no network {path!r}{suggestion(path, networks)}: give the path of a .bif file or one of "
        f"{', '.join(networks)}"
    )


def _network_of(name: str) -> Path:
    return builtin_path(name).with_name("networks") / f"{name}.bif"


_IS_ZERO, _IS_ONE = [1.0, 0.0], [0.0, 1.0]


def front_door_world() -> Environment:
    """X -> Z -> Y; X <-> Y with N = {Z}; the means are .50 for do(), .44 and .56 for do(X=x)."""
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
