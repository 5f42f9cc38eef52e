"""Conversion from and to networkx graphs and GML.

networkx has no bidirected edges, so a bidirected edge is a directed one with a flag: the key
"bidirected" of a multigraph, the attribute `bidirected`, Graphviz' `dir="both"`, or pgmpy's
`type="bidirected"`. The attributes `doubtful` and `certain` are the mark of an edge.

>>> from dowise.graph import CausalGraph
>>> sorted(to_networkx(CausalGraph.parse("X -> Y <-> X")).edges(keys=True))
[('X', 'Y', 'bidirected'), ('X', 'Y', 'directed')]
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dowise.errors import DowiseError, InputSyntaxError, type_name
from dowise.graph.causal_graph import CausalGraph
from dowise.graph.edges import is_true, mark_of
from dowise.graph.formats.grammar import Arrow, GraphSketch

if TYPE_CHECKING:
    import networkx


def from_networkx(graph: networkx.Graph[Any]) -> CausalGraph:
    """Convert a DiGraph or MultiDiGraph.

    A bidirected edge may be stored once or in both directions. Nodes are converted to text: the
    node 1 becomes the variable "1".
    """
    import networkx

    if not isinstance(graph, networkx.Graph):
        raise DowiseError(
            f"expected a networkx.DiGraph, not {type_name(graph)}", code="invalid-type"
        )
    return _causal_graph(graph, {node: node for node in graph})


def to_networkx(graph: CausalGraph) -> networkx.MultiDiGraph[str]:
    """Return a MultiDiGraph with the keys "directed" and "bidirected".

    A bidirected edge is stored once, in the order of names. `doubtful` or `certain` is True if
    an edge has that mark, and absent otherwise.
    """
    import networkx

    result: networkx.MultiDiGraph[str] = networkx.MultiDiGraph()
    result.add_nodes_from(graph.variables)
    words = {"?": "doubtful", "!": "certain"}
    for edge in graph.edges:
        key = "bidirected" if edge.is_bidirected else "directed"
        marks = {words[mark]: True for mark in graph.marks.get(str(edge), "")}
        result.add_edge(edge.left, edge.right, key=key, **marks)
    return result


def parse_gml(text: str) -> CausalGraph:
    """Parse GML. A variable is named by its node's label, or by the id if there is no label."""
    import networkx

    try:
        # By id: networkx turns the label "[]" into a list, which can't be a node.
        graph = networkx.parse_gml(text, label="id")
    except networkx.NetworkXError as error:
        raise _syntax_error(str(error)) from None
    except Exception:  # on broken text networkx also fails with IndexError, AttributeError, ...
        raise _syntax_error('expected graph [ node [ id 0 label "X" ] ... ]') from None
    return _causal_graph(
        graph, {node: data.get("label", node) for node, data in graph.nodes.items()}
    )


def to_gml(graph: CausalGraph) -> str:
    """Return GML with the edge keys of `to_networkx`."""
    import networkx

    return "\n".join(networkx.generate_gml(to_networkx(graph))) + "\n"


def _causal_graph(graph: networkx.Graph[Any], labels: Mapping[Hashable, object]) -> CausalGraph:
    """Build the causal graph whose variables are the texts of the labels."""
    if not graph.is_directed():
        raise DowiseError(
            "the graph is undirected, but causes need a direction: "
            "use a networkx.DiGraph (in GML: directed 1)",
            code="undirected-edge",
        )
    named: dict[str, object] = {}
    for label in labels.values():
        if str(label) in named:
            raise DowiseError(
                f"two nodes, {named[str(label)]!r} and {label!r}, would both be the variable "
                f"{str(label)!r}: rename one of them",
                code="duplicate-name",
            )
        named[str(label)] = label
    sketch = GraphSketch()
    sketch.names.update((name, None) for name in named)
    for cause, effect, arrow in _arrows(graph):
        sketch.chain([[str(labels[cause])], [str(labels[effect])]], [arrow])
    return sketch.graph() if named else CausalGraph()


def _arrows(graph: Any) -> Iterator[tuple[Hashable, Hashable, Arrow]]:
    """Yield every edge with its arrow."""
    edges = graph.edges(keys=True, data=True) if graph.is_multigraph() else graph.edges(data=True)
    for cause, effect, *key, data in edges:
        where = f"the edge from {cause!r} to {effect!r}"
        direction = data.get("dir", "forward")
        if direction not in ("forward", "back", "both"):
            raise DowiseError(
                f"{where} has dir={direction!r}: use forward, back, or both for a bidirected edge",
                code="undirected-edge",
            )
        is_bidirected = "bidirected" in (*key, data.get("type")) or direction == "both"
        is_bidirected = is_bidirected or is_true(data.get("bidirected"))
        shape = "<->" if is_bidirected else "<-" if direction == "back" else "->"
        yield cause, effect, Arrow(shape, mark_of(data, where))


def _syntax_error(message: str) -> InputSyntaxError:
    """Convert an error of networkx, whose message may end with "at (line, column)"."""
    message = message.replace("found EOF", "found the end")
    place = re.fullmatch(r"(?s)(.*) at \((\d+), (\d+)\)", message)
    if place is None:
        return InputSyntaxError(f"GML: {message}")
    line, column = int(place[2]), int(place[3])
    return InputSyntaxError(f"GML, line {line}, column {column}: {place[1]}", line, column)
