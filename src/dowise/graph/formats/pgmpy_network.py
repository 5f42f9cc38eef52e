"""Bayesian networks to and from pgmpy: the graph, the labels and the probability tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dowise.errors import DowiseError
from dowise.graph.formats.bif import Network
from dowise.graph.formats.libraries import from_pgmpy, pgmpy_part

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["network_from_pgmpy", "network_to_pgmpy"]


def network_from_pgmpy(model: Any) -> Network:
    """The network of a model whose CPDs are tables, its latent variables included."""
    outline = from_pgmpy(model)
    graph, domains = outline.graph, outline.domains
    for one, other in graph.bidirected_edges:
        raise DowiseError(f"{one} <-> {other}: a Bayesian network has no bidirected edges")
    found = {str(cpd.variable): cpd for cpd in getattr(model, "get_cpds", list)()}
    cpts = {}
    for name in graph.variables:
        if not hasattr(found.get(name), "state_names"):
            raise DowiseError(
                f"{name} has no table of probabilities: give the model a TabularCPD of it "
                "(model.add_cpds)"
            )
        cpts[name] = _table(found[name], (*graph.parents(name), name), domains)
    return Network(graph, domains, cpts)


def _table(
    cpd: Any, axes: tuple[str, ...], domains: dict[str, tuple[str, ...]]
) -> NDArray[np.float64]:
    """The table of a CPD with these axes, the labels of each in the order of its domain."""
    import numpy as np

    own = [str(variable) for variable in cpd.variables]
    if sorted(own) != sorted(axes):
        raise DowiseError(
            f"the CPD of {axes[-1]} is given {', '.join(own[1:]) or 'nothing'}, but its causes in "
            f"the graph are {', '.join(axes[:-1]) or 'none'}"
        )
    labels = {str(variable): [*map(str, states)] for variable, states in cpd.state_names.items()}
    for name in axes:
        if sorted(labels[name]) != sorted(domains[name]):
            raise DowiseError(
                f"the CPD of {axes[-1]} has the states {', '.join(labels[name])} of {name}, whose "
                f"own are {', '.join(domains[name])}"
            )
    values = np.asarray(cpd.values, dtype=np.float64).transpose([own.index(name) for name in axes])
    places = ([labels[name].index(label) for label in domains[name]] for name in axes)
    return np.ascontiguousarray(values[np.ix_(*places)])


def network_to_pgmpy(network: Network, latents: Iterable[str] = ()) -> Any:
    """A pgmpy.models.DiscreteBayesianNetwork with the same numbers to the last bit."""
    model = pgmpy_part("models").DiscreteBayesianNetwork(latents=set())
    table = pgmpy_part("factors.discrete").TabularCPD
    model.add_nodes_from(network.graph.variables)
    model.add_edges_from(network.graph.directed_edges)
    model.latents = set(latents)
    for name, cpt in network.cpts.items():
        parents = network.graph.parents(name)
        size = len(network.domains[name])
        model.add_cpds(
            table(
                name, size, cpt.reshape(-1, size).T,
                evidence=list(parents), evidence_card=[len(network.domains[p]) for p in parents],
                state_names={axis: list(network.domains[axis]) for axis in (*parents, name)},
            )
        )  # fmt: skip
    return model
