"""Exchange with networkx, and through it with GML.

networkx knows no bidirected edge, so one is a directed edge with a mark: the key "bidirected" of a
multigraph, or the attribute `bidirected`, or Graphviz' `dir="both"`.

>>> from dowise.graph import CausalGraph
>>> sorted(to_networkx(CausalGraph.parse("X -> Y <-> X")).edges(keys=True))
[('X', 'Y', 'bidirected'), ('X', 'Y', 'directed')]
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from dowise.errors import DowiseError, InputSyntaxError
from dowise.graph.causal_graph import CausalGraph, Edge

if TYPE_CHECKING:
    import networkx

__all__ = ["from_networkx", "parse_gml", "to_gml", "to_networkx"]


def from_networkx(graph: networkx.Graph[Any]) -> CausalGraph:
    """From a DiGraph or MultiDiGraph; a bidirected edge may be stored once or in both directions.

    Nodes that are not texts become texts: the node 1 becomes the variable "1".
    """
    import networkx

    if not isinstance(graph, networkx.Graph):
        raise DowiseError(f"expected a networkx.DiGraph, not a {type(graph).__name__}")
    return _causal_graph(graph, {node: node for node in graph})


def to_networkx(graph: CausalGraph) -> networkx.MultiDiGraph[str]:
    """A MultiDiGraph with the keys "directed" and "bidirected".

    A bidirected edge is stored once, in the order of names.
    """
    import networkx

    result: networkx.MultiDiGraph[str] = networkx.MultiDiGraph()
    result.add_nodes_from(graph.variables)
    for cause, effect in graph.directed_edges:
        result.add_edge(cause, effect, key="directed")
    for one, other in graph.bidirected_edges:
        result.add_edge(one, other, key="bidirected")
    return result


def parse_gml(text: str) -> CausalGraph:
    """Read GML. A variable is named by its node's label, or by the id where there is none."""
    import networkx

    try:
        # By id: networkx turns the label "[]" into a list, which can't be a node.
        graph = networkx.parse_gml(text, label="id")
    except networkx.NetworkXError as error:
        raise _syntax_problem(str(error)) from None
    except Exception:  # on broken text networkx also fails with IndexError, AttributeError, ...
        raise _syntax_problem('expected graph [ node [ id 0 label "X" ] ... ]') from None
    return _causal_graph(
        graph, {node: data.get("label", node) for node, data in graph.nodes.items()}
    )


def to_gml(graph: CausalGraph) -> str:
    """GML, with the edge keys of `to_networkx`."""
    import networkx

    return "\n".join(networkx.generate_gml(to_networkx(graph))) + "\n"


def _causal_graph(graph: networkx.Graph[Any], labels: Mapping[Hashable, object]) -> CausalGraph:
    """The causal graph over the texts of the labels."""
    if not graph.is_directed():
        raise DowiseError(
            "the graph is undirected, but causes need a direction: "
            "use a networkx.DiGraph (in GML: directed 1)"
        )
    named: dict[str, object] = {}
    for label in labels.values():
        if str(label) in named:
            raise DowiseError(
                f"two nodes, {named[str(label)]!r} and {label!r}, would both be the variable "
                f"{str(label)!r}: rename one of them"
            )
        named[str(label)] = label
    directed: list[Edge] = []
    bidirected: list[Edge] = []
    for cause, effect, mark in _marked_edges(graph):
        edge = (str(labels[cause]), str(labels[effect]))
        (bidirected if mark else directed).append(edge)
    return CausalGraph(directed, bidirected, named)


def _marked_edges(graph: Any) -> list[tuple[Hashable, Hashable, bool]]:
    """Every edge, with whether it is marked as bidirected."""

    keyed = graph.is_multigraph()
    edges = graph.edges(keys=True, data=True) if keyed else graph.edges(data=True)
    marked: list[tuple[Hashable, Hashable, bool]] = []
    for cause, effect, *key, data in edges:
        direction = data.get("dir", "forward")
        if direction not in ("forward", "back", "both"):
            raise DowiseError(
                f"the edge from {cause!r} to {effect!r} has dir={direction!r}: use forward, back, "
                "or both for a bidirected edge"
            )
        tied = key == ["bidirected"] or direction == "both" or _says_yes(data.get("bidirected"))
        ends = (effect, cause) if direction == "back" else (cause, effect)
        marked.append((*ends, tied))
    return marked


def _says_yes(mark: object) -> bool:
    return mark.lower() in ("1", "true", "yes") if isinstance(mark, str) else bool(mark)


def _syntax_problem(message: str) -> InputSyntaxError:
    """networkx' complaint, which ends with "at (line, column)" where it knows the place."""
    message = message.replace("found EOF", "found the end")
    place = re.fullmatch(r"(?s)(.*) at \((\d+), (\d+)\)", message)
    if place is None:
        return InputSyntaxError(f"GML: {message}")
    line, column = int(place[2]), int(place[3])
    return InputSyntaxError(f"GML, line {line}, column {column}: {place[1]}", line, column)
