"""Factors with hidden causes: the theorem of docs/hidden.md on random graphs, by brute force."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.brute_force import observed_distribution
from support.errors import raises_code
from support.hidden_twin import Graph, order_of, true_factor
from support.strategies import examples

from dowise import CausalGraph, Problem, make_environment
from dowise.model import FactorLayout, model_of
from dowise.model.factors import NONE


@st.composite
def problems(draw, max_size=8, most_causes=4):
    """Draw a problem with hidden causes, domains of two and three values, and maybe a context."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = int(rng.integers(2, max_size + 1))
    names = [f"V{i}" for i in rng.permutation(size)]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    directed = [pair for pair in pairs if rng.random() < 0.4]
    causes = [pairs[i] for i in rng.permutation(len(pairs))[: rng.integers(1, most_causes + 1)]]
    graph = CausalGraph(directed, causes, names)
    reward = names[-1]
    seeds = {v for v in names if rng.random() < 0.2 and reward not in graph.ancestors(v)}
    context = graph.ancestors(seeds) if seeds else ()
    fixed = {v for v in names if rng.random() < 0.2} - {*context} - {reward}
    domains = {v: range(3) for v in names if rng.random() < 0.3}
    settable = [v for v in names if v not in context and v not in fixed and v != reward]
    arms = {"do()"}
    for _ in range(6):
        chosen = [v for v in settable if rng.random() < 0.4]
        values = [f"{v}={rng.integers(len(domains.get(v, range(2))))}" for v in chosen]
        arms.add(f"do({', '.join(values)})")
    return Problem(graph, reward, context, fixed, domains, arms=sorted(arms))


def sizes_of(world):
    sizes = {name: len(labels) for name, labels in world.problem.domains.items()}
    return sizes | {name: world.cpts[name].shape[-1] for name in world.hidden}


def true_entries(world, factors):
    """Return all factors of a world, with its hidden causes summed out."""
    flat = np.empty(factors.entries)
    graph = Graph(world.problem, order_of(world.problem))
    names = factors.variables
    for f, (v, component) in enumerate(factors.keys):
        joined = [names[u] for u in range(len(names)) if component >> u & 1]
        scope = graph.scope(names[v], joined)
        table, equivalent = true_factor(world, sizes_of(world), names[v], joined, scope)
        if names[v] in graph.useful:
            np.testing.assert_allclose(table, equivalent, atol=1e-12)
        factors.table(flat, f)[...] = table
    return flat


@examples(25)
@given(problems(), st.integers(0, 99))
def test_rewards_from_true_factors_equal_the_means_of_the_world(problem, seed):
    world = make_environment(problem, seed)
    model = model_of(problem)
    entries = true_entries(world, model.factors)
    context = world.draw_context(seed)
    distributions = model.distributions(entries, problem.context_codes(context))
    np.testing.assert_allclose(
        distributions @ problem.payoff.values, world.means(context), atol=1e-12, rtol=0
    )


@examples(15)
@given(problems(most_causes=3), st.integers(0, 99))
def test_factors_have_the_same_table_under_every_arm(problem, seed):
    """P_x(v | predecessors of v) is the factor of the key (v, T(v, X)) for every X."""
    check_factors_under(problem, seed, problem.arms)


@examples(15)
@given(problems(max_size=6, most_causes=3), st.integers(0, 99))
def test_factors_have_the_same_table_under_any_intervention(problem, seed):
    """On context and non-manipulable variables too, as in records of earlier versions."""
    rng, arms = np.random.default_rng(seed), []
    others = [name for name in problem.graph if name != problem.reward]
    for size in range(1, len(others) + 1):
        names = rng.choice(others, size, replace=False)
        arms.append({name: str(rng.choice(problem.domains[name])) for name in names})
    check_factors_under(problem, seed, arms)


def check_factors_under(problem, seed, arms):
    world = make_environment(problem, seed)
    factors = FactorLayout(problem)
    entries = true_entries(world, factors)
    order = order_of(problem)
    useful = Graph(problem, order).useful
    names = list(problem.graph)
    for arm in arms:
        _, joint = observed_distribution(problem, world.graph, world.cpts, arm, {})
        under = factors.under(problem.graph.mask(arm))
        for v in useful - {*arm}:
            after = [u for u in order[order.index(v) + 1 :] if u not in arm]
            marginal = joint.sum(axis=tuple(names.index(u) for u in after), keepdims=True)
            total = marginal.sum(axis=names.index(v), keepdims=True)
            f = under[names.index(v)]
            if f == NONE:
                assert arm not in problem.arms
                continue
            table = factors.table(entries, f)
            axes = factors.families[f]
            spread = np.moveaxis(table, range(table.ndim), np.argsort(np.argsort(axes)))
            shape = [joint.shape[u] if u in axes else 1 for u in range(len(names))]
            expected = np.broadcast_to(spread.reshape(shape), marginal.shape)
            is_possible = np.broadcast_to(total > 0, marginal.shape)
            shares = np.divide(marginal, total, where=is_possible, out=np.zeros_like(marginal))
            np.testing.assert_allclose(shares[is_possible], expected[is_possible], atol=1e-12)


def test_irrelevant_hidden_causes_change_nothing():
    plain = Problem(CausalGraph.parse("Z -> X -> Y -> W; X -> V"), "Y")
    hidden = Problem(CausalGraph.parse("Z -> X -> Y -> W; X -> V; W <-> Y; V <-> X"), "Y")
    expected, factors = FactorLayout(plain), FactorLayout(hidden)
    assert factors.is_plain
    assert factors.families == expected.families
    assert (factors.starts == expected.starts).all()
    assert (model_of(plain).circuit.tape == model_of(hidden).circuit.tape).all()


def test_interventions_share_factors_with_equal_components():
    """Two interventions share the factor of v if and only if they leave it the same component."""
    problem = Problem(CausalGraph.parse("Z -> X -> Y; X <-> Y!"), "Y", arms="all")
    factors = FactorLayout(problem)
    assert factors.names == ("X", "Y", "Y | X", "Z")
    mask = problem.graph.mask
    under = {names: factors.under(mask(names)).tolist() for names in ("X", "Z")}
    assert under == {"X": [-1, 1, 3], "Z": [0, 2, -1]}
    assert factors.under(0).tolist() == [0, 2, 3]


def test_factors_that_are_too_large_are_refused():
    names = [f"V{i}" for i in range(26)]
    chain = "; ".join(f"{a} <-> {b}!" for a, b in pairwise(names))
    arrows = "; ".join(f"{v} -> Y" for v in names)
    problem = Problem(CausalGraph.parse(f"{chain}; {arrows}; V25 <-> Y!"), "Y", arms=["do()"])
    with raises_code("too-large", "hidden causes join V0, V1"):
        FactorLayout(problem)
