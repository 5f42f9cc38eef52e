"""The guarantees of layouts, on random graphs, known networks and dense graphs."""

import itertools
import random
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.parametrize import one_in
from support.strategies import examples

from dowise import CausalGraph
from dowise.plotting import layout as module
from dowise.plotting.layout import Layout, arrange, layout, text_width

TASK_3 = """C -> Y; C -> X3; Z2 -> Y; Z2 -> X3; X1 -> Y; Z1 -> X1; X3 -> X2; Z1 -> Y; X2 -> Y"""
HEALTHCARE = """Lifestyle -> Health; Lifestyle -> Recovery; Treatment -> Health; Diet -> Health
Health -> Recovery; Treatment -> Recovery"""
SEVERAL_ARCS = "B -> C -> D -> Y; A -> E -> Y; C -> E; A <-> Y; B <-> Y"
EXAMPLES = {
    "triangle": "Z -> X -> Y; Z -> Y",
    "task 2": "C -> X1; C -> X2; X1 -> X2; Z -> X2; Z -> Y; X2 -> Y",
    "task 3": TASK_3,
    "healthcare": HEALTHCARE,
    "several arcs": SEVERAL_ARCS,
    "arcs in one column": "A -> Y; B -> Y; C -> Y; A <-> B; A <-> C; B <-> C",
    "one variable": "Y",
    "no edges": "A; B; C; D; E; Y",
    "only hidden causes": "A <-> B; B <-> C; A <-> C; D",
    "two parts": "A -> B -> C; D -> E; F",
}


def points_along(stroke, steps=60):
    """Return dense points along a stroke; unlike the library, by de Casteljau's algorithm."""
    t = np.linspace(0, 1, steps + 1)[:, None]
    parts = []
    for i in range(0, len(stroke) - 1, 3):
        points = [np.array(point) for point in stroke[i : i + 4]]
        while len(points) > 1:
            points = [(1 - t) * a + t * b for a, b in itertools.pairwise(points)]
        parts.append(points[0])
    return np.concatenate(parts)


def is_any_inside(points, box, margin=0.0):
    near = np.abs(points - (box.x, box.y)) < (box.width / 2 + margin, box.height / 2 + margin)
    return near.all(axis=1).any()


def check_shapes(graph: CausalGraph, plan: Layout) -> None:
    """Check that there is a shape for every variable and edge."""
    assert set(plan.boxes) == set(graph.variables)
    assert tuple(plan.directed) == graph.directed_edges
    assert tuple(plan.bidirected) == graph.bidirected_edges


def check(graph: CausalGraph, plan: Layout) -> None:
    """Check all guarantees of a layout."""
    check_shapes(graph, plan)

    for name, box in plan.boxes.items():
        assert box.width >= text_width(name) + 1
    check_gaps(plan)

    for (cause, effect), stroke in plan.directed.items():
        start, end = plan.boxes[cause], plan.boxes[effect]
        assert start.right < end.left
        assert stroke[0][0] == start.right
        assert stroke[-1][0] == end.left
        assert abs(stroke[0][1] - start.y) < start.height / 2 - 0.3
        assert abs(stroke[-1][1] - end.y) < end.height / 2 - 0.3
        assert (np.diff(points_along(stroke)[:, 0]) >= -1e-9).all()

    for edge, stroke in plan.bidirected.items():
        for name, (x, y) in zip(edge, (stroke[0], stroke[-1]), strict=True):
            assert y in (plan.boxes[name].top, plan.boxes[name].bottom)
            assert abs(x - plan.boxes[name].x) < plan.boxes[name].width / 2 - 0.4
            assert not is_any_inside(points_along(stroke), plan.boxes[name], -0.1)

    left, top, right, bottom = plan.bounds
    for edge, stroke in (*plan.directed.items(), *plan.bidirected.items()):
        points = points_along(stroke)
        others = [box for name, box in plan.boxes.items() if name not in edge]
        assert not any(is_any_inside(points, box, 0.2) for box in others), edge
        assert (points >= (left - 0.1, top - 0.1)).all()
        assert (points <= (right + 0.1, bottom + 0.1)).all()
        # The ends are straight and have room for an arrowhead.
        for tip, a, b, inner in (stroke[:4], stroke[:-5:-1]):
            length = ((tip[0] - inner[0]) ** 2 + (tip[1] - inner[1]) ** 2) ** 0.5
            assert length >= 0.35 - 1e-9 if tip == stroke[0] else length >= 0.7 - 1e-9
            for p in (a, b):
                cross = (p[0] - tip[0]) * (inner[1] - tip[1]) - (p[1] - tip[1]) * (
                    inner[0] - tip[0]
                )
                assert abs(cross) < 1e-6


def check_gaps(plan: Layout) -> None:
    for a, b in itertools.combinations(plan.boxes.values(), 2):
        gap_x = abs(a.x - b.x) - (a.width + b.width) / 2
        gap_y = abs(a.y - b.y) - (a.height + b.height) / 2
        assert max(gap_x, gap_y) > 1.0


def check_dense(graph: CausalGraph, plan: Layout) -> None:
    """Check the guarantees that remain in dense graphs, where arcs may run across boxes."""
    check_shapes(graph, plan)
    check_gaps(plan)
    for (cause, effect), stroke in plan.directed.items():
        assert stroke[0][0] == plan.boxes[cause].right
        assert stroke[-1][0] == plan.boxes[effect].left
    for edge, stroke in plan.bidirected.items():
        for name, (x, y) in zip(edge, (stroke[0], stroke[-1]), strict=True):
            assert y in (plan.boxes[name].top, plan.boxes[name].bottom)
            assert abs(x - plan.boxes[name].x) < plan.boxes[name].width / 2


def random_graph(size, directed, hidden):
    """Return a graph with edges between pairs of variables with these probabilities."""
    rng = random.Random(size)
    names = [f"V{i:02}" for i in range(size)]
    pairs = list(itertools.combinations(names, 2))
    return CausalGraph(
        [pair for pair in pairs if rng.random() < directed],
        [pair for pair in pairs if rng.random() < hidden],
        names,
    )


@st.composite
def graphs(draw, max_size=25):
    """Sparse and dense graphs with names of all lengths and a few hidden causes."""
    size = draw(st.integers(1, max_size))
    lengths = draw(st.lists(st.sampled_from([0, 0, 3, 20]), min_size=size, max_size=size))
    names = draw(st.permutations([f"V{i}{'m' * n}" for i, n in enumerate(lengths)]))
    pairs = list(itertools.combinations(names, 2))
    rng = random.Random(draw(st.integers(0, 2**32)))
    density = draw(st.sampled_from([0.0, 0.05, 0.15, 0.3]))
    directed = [pair for pair in pairs if rng.random() < density]
    hidden = rng.sample(pairs, min(len(pairs), draw(st.integers(0, 6))))
    return CausalGraph(directed, hidden, names)


@given(graphs(), st.data())
@examples(60)
def test_guarantees_on_random_graphs(graph, data):
    last = data.draw(st.sampled_from([None, *graph.variables]))
    check(graph, layout(graph, last))


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES)
def test_guarantees_on_small_graphs(text):
    graph = CausalGraph.parse(text)
    check(graph, layout(graph))
    check(graph, layout(graph, last="Y" if "Y" in graph else None))


def test_checks_can_fail():
    graph = CausalGraph.parse("A -> B -> C; A -> C")
    plan = layout(graph)
    first, second = plan.directed["A", "B"], plan.directed["B", "C"]
    through = (*first, first[-1], second[0], second[0], *second[1:])
    with pytest.raises(AssertionError, match="'A', 'C'"):
        check(graph, Layout(plan.boxes, {**plan.directed, ("A", "C"): through}, {}))
    with pytest.raises(AssertionError):
        check(graph, Layout({**plan.boxes, "A": plan.boxes["B"]}, plan.directed, {}))


def test_empty_graph_has_an_empty_layout():
    plan = layout(CausalGraph())
    assert (plan.boxes, plan.directed, plan.bidirected) == ({}, {}, {})
    assert plan.bounds == (0.0, 0.0, 0.0, 0.0)


def test_last_variable_is_in_the_last_column():
    graph = CausalGraph.parse("A -> B -> C -> D; A -> Y")
    assert layout(graph).boxes["Y"].right < layout(graph).boxes["D"].left
    boxes = layout(graph, last="Y").boxes
    assert max(boxes, key=lambda name: (boxes[name].x, name == "Y")) == "Y"
    isolated = layout(CausalGraph.parse("A; B; C; D; E; Y"), last="A").boxes
    assert isolated["A"].x == max(box.x for box in isolated.values())


def test_cause_is_close_to_its_effects():
    boxes = layout(CausalGraph.parse("A -> B -> C -> D; Z -> D")).boxes
    assert boxes["Z"].x == boxes["C"].x


def test_variables_without_edges_form_a_block():
    boxes = layout(CausalGraph(variables=[f"V{i}" for i in range(60)])).boxes
    columns = {box.x for box in boxes.values()}
    assert len(columns) == 8
    assert len({box.y for box in boxes.values()}) <= 16


def count_crossings(layers):
    """Count crossings pair by pair."""
    rank = {v: i for column in layers.columns for i, v in enumerate(column)}
    pieces = [
        (column, rank[u], rank[v])
        for column, points in enumerate(layers.columns)
        for u in points
        for v in layers.right[u]
    ]
    return sum(
        a[0] == b[0] and (a[1] - b[1]) * (a[2] - b[2]) < 0
        for a, b in itertools.combinations(pieces, 2)
    )


def test_crossings_are_avoided_if_possible():
    # In the order of names all edges would cross each other.
    ladder = CausalGraph([(f"A{i}", f"B{9 - i}") for i in range(10)])
    assert count_crossings(arrange(ladder)) == 0
    tree = CausalGraph(
        [(f"N{i:02}", f"N{j:02}") for i in range(15) for j in (2 * i + 1, 2 * i + 2)]
    )
    assert count_crossings(arrange(tree)) == 0
    # Two causes of the same two effects have one crossing.
    assert count_crossings(arrange(CausalGraph.parse("A -> C; A -> D; B -> C; B -> D"))) == 1


def test_edge_over_many_columns_is_level():
    stroke = layout(CausalGraph.parse("A -> B -> C -> D -> E -> F; A -> F")).directed["A", "F"]
    heights = [y for _, y in stroke]
    assert max(heights) - min(heights) < 1e-9


def test_chain_is_a_straight_line():
    plan = layout(CausalGraph.parse("A -> B -> C -> D"))
    assert len({box.y for box in plan.boxes.values()}) == 1


def test_column_is_as_wide_as_its_names():
    short = layout(CausalGraph.parse("A -> B"))
    long = layout(CausalGraph([("Arterial_blood_pressure", "B")]))
    assert long.boxes["B"].left - short.boxes["B"].left > 10


def test_text_width_depends_on_characters():
    assert text_width("iii") < text_width("nnn") < text_width("NNN") < text_width("WWW")
    assert text_width("漢字") > text_width("ab")
    assert text_width("e\u0301") == text_width("e")
    assert text_width("") == 0


def test_box_has_room_for_all_its_edges():
    graph = CausalGraph([(f"P{i}", "Y") for i in range(12)])
    plan = layout(graph)
    ends = sorted(stroke[-1][1] for stroke in plan.directed.values())
    assert min(b - a for a, b in itertools.pairwise(ends)) > 0.4
    assert plan.boxes["Y"].height > plan.boxes["P0"].height


def test_arc_avoids_the_box_between():
    plan = layout(CausalGraph.parse("A -> B -> C; A <-> C"))
    heights = points_along(plan.bidirected["A", "C"])[:, 1]
    above = heights.min() < plan.boxes["B"].top - 0.3
    below = heights.max() > plan.boxes["B"].bottom + 0.3
    assert above != below


def test_arcs_at_one_box_have_different_ends():
    plan = layout(CausalGraph.parse("A -> B -> C; A <-> C; B <-> C; A <-> B"))
    ends = [end for stroke in plan.bidirected.values() for end in (stroke[0], stroke[-1])]
    assert len(set(ends)) == len(ends)


@pytest.mark.slow
def test_equal_graphs_have_equal_layouts():
    edges = [("A", "C"), ("B", "C"), ("C", "D"), ("A", "D"), ("B", "E"), ("D", "E")]
    hidden = [("A", "E"), ("B", "D")]
    plan = layout(CausalGraph(edges, hidden))
    assert plan == layout(CausalGraph(edges[::-1], [(b, a) for a, b in hidden[::-1]]))
    dense = random_graph(20, 0.3, 0.2)
    assert layout(dense) == layout(dense)


@pytest.mark.parametrize(("size", "edges", "hidden"), one_in(2, [(27, 52, 5), (60, 120, 10)]))
def test_guarantees_on_large_graphs(size, edges, hidden):
    rng = random.Random(size)
    pairs = list(itertools.combinations([f"Variable{i:02}" for i in range(size)], 2))
    graph = CausalGraph(rng.sample(pairs, edges), rng.sample(pairs, hidden))
    check(graph, layout(graph))


@pytest.mark.parametrize("name", ["alarm", "asia", "child", "insurance", "sachs"])
@pytest.mark.parametrize("hidden", one_in(2, [14, 0]))
def test_guarantees_on_networks(name, hidden):
    networks = Path(str(files("dowise.problem") / "builtin" / "networks"))
    network = CausalGraph.read(networks / f"{name}.bif")
    pairs = list(itertools.combinations(network.variables, 2))
    graph = CausalGraph(network.directed_edges, random.Random(name).sample(pairs, hidden))
    check(graph, layout(graph))


def test_guarantees_on_a_full_graph_of_medium_size():
    graph = random_graph(25, 0.3, 0.0)
    pairs = list(itertools.combinations(graph.variables, 2))
    graph = CausalGraph(graph.directed_edges, random.Random(0).sample(pairs, 14), graph.variables)
    check(graph, layout(graph))


@pytest.mark.parametrize(
    ("size", "directed", "hidden"),
    one_in(4, [(20, 0.3, 0.2), (30, 0.3, 0.3), (60, 0.5, 0.3), (30, 0.0, 1.0)]),
)
def test_guarantees_that_remain_on_dense_graphs(size, directed, hidden):
    graph = random_graph(size, directed, hidden)
    check_dense(graph, layout(graph))


def test_guarantees_on_dense_directed_edges():
    graph = random_graph(30, 0.4, 0.0)
    check(graph, layout(graph))


def test_arcs_avoid_boxes_without_a_search(monkeypatch):
    monkeypatch.setattr(module, "_MAX_WORK", 0)
    graph = CausalGraph.parse("A -> B -> C; A <-> C; D -> C; A <-> D")
    check(graph, layout(graph))
    tall = CausalGraph([(f"P{i}", "Y") for i in range(6)], [("P0", "P5"), ("P1", "P4")])
    check_dense(tall, layout(tall))
