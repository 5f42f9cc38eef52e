"""Posterior over doubtful edges, against a twin with one posterior per set of edges."""

import json
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.errors import raises_code
from support.hidden_twin import SlowMixture
from support.strategies import examples

from dowise import Belief, CausalGraph, Problem, make_environment
from dowise.belief import Posterior
from dowise.belief.edge_weights import MAX_LANES
from dowise.model.edge_structures import MAX_PATTERNS, fit_weights, likeliest_subsets
from dowise.problem.domains import MISSING
from dowise.problem.record import RecordBatch, past_record

# A component of three with two doubtful hidden causes, doubtful arrows into it, and a context.
JOINED = Problem(
    CausalGraph.parse("C -> X; C ?-> Y; Z -> X -> Y; X <-> Y; Z <?> X; Z ?-> Y"),
    "Y",
    "C",
    domains={"X": range(3)},
    arms=["do()", "do(X=0)", "do(X=1)", "do(Z=1)", "do(X=2, Z=0)"],
)
ARROWS = Problem(CausalGraph.parse("Z -> X -> Y; Z ?-> Y; W ?-> X; W ?-> Y"), "Y", arms="all")


def records_of(problem, count, seed=0, missing=0.0):
    """Draw records of a world in which all edges exist; some values may be missing."""
    world, rng = make_environment(problem, seed), np.random.default_rng(seed)
    records = []
    for _ in range(count):
        context = world.draw_context(rng)
        arm = problem.arms[rng.integers(len(problem.arms))]
        outcome = world.play(arm, context, rng).items()
        observed = {v: x for v, x in outcome if v in problem.context or rng.random() >= missing}
        records.append(problem.record(arm, observed))
    return records


def learned(problem, records, prior=1.0):
    posterior = Posterior(problem, prior)
    for record in records:
        posterior.learn(record)
    return posterior


def contexts_of(problem):
    names = problem.context
    for labels in product(*(problem.domains[name] for name in names)):
        yield dict(zip(names, labels, strict=True))


def assert_equals_twin(problem, records, prior):
    posterior, twin = learned(problem, records, prior), SlowMixture(problem, prior)
    for record in records:
        twin.learn(record)
    expected = twin.edges()
    assert Belief(problem, posterior=posterior).edges() == pytest.approx(expected, abs=1e-8)
    for context in contexts_of(problem):
        means = posterior.mean_distributions(problem.context_codes(context))
        np.testing.assert_allclose(means, twin.mean_distributions(context), atol=1e-8)


@pytest.mark.parametrize("problem", [JOINED, ARROWS], ids=["joined", "arrows"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_posterior_equals_its_twin(problem, missing):
    assert_equals_twin(problem, records_of(problem, 60, missing=missing), 0.7)


@st.composite
def doubtful_problems(draw):
    """Draw a problem of up to five variables, at most five doubtful edges and hidden causes."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    names = [f"V{i}" for i in rng.permutation(int(rng.integers(3, 6)))]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    text, doubtful = [*names], 0
    for a, b in pairs:
        coin = rng.random()
        certain = doubtful == 5 or coin < 0.4
        if coin < 0.7:
            text.append(f"{a} {'->' if certain else '?->'} {b}")
            doubtful += not certain
        if rng.random() < 0.35:
            certain = doubtful == 5 or rng.random() < 0.3
            text.append(f"{a} <-> {b}!" if certain else f"{a} {rng.choice(['<?>', '<->'])} {b}")
            doubtful += not certain
    graph = CausalGraph.parse("; ".join(text))
    reward = names[-1]
    context = graph.ancestors(names[0]) if rng.random() < 0.4 else ()
    domains = {v: range(3) for v in names if rng.random() < 0.2}
    free = [v for v in names if v not in context and v != reward]
    arms = {"do()"} | {f"do({v}=1)" for v in free if rng.random() < 0.7}
    arms |= {f"do({a}=0, {b}=1)" for a, b in pairwise(free)}
    return Problem(graph, reward, context, domains=domains, arms=sorted(arms))


@examples(20)
@given(doubtful_problems(), st.integers(0, 99))
def test_posterior_equals_its_twin_on_random_graphs(problem, seed):
    assert_equals_twin(problem, records_of(problem, 25, seed, missing=0.1), 1.0)


@pytest.mark.parametrize("prior", [1.0, 0.3])
def test_draws_agree_with_the_mean(prior):
    """Also with small parameters; 30 z-values below 5: a false alarm in 1 of 50,000 cases."""
    posterior = learned(JOINED, records_of(JOINED, 12), prior)
    for codes in ((0,), (1,)):
        drawn = posterior.draw(codes, 40_000, rng=3).distributions()
        assert drawn.dtype == np.float32
        error = drawn.std(axis=2) / np.sqrt(drawn.shape[2])
        assert (
            np.abs(drawn.mean(axis=2) - posterior.mean_distributions(codes)) < 5 * error + 1e-6
        ).all()


def test_the_distribution_of_draws_is_a_mixture_over_edge_sets():
    """The share of draws below a value is the average over sets of edges; 20 z-values below 4."""
    problem = Problem(CausalGraph.parse("X -> Y; X <-> Y"), "Y")
    records = records_of(problem, 20)
    posterior = learned(problem, records)
    weight = posterior.edges()["X <-> Y"]
    assert 0.1 < weight < 0.99
    samples, drawn = 100_000, posterior.draw((), 100_000, rng=1).distributions()[:, 1]
    parts = []
    for text, share in (("X -> Y; X <-> Y!", weight), ("X -> Y", 1 - weight)):
        part = Problem(CausalGraph.parse(text), "Y", arms=problem.arms)
        of_part = learned(part, [part.record(record.arm, record.labels) for record in records])
        parts.append((share, of_part.draw((), samples, rng=2).distributions()[:, 1]))
    for arm in range(len(problem.arms)):
        for level in np.quantile(drawn[arm], [0.1, 0.3, 0.5, 0.7, 0.9]):
            expected = sum(share * (part[arm] < level).mean() for share, part in parts)
            assert abs((drawn[arm] < level).mean() - expected) < 4 * np.sqrt(0.5 / samples)


def test_equal_seeds_give_one_world_in_every_context():
    """Draws of Y differ between contexts only where the doubtful arrow exists."""
    problem = Problem(CausalGraph.parse("C; X -> Y; C ?-> Y"), "Y", "C")
    posterior = learned(problem, records_of(problem, 5))
    first, second = (posterior.draw((c,), 1000, rng=7).after_first for c in (0, 1))
    same = (first == second).all(axis=(0, 1))
    chance = 1 - posterior.edges()["C -> Y"]
    assert abs(same.mean() - chance) < 4 * np.sqrt(0.25 / 1000)  # 1 in 15,000


def test_order_and_retractions_change_no_bit():
    records = records_of(JOINED, 80, missing=0.2)
    posterior, backwards = learned(JOINED, records, 0.3), learned(JOINED, records[::-1], 0.3)
    retracted = learned(JOINED, [*records[:40], *records], 0.3)
    for record in records[:40]:
        retracted.retract(record)
    for other in (backwards, retracted):
        for name in ("evidence", "counts", "unused"):
            np.testing.assert_array_equal(getattr(other, name), getattr(posterior, name))
    assert (
        backwards.draw((0,), 50, 0).after_first == posterior.draw((0,), 50, 0).after_first
    ).all()


def test_learning_many_equals_learning_one_by_one():
    records = records_of(JOINED, 50)
    frame = {v: [r.labels.get(v) for r in records] for v in JOINED.graph}
    frame["arm"] = [str(r.arm) for r in records]
    belief = Belief(JOINED)
    assert belief.update_many(frame) == 50
    posterior = learned(JOINED, records)
    assert (belief.posterior.counts == posterior.counts).all()
    assert (belief.posterior.evidence == posterior.evidence).all()


def test_retracting_an_unknown_record_changes_nothing():
    records = records_of(JOINED, 5)
    posterior = learned(JOINED, records)
    before = json.dumps(posterior.as_dict()), posterior.evidence.copy()
    unknown = JOINED.record("do(Z=1)", {"C": 1, "X": 2, "Y": 0})
    for record in (unknown, JOINED.record("do()", {"C": 1})):
        with raises_code("not-learned"):
            posterior.retract(record)
    assert json.dumps(posterior.as_dict()) == before[0]
    assert (posterior.evidence == before[1]).all()


def test_saving_and_loading_is_exact(tmp_path):
    belief = Belief(JOINED, 0.3)
    for record in records_of(JOINED, 40, missing=0.2):
        belief.learn(record)
    belief.save(tmp_path / "belief.json")
    again = Belief.load(tmp_path / "belief.json", JOINED)
    for name in ("prior", "counts", "evidence", "unused"):
        assert (getattr(again.posterior, name) == getattr(belief.posterior, name)).all()
    assert again.edges() == belief.edges()
    assert again.unused == belief.unused
    other = Problem(
        JOINED.graph, "Y", "C", domains=JOINED.domains, arms=JOINED.arms, edge_prior=0.4
    )
    with raises_code("wrong-problem", "learn the records again"):
        Belief.load(tmp_path / "belief.json", other)
    data = belief.as_dict()
    data["tables"]["Z"][0]["counts"][0] = -1
    (tmp_path / "belief.json").write_text(json.dumps(data))
    with raises_code("damaged-file", "whole numbers"):
        Belief.load(tmp_path / "belief.json", JOINED)


@pytest.mark.parametrize(
    ("text", "settable", "soft"),
    [("Z -> X -> Y; X <-> Y", "X", None), ("Health -> Y; Treatment -> Y", "Treatment", 0.1)],
)
def test_beliefs_of_earlier_versions_load_with_their_rules(tmp_path, text, settable, soft):
    """Those rules had fewer tables, or other soft edges."""
    options = {"manipulable": settable, "soft": soft}
    new, old = (Problem(text, "Y", **options, edge_rules=rules) for rules in (2, 1))
    belief = Belief(old)
    belief.update({}, dict.fromkeys(old.domains, 1))
    belief.save(tmp_path / "belief.json")
    with raises_code("wrong-problem", "edge_rules=1"):
        Belief.load(tmp_path / "belief.json", new)
    assert Belief.load(tmp_path / "belief.json", old).edges() == belief.edges()


def test_records_of_other_interventions_count_where_an_arm_has_the_factor():
    problem = Problem(CausalGraph.parse("Z -> X -> Y; X <-> Y; Z <-> Y"), "Y", arms=["do()"])
    belief = Belief(problem)
    belief.update("do(Z=1)", {"X": 1, "Y": 0})
    assert belief.unused == {"Y": {"no arm needs what it tells": 1}}
    assert belief.mean_cpts()["X"][1].tolist() == [pytest.approx(1 / 3), pytest.approx(2 / 3)]


def past_records_of(problem, count, seed):
    """Draw records of interventions that need not be arms, nor on manipulable variables."""
    rng, records = np.random.default_rng(seed), []
    for record in records_of(problem, count, seed, missing=0.1):
        names = [name for name in problem.graph if name != problem.reward and rng.random() < 0.4]
        settings = {name: str(rng.choice(problem.domains[name])) for name in names}
        records.append(past_record(problem, settings, record.labels | settings))
    return records


@examples(15)
@given(doubtful_problems(), st.integers(0, 99))
def test_records_of_any_intervention_equal_the_twin(problem, seed):
    records = past_records_of(problem, 25, seed)
    assert_equals_twin(problem, records, 1.0)
    many = Posterior(problem)
    codes = np.array([record.codes for record in records]).T.copy()
    was_set = np.array([record.fixed for record in records]).T != MISSING
    many.learn_many(RecordBatch(problem, codes, was_set))
    single = learned(problem, records)
    for name in ("counts", "evidence", "unused"):
        np.testing.assert_array_equal(getattr(single, name), getattr(many, name))
    for record in records:
        single.retract(record)
    assert not single.counts.any() and not single.evidence.any() and not single.unused.any()


def test_irrelevant_edges_keep_their_prior():
    problem = Problem(CausalGraph.parse("X -> Y -> W; W <-> Y; X <-> W"), "Y", edge_prior=0.7)
    belief = Belief(problem)
    assert belief.posterior.is_settled
    belief.update("do(X=1)", {"Y": 1, "W": 0})
    assert belief.edges() == {"W <-> X": 0.7, "W <-> Y": 0.7}


def test_ten_thousand_records_settle_all_edges():
    problem = Problem(CausalGraph.parse("X -> Y; X <-> Y; Z ?-> Y; W ?-> Y"), "Y", arms="all")
    truth = Problem(CausalGraph.parse("X -> Y; W -> Y; Z"), "Y", arms="all")
    world, rng, belief = make_environment(truth, 4), np.random.default_rng(0), Belief(problem)
    for _ in range(10_000):
        arm = truth.arms[rng.integers(len(truth.arms))]
        belief.update(arm, world.play(arm, None, rng))
    edges = belief.edges()
    assert edges["W -> Y"] > 0.999
    assert max(edges["Z -> Y"], edges["X <-> Y"]) < 0.1
    assert np.abs(belief.mean_rewards() - world.means()).max() < 0.03


def test_too_many_edge_sets_are_cut_with_a_warning():
    names = [f"X{i}" for i in range(9)]
    text = "; ".join(f"{v} -> Y; {v} <-> Y" for v in names)
    problem = Problem(CausalGraph.parse(text), "Y", arms=["do()", "do(X0=1)"])
    with pytest.warns(UserWarning, match=r"512 sets of doubtful edges.*128 likeliest.*probability"):
        belief = Belief(problem)
    assert len(belief.posterior.weights().patterns) == MAX_PATTERNS
    assert belief.posterior.weights().patterns.sum() == pytest.approx(1)
    assert 0.9 < min(belief.edges().values()) < 1


def test_likeliest_subsets_are_in_descending_order():
    rng = np.random.default_rng(0)
    chances = {i: float(p) for i, p in enumerate(rng.random(8))}
    subsets = likeliest_subsets(chances, 10**6)
    assert len({s for s, _ in subsets}) == 256
    assert sum(p for _, p in subsets) == pytest.approx(1)
    assert subsets[0][1] == max(p for _, p in subsets)
    assert likeliest_subsets(chances, 7) == subsets[:7]
    assert likeliest_subsets({}, 3) == [(frozenset(), 1.0)]
    extreme = {i: p if abs(p - 0.5) > 0.25 else 0.9 for i, p in chances.items()}
    ranked = [p for _, p in likeliest_subsets(extreme, 10**6)]
    assert ranked == pytest.approx(sorted(ranked, reverse=True))


def test_fitted_weights_of_some_subsets_keep_every_margin():
    chances = {0: 0.1, 1: 0.5, 2: 0.5, 3: 0.9, 4: 0.3, 5: 0.5, 6: 0.05}
    subsets = likeliest_subsets(chances, 40)
    weights = np.array(fit_weights(subsets, chances))
    assert weights.min() > 0 and weights.sum() == pytest.approx(1)
    for element, chance in chances.items():
        is_member = np.array([element in subset for subset, _ in subsets])
        assert weights[is_member].sum() == pytest.approx(chance)
    subsets = likeliest_subsets(chances, 10**6)
    assert fit_weights(subsets, chances) == pytest.approx([p for _, p in subsets])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:there are .* sets of doubtful edges")
def test_means_over_too_many_sets_are_sampled():
    """Ten doubtful edges join eight variables; each of four means is within 5 standard errors of
    4096 samples, a false alarm in 1 of 1,700,000 cases."""
    pairs = [f"A{i} -> B{i} -> Y; A{i} <-> B{i}" for i in range(4)]
    doubtful = (
        "A0 ?-> B1; A1 ?-> B2; A2 ?-> B3; A0 ?-> B3; A0 <?> B1; A1 <?> B2; A2 <?> B3; A0 <?> B3"
    )
    graph = CausalGraph.parse("; ".join([*pairs, doubtful, "A0 <?> A1; A1 <?> A2"]))
    problem = Problem(graph, "Y", arms=["do()", "do(B0=1)"])
    posterior = learned(problem, records_of(problem, 50))
    assert not posterior.has_exact_means
    mean = posterior.mean_distributions(())
    drawn = posterior.draw((), 50_000, 0).distributions()
    error = drawn.std(axis=2) * (50_000**-0.5 + (4 * MAX_LANES) ** -0.5)
    assert (np.abs(drawn.mean(axis=2) - mean) < 5 * error).all()


@pytest.mark.filterwarnings("ignore:there are .* sets of doubtful edges")
@pytest.mark.parametrize(
    "problem",
    [
        Problem(CausalGraph.parse("C1 ?-> C; C <-> Y; X -> Y"), "Y", ("C1", "C")),
        Problem(CausalGraph.parse("; ".join(f"A{i} ?-> Y" for i in range(11))), "Y", arms=["do()"]),
        Problem(
            CausalGraph.parse("X -> Y; X <-> Y; " + "; ".join(f"A{i} ?-> Y" for i in range(9))),
            "Y",
            arms=["do()", "do(X=1)"],
            edge_prior={"A0 -> Y": 0.2, "A3 -> Y": 0.7},
        ),
        Problem(CausalGraph.parse("A -> B -> C -> D -> E -> Y"), "Y", soft=0.1),
        JOINED,
    ],
    ids=["context", "coins", "joined", "soft", "few"],
)
def test_without_records_every_edge_has_its_prior(problem):
    assert Belief(problem).edges() == pytest.approx(dict(problem.edge_priors), abs=1e-6)


@pytest.mark.filterwarnings("ignore:there are .* sets of doubtful edges")
@pytest.mark.parametrize("true", ["A0", "A10"])
def test_cutting_edge_sets_does_not_depend_on_names(true):
    """Of eleven doubtful arrows one exists, and 3000 records identify it."""
    text = "; ".join(f"A{i} ?-> Y" for i in range(11))
    problem = Problem(CausalGraph.parse(text), "Y", arms=["do()", "do(A0=1)"])
    rng = np.random.default_rng(0)
    table = {f"A{i}": rng.integers(0, 2, 3000) for i in range(11)}
    belief = Belief(problem)
    belief.update_many(table | {"Y": table[true]})
    edges = belief.edges()
    assert edges.pop(f"{true} -> Y") > 0.99
    assert max(edges.values()) < 0.05


def test_irrelevant_edges_keep_means_exact():
    unread = "; ".join(
        f"A{i} <-> B{i}; A{i} <?> D{i}; B{i} <?> D{i}; A{i} -> X; B{i} -> X; D{i} -> X"
        for i in range(4)
    )
    core, means = "X -> Y; W -> V -> Y; W ?-> Y; W <?> V; V <?> Y", []
    for text in (core, f"{unread}; {core}"):
        problem = Problem(CausalGraph.parse(text), "Y", arms=["do(X=0)", "do(X=1)"])
        belief = Belief(problem)
        for i in range(12):
            outcome = dict.fromkeys((v for v in problem.graph if v != "X"), i % 2)
            belief.update(f"do(X={i % 3 % 2})", outcome)
        means.append(belief.mean_rewards())
    np.testing.assert_allclose(*means, atol=1e-12)
