"""Graphs to and from the models of pgmpy and DoWhy.

Both are networkx graphs inside, in which some variables may be recorded by nobody. Neither has a
bidirected edge where it is most used, so `A <-> B` goes out as a variable of its own that causes
both, and comes back as what it was. Neither library is imported before a model of it is asked for.

>>> from dowise.graph import CausalGraph
>>> drawn = to_dowhy(CausalGraph.parse("X -> Y; X <-> Y!"))
>>> sorted(drawn.edges), drawn.nodes["U_X_Y"]["observed"]
([('U_X_Y', 'X'), ('U_X_Y', 'Y'), ('X', 'Y')], 'no')
>>> print(from_dowhy(drawn).graph)
X -> Y; X <-> Y!
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dowise.errors import DowiseError, MissingExtraError, type_name
from dowise.graph.causal_graph import CausalGraph
from dowise.graph.formats.gml import from_networkx, to_networkx

if TYPE_CHECKING:
    import networkx

__all__ = ["Outline", "from_dowhy", "from_pgmpy", "pgmpy_part", "to_dowhy", "to_pgmpy"]

_TIE = "hidden_cause"  # the attribute of a variable that stands for a bidirected edge


@dataclass(frozen=True)
class Outline:
    """What a model says of causes: the graph of all its variables, and what some of them are."""

    graph: CausalGraph
    latent: tuple[str, ...] = ()
    """The variables that nobody records; they are in the graph."""
    exposures: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    domains: dict[str, tuple[str, ...]] = field(default_factory=dict)
    data: Any = None
    """The table that the model came with, if any."""

    @property
    def projected(self) -> CausalGraph:
        """The graph of what is recorded."""
        return self.graph.project(self.latent)


def from_pgmpy(model: Any) -> Outline:
    """What a DAG, an ADMG or a Bayesian network of pgmpy says, its states included."""
    if not _is_networkx(model) or not hasattr(model, "latents"):
        raise DowiseError(
            f"expected a DAG, an ADMG or a Bayesian network of pgmpy, not {type_name(model)}"
        )
    for one, other in getattr(model, "undirected_edges", ()):
        raise DowiseError(
            f"{one} -- {other} has no direction, but causes need one: give a DAG, such as "
            "model.to_dag()"
        )
    graph = _with_ties(model)
    latent = sorted(str(name) for name in model.latents if name in graph)
    exposures, outcomes = (
        tuple(sorted(map(str, getattr(model, role, ())))) for role in ("exposures", "outcomes")
    )
    cpds = model.get_cpds() if hasattr(model, "get_cpds") else []
    domains = {
        str(cpd.variable): tuple(map(str, cpd.state_names[cpd.variable]))
        for cpd in cpds
        if hasattr(cpd, "state_names")
    }
    return Outline(from_networkx(graph), tuple(latent), exposures, outcomes, domains)


def from_dowhy(model: Any) -> Outline:
    """What a CausalModel, a CausalGraph or a graphical causal model (gcm) of DoWhy says.

    A networkx.DiGraph will do too: its nodes with observed="no" are those that nobody records.
    """
    drawn = getattr(model, "_graph", None) or getattr(model, "graph", model)
    graph = model if _is_networkx(model) else getattr(drawn, "_graph", drawn)
    if not _is_networkx(graph):
        raise DowiseError(
            f"expected a CausalModel or a causal graph of DoWhy, not {type_name(model)}"
        )
    graph = _with_ties(graph)
    latent = sorted(str(name) for name, said in graph.nodes.items() if said.get("observed") == "no")
    exposures, outcomes = (
        tuple(sorted(map(str, getattr(model, role, None) or ())))
        for role in ("_treatment", "_outcome")
    )
    data = getattr(model, "_data", None)
    return Outline(from_networkx(graph), tuple(latent), exposures, outcomes, data=data)


def to_dowhy(graph: CausalGraph, hidden: str | Iterable[str] = ()) -> networkx.DiGraph[str]:
    """A graph for DoWhy: `CausalModel(data, treatment, outcome, graph=…)`, or that of a gcm.

    `hidden` variables, and one for each bidirected edge, have the attribute observed="no".
    """
    import networkx

    unseen = set(graph.names(graph.mask(hidden)))
    result: networkx.DiGraph[str] = networkx.DiGraph()
    for name in graph.variables:
        result.add_node(name, observed="no" if name in unseen else "yes")
    for one, other, key, marks in to_networkx(graph).edges(keys=True, data=True):
        if key == "directed":
            result.add_edge(one, other, **marks)
        else:
            tie = f"U_{one}_{other}"
            while tie in result:
                tie += "_"
            result.add_node(tie, observed="no", **{_TIE: True}, **marks)
            result.add_edges_from([(tie, one), (tie, other)])
    return result


def to_pgmpy(graph: CausalGraph, hidden: str | Iterable[str] = ()) -> Any:
    """A pgmpy.base.DAG; `hidden` variables, and one for each bidirected edge, are its latents."""
    drawn = to_dowhy(graph, hidden)
    latents = {name for name, said in drawn.nodes.items() if said["observed"] == "no"}
    dag = pgmpy_part("base").DAG(latents=set())
    dag.add_nodes_from(drawn)
    dag.add_edges_from(drawn.edges)
    dag.latents = latents
    for name, attributes in drawn.nodes(data=True):
        dag.nodes[name].update(attributes)
    for cause, effect, attributes in drawn.edges(data=True):
        dag.edges[cause, effect].update(attributes)
    return dag


def pgmpy_part(name: str) -> ModuleType:
    """A module of pgmpy, or an error that says how to install it."""
    try:
        return importlib.import_module(f"pgmpy.{name}")
    except ImportError as error:
        raise MissingExtraError(
            "a model of pgmpy needs pgmpy, which is not installed: pip install 'pgmpy>=1.0'"
        ) from error


def _is_networkx(graph: object) -> bool:
    import networkx

    return isinstance(graph, networkx.Graph)


def _with_ties(graph: Any) -> networkx.MultiDiGraph[Any]:
    """The graph with a bidirected edge for each variable that stands for one."""
    import networkx

    tied: networkx.MultiDiGraph[Any] = networkx.MultiDiGraph(graph)
    for name, attributes in graph.nodes(data=True):
        if attributes.get(_TIE):
            one, other = tied.successors(name)
            marks = {key: attributes[key] for key in ("doubtful", "certain") if key in attributes}
            tied.remove_node(name)
            tied.add_edge(one, other, bidirected=True, **marks)
    return tied
