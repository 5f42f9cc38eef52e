"""Worlds from Bayesian networks: a BIF file has the graph, the labels and the CPTs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dowise.errors import DowiseError, suggestion
from dowise.graph import CausalGraph
from dowise.graph.formats.bif import read_bif
from dowise.problem import Problem, builtin_names, load_problem
from dowise.problem.files import builtin_path
from dowise.problem.problem import ArmLike

__all__ = ["read_world"]

Names = str | Iterable[str]
World = tuple[Problem, dict[str, NDArray[np.float64]], CausalGraph]


def read_world(
    path: str | Path,
    reward: str | None,
    context: Names | None,
    non_manipulable: Names | None,
    reward_values: Mapping[str, float] | None,
    hidden: Names,
    arms: str | Iterable[ArmLike],
) -> World:
    """The problem, CPTs and graph that `Environment.from_bif` makes a world of."""
    file, own = _find(path)
    network = read_bif(file)
    unseen = {hidden} if isinstance(hidden, str) else set(hidden)
    observed = network.graph.project(unseen)
    if own is not None:
        if reward is None or reward == own.reward:
            reward = own.reward
            reward_values = own.reward_values if reward_values is None else reward_values
        taken = unseen | {reward}
        context = [v for v in own.context if v not in taken] if context is None else context
        if non_manipulable is None:
            taken |= {context} if isinstance(context, str) else {*context}
            non_manipulable = [v for v in own.non_manipulable if v not in taken]
    if reward is None:
        raise DowiseError(
            f"{path}: say which variable to maximise, reward=…; the network has "
            f"{', '.join(network.graph)}"
        )
    problem = Problem(
        observed, reward, context or (), non_manipulable or (),
        {name: network.domains[name] for name in observed}, reward_values, arms, name=file.stem,
    )  # fmt: skip
    return problem, network.cpts, network.graph


def _find(path: str | Path) -> tuple[Path, Problem | None]:
    """The network's file, and the built-in problem with its roles where there is one."""
    networks = [name for name in builtin_names() if _network_of(name).exists()]
    if not isinstance(path, str) or os.path.lexists(path) or path.lower().endswith(".bif"):
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
