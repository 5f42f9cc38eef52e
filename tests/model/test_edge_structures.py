"""Wide and narrow tables of the districts that doubtful hidden causes hold together."""

from itertools import groupby
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.strategies import cases, examples

from dowise import Belief, Problem
from dowise.model.edge_structures import MAX_JOINED, Structures
from dowise.model.model import model_of


def structures_of(text, reward="Y", **options):
    return model_of(Problem(text, reward, **options)).structures


def joined(structures):
    """Yield the districts of several variables."""
    for component in structures.components:
        for _, districts in component.patterns:
            yield from (d for d in districts if len(d.alternatives[0][1]) > 1)


def families(versions, structures):
    return {
        (structures.factors.variables[version.variable], component): {
            structures.factors.variables[v] for v in family
        }
        for version in versions
        for component, family in version.tables
    }


def test_narrow_tables_leave_out_the_parents_of_joined_variables():
    structures = structures_of("Z -> X -> Y; W -> Y; X <-> Y", arms=["do()", "do(X=1)"])
    (district,) = joined(structures)
    wide, narrow = (families(versions, structures) for _, versions in district.alternatives)
    x, y = (structures.factors.positions[name] for name in "XY")
    assert wide["Y", 1 << x | 1 << y] == {"W", "X", "Y", "Z"}
    assert narrow["Y", 1 << x | 1 << y] == {"W", "X", "Y"}
    assert wide["Y", 1 << y] == narrow["Y", 1 << y] == {"W", "X", "Y"}  # X is set
    assert district.priors == (0.5, 0.5)


def test_equal_tables_come_once():
    (district,) = joined(structures_of("X -> Y; X <-> Y"))
    assert len(district.alternatives) == 1 and district.priors == (1.0,)


def test_parents_of_variables_joined_for_certain_stay():
    structures = structures_of("Z -> X -> Y; V -> W -> Y; X <-> Y!; W <-> Y", arms="all")
    district = next(d for d in joined(structures) if len(d.alternatives[0][1]) == 3)
    _, narrow = (families(versions, structures) for _, versions in district.alternatives)
    widest = max((family for (name, _), family in narrow.items() if name == "Y"), key=len)
    assert widest == {"W", "X", "Y", "Z"}


@examples(60)
@given(cases(max_size=5, marked=True))
def test_narrow_tables_are_part_of_the_wide_ones(case):
    """Each alternative has its wide tables, and perhaps narrow ones, with half of its prior."""
    graph, reward, context, fixed = case
    problem = Problem(graph, reward, context, fixed, soft=0.1)
    factors = model_of(problem).factors
    structures = Structures(factors, problem.edge_priors)
    wide_only = Structures(factors, problem.edge_priors, has_narrow=False)
    assert structures.relevant == wide_only.relevant
    for key, district in structures._districts.items():
        choices = [*zip(district.alternatives, district.priors, strict=True)]
        both = [[*group] for _, group in groupby(choices, key=lambda choice: choice[0][0])]
        alone = wide_only._districts[key]
        expected = zip(alone.alternatives, alone.priors, strict=True)
        for versions, ((arrows, wide), prior) in zip(both, expected, strict=False):
            assert versions[0][0] == (arrows, wide)
            if len(both) == len(alone.alternatives):
                assert [weight for _, weight in versions] == [prior / len(versions)] * len(versions)
            for (_, narrow), _ in versions[1:]:
                assert len(versions) == 2 and narrow != wide
                for few, many in zip(narrow, wide, strict=True):
                    assert few.variable == many.variable
                    for (component, small), (same, large) in zip(
                        few.tables, many.tables, strict=True
                    ):
                        assert component == same and set(small) <= set(large)


def test_wide_and_narrow_tables_together_are_limited():
    """Half as many sets of arrows fit, and what is cut is reported."""
    doubtful = "; ".join(f"A{i} ?-> {v}" for i in range(3) for v in "XY")
    structures = structures_of(f"X -> Y; X <-> Y; {doubtful}", arms=["do()", "do(X=1)"])
    district = next(joined(structures))
    sets = {arrows for arrows, _ in district.alternatives}
    assert len(district.alternatives) in (MAX_JOINED - 1, MAX_JOINED)
    assert structures.cut["X, Y"] == (64, len(sets)) and len(sets) < 64
    assert district.kept == pytest.approx(len(sets) / 64)
    assert structures.kept < 1
    assert structures_of("X -> Y; X <-> Y; A ?-> X; A ?-> Y", arms="all").kept == 1


def records_without_intervention(rng, count):
    """Draw values of Z (three labels), X and Y, at random rates."""
    z = rng.integers(3, size=count)
    x = (rng.random(count) < rng.random(3)[z]).astype(int)
    y = (rng.random(count) < rng.random((3, 2))[z, x]).astype(int)
    return {"Z": z, "X": x, "Y": y}


@examples(30)
@given(st.integers(0, 2**32 - 1), st.floats(0.05, 0.95), st.integers(0, 300))
def test_do_records_lower_the_odds_by_a_factor_of_two_at_most(seed, prior, count):
    """The narrow table equals the table without the edge, so the Bayes factor is (1 + R)/2, R being
    that of the wide table."""
    options = {"arms": ["do()", "do(X=1)"], "domains": {"Z": range(3)}, "edge_prior": prior}
    records = records_without_intervention(np.random.default_rng(seed), count)

    def probability(**rules):
        belief = Belief(Problem("Z -> X -> Y; X <-> Y", "Y", **options, **rules))
        belief.update_many(records)
        return belief.edges()["X <-> Y"]

    odds, wide = prior / (1 - prior), probability(edge_rules=1)
    factor = inf if wide == 1 else (1 + wide / (1 - wide) / odds) / 2
    assert probability() == pytest.approx(1 / (1 + 1 / (odds * factor)), abs=1e-9)
    assert probability() >= 1 / (1 + 2 / odds) - 1e-9


@pytest.mark.parametrize("prior", ["flat", "pooled"])
def test_set_rows_learn_nothing_from_seen_rows_that_a_hidden_cause_joins(prior):
    """Not even how far rows are alike: no table has both kinds of rows."""
    problem = Problem("Z -> X -> Y; X <-> Y", "Y", arms=["do()", "do(X=0)", "do(X=1)"])
    rng = np.random.default_rng(0)
    belief, fresh = Belief(problem, prior=prior), Belief(problem, prior=prior)
    belief.update_many({name: rng.integers(2, size=500) for name in "XYZ"})
    structures, layout = belief.posterior.shared.structures, belief.posterior.layout
    y, untouched = structures.factors.positions["Y"], 0
    for m, version in enumerate(structures.versions):
        components = {joined for joined, _ in version.tables}
        if version.variable != y or len(components) == 1:
            continue
        for joined_variables, table in zip(
            (joined for joined, _ in version.tables),
            structures.table_of[m, structures.factors.targets == y],
            strict=True,
        ):
            if joined_variables == 1 << y:
                parameters = layout.table(belief.posterior.parameters, table)
                assert (parameters == layout.table(fresh.posterior.parameters, table)).all()
                untouched += 1
    assert untouched == 2  # wide and narrow


def test_do_records_do_not_refute_a_hidden_cause_behind_weak_parents():
    """EVIDENCE.md's world: the truth is .35 and .55; wide tables alone are sure of other values."""
    arms = ["do()", "do(X=0)", "do(X=1)"]
    domains = {"Z": range(3), "W": range(3)}
    problem = Problem("Z -> X; W -> X; X -> Y; X <-> Y", "Y", (), ["Z", "W"], domains, arms=arms)
    rng = np.random.default_rng(0)
    cause, z, w = rng.random(1000) < 0.5, rng.integers(3, size=1000), rng.integers(3, size=1000)
    rate = np.where(cause, 0.85, 0.15) + 0.01 * (z - 1) + 0.01 * (w - 1)
    x = (rng.random(1000) < rate).astype(int)
    y = (rng.random(1000) < 0.6 + 0.2 * x - 0.5 * cause).astype(int)
    for prior in ("flat", "pooled"):
        belief = Belief(problem, prior=prior)
        belief.update_many({"Z": z, "W": w, "X": x, "Y": y})
        assert belief.edges()["X <-> Y"] >= 0.8
        (low_0, high_0), (low_1, high_1) = belief.reward_intervals(level=0.9)[1:]
        assert low_0 < 0.35 < high_0 and low_1 < 0.55 < high_1
