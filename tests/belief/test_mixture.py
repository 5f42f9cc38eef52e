"""The mixture over doubtful edges, against one posterior for each set of edges."""

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
    CausalGraph.parse("C -> X; C ?-> Y; Z -> X -> Y; X <-> Y; Z <?> X; Z ?-> Y"), "Y", "C",
    domains={"X": range(3)}, arms=["do()", "do(X=0)", "do(X=1)", "do(Z=1)", "do(X=2, Z=0)"],
)  # fmt: skip
ARROWS = Problem(CausalGraph.parse("Z -> X -> Y; Z ?-> Y; W ?-> X; W ?-> Y"), "Y", arms="all")


def records_of(problem, count, seed=0, missing=0.0):
    """Records of a world in which all edges are there; some values may be missing."""
    world, rng = make_environment(problem, seed), np.random.default_rng(seed)
    found = []
    for _ in range(count):
        context = world.draw_context(rng)
        arm = problem.arms[rng.integers(len(problem.arms))]
        seen = world.play(arm, context, rng)
        kept = {v: x for v, x in seen.items() if v in problem.context or rng.random() >= missing}
        found.append(problem.record(arm, kept))
    return found


def learned(problem, records, prior=1.0):
    posterior = Posterior(problem, prior)
    for record in records:
        posterior.learn(record)
    return posterior


def contexts_of(problem):
    names = problem.context
    for labels in product(*(problem.domains[name] for name in names)):
        yield dict(zip(names, labels, strict=True))


def assert_same_as_twin(problem, records, prior):
    posterior, twin = learned(problem, records, prior), SlowMixture(problem, prior)
    for record in records:
        twin.learn(record)
    expected = twin.edges()
    assert Belief(problem, posterior=posterior).edges() == pytest.approx(expected, abs=1e-8)
    for context in contexts_of(problem):
        found = posterior.mean_distributions(problem.context_codes(context))
        np.testing.assert_allclose(found, twin.mean_distributions(context), atol=1e-8)


@pytest.mark.parametrize("problem", [JOINED, ARROWS], ids=["joined", "arrows"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_one_circuit_for_all_sets_of_edges_is_one_posterior_for_each(problem, missing):
    assert_same_as_twin(problem, records_of(problem, 60, missing=missing), 0.7)


@st.composite
def doubtful_problems(draw):
    """Up to five variables, at most five doubtful edges of both kinds, some hidden causes sure."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    names = [f"V{i}" for i in rng.permutation(int(rng.integers(3, 6)))]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    text, doubtful = [*names], 0
    for a, b in pairs:
        coin = rng.random()
        sure = doubtful == 5 or coin < 0.4
        if coin < 0.7:
            text.append(f"{a} {'->' if sure else '?->'} {b}")
            doubtful += not sure
        if rng.random() < 0.35:
            sure = doubtful == 5 or rng.random() < 0.3
            text.append(f"{a} <-> {b}!" if sure else f"{a} {rng.choice(['<?>', '<->'])} {b}")
            doubtful += not sure
    graph = CausalGraph.parse("; ".join(text))
    reward = names[-1]
    context = graph.ancestors(names[0]) if rng.random() < 0.4 else ()
    domains = {v: range(3) for v in names if rng.random() < 0.2}
    rest = [v for v in names if v not in context and v != reward]
    arms = {"do()"} | {f"do({v}=1)" for v in rest if rng.random() < 0.7}
    arms |= {f"do({a}=0, {b}=1)" for a, b in pairwise(rest)}
    return Problem(graph, reward, context, domains=domains, arms=sorted(arms))


@examples(20)
@given(doubtful_problems(), st.integers(0, 99))
def test_on_random_graphs(problem, seed):
    assert_same_as_twin(problem, records_of(problem, 25, seed, missing=0.1), 1.0)


@pytest.mark.parametrize("prior", [1.0, 0.3])
def test_draws_have_the_mean_of_the_mixture(prior):
    """In both precisions; five standard errors for 30 figures: false alarms 1 in 50,000."""
    posterior = learned(JOINED, records_of(JOINED, 12), prior)
    for codes in ((0,), (1,)):
        drawn = posterior.draw(codes, 40_000, rng=3).distributions()
        assert drawn.dtype == (np.float32 if prior == 1.0 else np.float64)
        error = drawn.std(axis=2) / np.sqrt(drawn.shape[2])
        assert (
            np.abs(drawn.mean(axis=2) - posterior.mean_distributions(codes)) < 5 * error + 1e-6
        ).all()


def test_the_spread_of_draws_is_that_of_each_set_of_edges_in_turn():
    """The share of draws below any value is the average over sets of edges; 4 s.e. of 20 shares."""
    problem = Problem(CausalGraph.parse("X -> Y; X <-> Y"), "Y")
    records = records_of(problem, 20)
    posterior = learned(problem, records)
    weight = posterior.edges()["X <-> Y"]
    assert 0.1 < weight < 0.99
    samples, drawn = 100_000, posterior.draw((), 100_000, rng=1).distributions()[:, 1]
    parts = []
    for text, share in (("X -> Y; X <-> Y!", weight), ("X -> Y", 1 - weight)):
        own = Problem(CausalGraph.parse(text), "Y", arms=problem.arms)
        alone = Posterior(own)
        for record in records:
            alone.learn(own.record(record.arm, record.labels))
        parts.append((share, alone.draw((), samples, rng=2).distributions()[:, 1]))
    for arm in range(len(problem.arms)):
        for level in np.quantile(drawn[arm], [0.1, 0.3, 0.5, 0.7, 0.9]):
            expected = sum(share * (part[arm] < level).mean() for share, part in parts)
            assert abs((drawn[arm] < level).mean() - expected) < 4 * np.sqrt(0.5 / samples)


def test_equal_seeds_give_one_world_in_every_context():
    """Y hangs on the context only if the doubtful arrow is there: elsewhere draws are equal."""
    problem = Problem(CausalGraph.parse("C; X -> Y; C ?-> Y"), "Y", "C")
    posterior = learned(problem, records_of(problem, 5))
    one, other = (posterior.draw((c,), 1000, rng=7).others for c in (0, 1))
    same = (one == other).all(axis=(0, 1))
    chance = 1 - posterior.edges()["C -> Y"]
    assert abs(same.mean() - chance) < 4 * np.sqrt(0.25 / 1000)  # 1 in 15,000


def test_any_order_is_the_same_to_the_last_bit():
    records = records_of(JOINED, 80, missing=0.2)
    posterior = learned(JOINED, records, 0.3)
    backwards = learned(JOINED, records[::-1], 0.3)
    for twin in (backwards, _after_a_detour(records)):
        assert (twin.evidence == posterior.evidence).all()
        assert (twin.counts == posterior.counts).all()
        assert (twin.unused == posterior.unused).all()
    assert (backwards.draw((0,), 50, 0).others == posterior.draw((0,), 50, 0).others).all()


def _after_a_detour(records):
    posterior = learned(JOINED, [*records[:40], *records], 0.3)
    for record in records[:40]:
        posterior.retract(record)
    return posterior


def test_many_at_once_are_the_same():
    records = records_of(JOINED, 50)
    frame = {v: [r.labels.get(v) for r in records] for v in JOINED.graph}
    frame["arm"] = [str(r.arm) for r in records]
    belief = Belief(JOINED)
    assert belief.update_many(frame) == 50
    posterior = learned(JOINED, records)
    assert (belief.posterior.counts == posterior.counts).all()
    assert (belief.posterior.evidence == posterior.evidence).all()


def test_what_was_not_learned_cannot_be_retracted():
    records = records_of(JOINED, 5)
    posterior = learned(JOINED, records)
    before = json.dumps(posterior.as_dict()), posterior.evidence.copy()
    strange = JOINED.record("do(Z=1)", {"C": 1, "X": 2, "Y": 0})
    for record in (strange, JOINED.record("do()", {"C": 1})):
        with raises_code("not-learned"):
            posterior.retract(record)
    assert json.dumps(posterior.as_dict()) == before[0]
    assert (posterior.evidence == before[1]).all()


def test_saved_and_read_back(tmp_path):
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
    text = (tmp_path / "belief.json").read_text()
    page = json.loads(text)
    row = page["tables"]["Y"][0]["counts"]
    while isinstance(row[0], list):
        row = row[0]
    row[0] = -1
    (tmp_path / "belief.json").write_text(json.dumps(page))
    with raises_code("damaged-file", "whole numbers"):
        Belief.load(tmp_path / "belief.json", JOINED)


def test_a_record_of_an_intervention_that_is_no_arm():
    """It counts where some arm has the same factor, and is told where none has."""
    problem = Problem(CausalGraph.parse("Z -> X -> Y; X <-> Y; Z <-> Y"), "Y", arms=["do()"])
    belief = Belief(problem)
    belief.update("do(Z=1)", {"X": 1, "Y": 0})
    assert belief.unused == {"Y": {"no arm needs what it tells": 1}}
    assert belief.mean_cpts()["X"][1].tolist() == [pytest.approx(1 / 3), pytest.approx(2 / 3)]


def odd_records_of(problem, count, seed):
    """After something was set that need not be an arm, nor on variables that can be set."""
    rng, found = np.random.default_rng(seed), []
    for record in records_of(problem, count, seed, missing=0.1):
        names = [name for name in problem.graph if name != problem.reward and rng.random() < 0.4]
        settings = {name: str(rng.choice(problem.domains[name])) for name in names}
        found.append(past_record(problem, settings, record.labels | settings))
    return found


@examples(15)
@given(doubtful_problems(), st.integers(0, 99))
def test_what_was_set_may_be_anything_but_the_reward(problem, seed):
    """Each factor counts under what was set, if some arm leaves it the same component."""
    records = odd_records_of(problem, 25, seed)
    assert_same_as_twin(problem, records, 1.0)
    one, many = Posterior(problem), Posterior(problem)
    codes = np.array([record.codes for record in records]).T.copy()
    was_set = np.array([record.fixed for record in records]).T != MISSING
    many.learn_many(RecordBatch(problem, codes, was_set))
    for record in records:
        one.learn(record)
    for name in ("counts", "evidence", "unused"):
        np.testing.assert_array_equal(getattr(one, name), getattr(many, name))
    for record in records:
        one.retract(record)
    assert not one.counts.any() and not one.evidence.any() and not one.unused.any()


def test_edges_that_make_no_difference_keep_their_prior():
    problem = Problem(CausalGraph.parse("X -> Y -> W; W <-> Y; X <-> W"), "Y", edge_prior=0.7)
    belief = Belief(problem)
    assert belief.posterior.is_settled
    belief.update("do(X=1)", {"Y": 1, "W": 0})
    assert belief.edges() == {"W <-> X": 0.7, "W <-> Y": 0.7}


def test_an_edge_that_is_not_there_is_found_out():
    """Ten thousand records leave no doubt."""
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


def test_beyond_the_cap_the_likeliest_sets_serve_with_a_word():
    names = [f"X{i}" for i in range(9)]
    text = "; ".join(f"{v} -> Y; {v} <-> Y" for v in names)
    problem = Problem(CausalGraph.parse(text), "Y", arms=["do()", "do(X0=1)"])
    with pytest.warns(UserWarning, match=r"512 sets of doubtful edges.*128 likeliest.*probability"):
        belief = Belief(problem)
    assert len(belief.posterior.weights().patterns) == MAX_PATTERNS
    assert belief.posterior.weights().patterns.sum() == pytest.approx(1)
    assert 0.9 < min(belief.edges().values()) < 1


def test_the_likeliest_subsets_are_the_likeliest():
    rng = np.random.default_rng(0)
    chances = {i: float(p) for i, p in enumerate(rng.random(8))}
    every = likeliest_subsets(chances, 10**6)
    assert len({s for s, _ in every}) == 256
    assert sum(p for _, p in every) == pytest.approx(1)
    assert every[0][1] == max(p for _, p in every)
    assert likeliest_subsets(chances, 7) == every[:7]
    assert likeliest_subsets({}, 3) == [(frozenset(), 1.0)]
    sure = {i: p if abs(p - 0.5) > 0.25 else 0.9 for i, p in chances.items()}
    found = [p for _, p in likeliest_subsets(sure, 10**6)]
    assert found == pytest.approx(sorted(found, reverse=True))  # by their odds alone


def test_weights_of_some_subsets_keep_every_margin():
    chances = {0: 0.1, 1: 0.5, 2: 0.5, 3: 0.9, 4: 0.3, 5: 0.5, 6: 0.05}
    subsets = likeliest_subsets(chances, 40)
    weights = np.array(fit_weights(subsets, chances))
    assert weights.min() > 0 and weights.sum() == pytest.approx(1)
    for thing, chance in chances.items():
        there = np.array([thing in subset for subset, _ in subsets])
        assert weights[there].sum() == pytest.approx(chance)
    every = likeliest_subsets(chances, 10**6)
    assert fit_weights(every, chances) == pytest.approx([p for _, p in every])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:there are .* sets of doubtful edges")
def test_means_of_too_many_sets_come_from_draws():
    """Ten doubtful edges that join eight variables; the mean is within what 4096 draws allow: 5
    standard errors, 1 in 1,700,000 for each of four."""
    pairs = [f"A{i} -> B{i} -> Y; A{i} <-> B{i}" for i in range(4)]
    more = "A0 ?-> B1; A1 ?-> B2; A2 ?-> B3; A0 ?-> B3; A0 <?> B1; A1 <?> B2; A2 <?> B3; A0 <?> B3"
    graph = CausalGraph.parse("; ".join([*pairs, more, "A0 <?> A1; A1 <?> A2"]))
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
            "Y", arms=["do()", "do(X=1)"], edge_prior={"A0 -> Y": 0.2, "A3 -> Y": 0.7},
        ),
        Problem(CausalGraph.parse("A -> B -> C -> D -> E -> Y"), "Y", soft=0.1),
        JOINED,
    ],
    ids=["context", "coins", "joined", "soft", "few"],
)  # fmt: skip
def test_before_any_data_every_edge_has_its_prior(problem):
    """Also where sets of edges were left out, and where an arrow tells nothing by itself."""
    assert Belief(problem).edges() == pytest.approx(dict(problem.edge_priors), abs=1e-6)


@pytest.mark.filterwarnings("ignore:there are .* sets of doubtful edges")
@pytest.mark.parametrize("true", ["A0", "A10"])
def test_which_sets_are_left_out_does_not_hang_on_names(true):
    """Of eleven doubtful arrows only one is there: 3000 records leave no doubt which."""
    text = "; ".join(f"A{i} ?-> Y" for i in range(11))
    problem = Problem(CausalGraph.parse(text), "Y", arms=["do()", "do(A0=1)"])
    rng = np.random.default_rng(0)
    table = {f"A{i}": rng.integers(0, 2, 3000) for i in range(11)}
    belief = Belief(problem)
    belief.update_many(table | {"Y": table[true]})
    edges = belief.edges()
    assert edges.pop(f"{true} -> Y") > 0.99
    assert max(edges.values()) < 0.05


def test_what_nothing_reads_does_not_blur_exact_means():
    unread = "; ".join(
        f"A{i} <-> B{i}; A{i} <?> D{i}; B{i} <?> D{i}; A{i} -> X; B{i} -> X; D{i} -> X"
        for i in range(4)
    )
    core, means = "X -> Y; W -> V -> Y; W ?-> Y; W <?> V; V <?> Y", []
    for text in (core, f"{unread}; {core}"):
        problem = Problem(CausalGraph.parse(text), "Y", arms=["do(X=0)", "do(X=1)"])
        belief = Belief(problem)
        for i in range(12):
            seen = dict.fromkeys((v for v in problem.graph if v != "X"), i % 2)
            belief.update(f"do(X={i % 3 % 2})", seen)
        means.append(belief.mean_rewards())
    np.testing.assert_allclose(*means, atol=1e-12)
