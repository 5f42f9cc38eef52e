"""Exchange with networkx, and through it with GML.

networkx knows no bidirected edge, so one is a directed edge with a mark: the key "bidirected" of a
multigraph, or the attribute `bidirected`, or Graphviz' `dir="both"`, or pgmpy's
`type="bidirected"`. The attributes `doubtful` and
`certain` say how sure the edge is.

>>> from dowise.graph import CausalGraph
>>> sorted(to_networkx(CausalGraph.parse("X -> Y <-> X")).edges(keys=True))
[('X', 'Y', 'bidirected'), ('X', 'Y', 'directed')]
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dowise.errors import DowiseError, InputSyntaxError, kind_of
from dowise.graph.causal_graph import CausalGraph
from dowise.graph.edges import mark_of, says_yes
from dowise.graph.formats.structure import Arrow, Sketch

if TYPE_CHECKING:
    import networkx

__all__ = ["from_networkx", "parse_gml", "to_gml", "to_networkx"]


def from_networkx(graph: networkx.Graph[Any]) -> CausalGraph:
    """From a DiGraph or MultiDiGraph; a bidirected edge may be stored once or in both directions.

    Nodes that are not texts become texts: the node 1 becomes the variable "1".
    """
    import networkx

    if not isinstance(graph, networkx.Graph):
        raise DowiseError(f"expected a networkx.DiGraph, not {kind_of(graph)}")
    return _causal_graph(graph, {node: node for node in graph})


def to_networkx(graph: CausalGraph) -> networkx.MultiDiGraph[str]:
    """A MultiDiGraph with the keys "directed" and "bidirected".

    A bidirected edge is stored once, in the order of names. `doubtful` or `certain` is True where
    an edge has that mark, and absent where it has none.
    """
    import networkx

    result: networkx.MultiDiGraph[str] = networkx.MultiDiGraph()
    result.add_nodes_from(graph.variables)
    words = {"?": "doubtful", "!": "certain"}
    for edge in graph.edges:
        key = "bidirected" if edge.is_bidirected else "directed"
        marks = {words[mark]: True for mark in graph.marks.get(str(edge), "")}
        result.add_edge(edge.one, edge.other, key=key, **marks)
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
    sketch = Sketch()
    sketch.names.update((name, None) for name in named)
    for cause, effect, arrow in _arrows(graph):
        sketch.chain([[str(labels[cause])], [str(labels[effect])]], [arrow])
    return sketch.graph() if named else CausalGraph()


def _arrows(graph: Any) -> Iterator[tuple[Hashable, Hashable, Arrow]]:
    """Every edge with its arrow."""
    keyed = graph.is_multigraph()
    edges = graph.edges(keys=True, data=True) if keyed else graph.edges(data=True)
    for cause, effect, *key, data in edges:
        where = f"the edge from {cause!r} to {effect!r}"
        direction = data.get("dir", "forward")
        if direction not in ("forward", "back", "both"):
            raise DowiseError(
                f"{where} has dir={direction!r}: use forward, back, or both for a bidirected edge"
            )
        tied = "bidirected" in (*key, data.get("type")) or direction == "both"
        tied = tied or says_yes(data.get("bidirected"))
        shape = "<->" if tied else "<-" if direction == "back" else "->"
        yield cause, effect, Arrow(shape, mark_of(data, where))


def _syntax_problem(message: str) -> InputSyntaxError:
    """networkx' complaint, which ends with "at (line, column)" where it knows the place."""
    message = message.replace("found EOF", "found the end")
    place = re.fullmatch(r"(?s)(.*) at \((\d+), (\d+)\)", message)
    if place is None:
        return InputSyntaxError(f"GML: {message}")
    line, column = int(place[2]), int(place[3])
    return InputSyntaxError(f"GML, line {line}, column {column}: {place[1]}", line, column)
