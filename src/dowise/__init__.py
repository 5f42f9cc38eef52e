"""Decide which intervention to try next when the causal graph is known and the numbers are not.

Importing dowise is cheap: each name below is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dowise.belief import Belief as Belief
    from dowise.client import Client as Client
    from dowise.environments import Environment as Environment
    from dowise.environments import make_environment as make_environment
    from dowise.errors import DowiseError as DowiseError
    from dowise.experiment import Experiment as Experiment
    from dowise.graph import CausalGraph as CausalGraph
    from dowise.policies import Decision as Decision
    from dowise.policies import make_policy as make_policy
    from dowise.policies import register_policy as register_policy
    from dowise.policies import value_of_continuing as value_of_continuing
    from dowise.problem import Intervention as Intervention
    from dowise.problem import Problem as Problem
    from dowise.problem import load_problem as load_problem
    from dowise.simulation.simulate import simulate as simulate
    from dowise.testing import check_environment as check_environment
    from dowise.testing import check_policy as check_policy
    from dowise.testing import check_storage as check_storage

_MODULES = {
    "Belief": "dowise.belief",
    "CausalGraph": "dowise.graph",
    "Client": "dowise.client",
    "Decision": "dowise.policies",
    "DowiseError": "dowise.errors",
    "Environment": "dowise.environments",
    "Experiment": "dowise.experiment",
    "Intervention": "dowise.problem",
    "Problem": "dowise.problem",
    "check_environment": "dowise.testing",
    "check_policy": "dowise.testing",
    "check_storage": "dowise.testing",
    "load_problem": "dowise.problem",
    "make_environment": "dowise.environments",
    "make_policy": "dowise.policies",
    "register_policy": "dowise.policies",
    "simulate": "dowise.simulation",
    "value_of_continuing": "dowise.policies",
}

__all__ = [*_MODULES, "__version__"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        globals()[name] = version("dowise")  # cached, because `version` reads a file
        return globals()[name]
    if name in _MODULES:
        try:
            return getattr(importlib.import_module(_MODULES[name]), name)
        except AttributeError as error:
            # As an AttributeError it would become "cannot import name", without the cause.
            raise ImportError(f"dowise.{name} can't be loaded: {error}") from error
    raise AttributeError(f"module 'dowise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
