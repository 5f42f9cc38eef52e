"""Draws and estimates in blocks equal those at once."""

import numpy as np
import pytest
from support.errors import raises_code

from dowise import Belief, CausalGraph, Problem, load_problem
from dowise.belief import belief as belief_module
from dowise.information import estimate_in_blocks, estimate_of, gain_interval, gains_above_0
from dowise.model.draws import Draws


def doubtful():
    return Problem(CausalGraph.parse("X -> Y; Z ?-> Y; Z -> X; X <-> Y"), "Y", arms="all")


either = pytest.mark.parametrize(
    "make", [lambda: load_problem("task3"), doubtful], ids=["plain", "edges"]
)


@either
@pytest.mark.parametrize("prior", [1.0, 0.05])
def test_draws_in_blocks_have_the_same_bits(make, prior, monkeypatch):
    problem = make()
    belief = Belief(problem, prior)
    codes = problem.context_codes(dict.fromkeys(problem.context, 1) or None)
    monkeypatch.setattr(belief_module, "_BLOCK_WORK", 1.0)
    blocks = list(belief.draw_in_blocks(codes, 1000, 5))
    assert len(blocks) > 3 and blocks[0].samples == belief.posterior.block
    draws = belief.draw(codes, 1000, 5)
    assert np.array_equal(
        np.concatenate([b.after_first for b in blocks], axis=2), draws.after_first
    )
    assert {b.whole is None for b in blocks} == {draws.whole is None} == {prior == 1}
    if draws.whole is not None:
        assert np.array_equal(np.concatenate([b.whole for b in blocks], axis=2), draws.whole)


@either
def test_ties_are_broken_equally_in_blocks(make, monkeypatch):
    """The prior is so small that draws saturate, so ties are broken by the number of the draw."""
    problem = make()
    belief, payoff = Belief(problem, 1e-4), problem.payoff
    codes = problem.context_codes(dict.fromkeys(problem.context, 1) or None)
    monkeypatch.setattr(belief_module, "_BLOCK_WORK", 1.0)
    blocks = list(belief.draw_in_blocks(codes, 1000, 5))
    draws = belief.draw(codes, 1000, 5)
    winners, _ = draws.winners(payoff)
    assert np.array_equal(np.concatenate([b.winners(payoff)[0] for b in blocks]), winners)
    other_key = Draws(draws.after_first, draws.whole, draws.kinds, draws.key + 1)
    assert (other_key.winners(payoff)[0] != winners).any()
    some = np.arange(len(problem.arms))[1:]
    among = np.concatenate([b.among(some).winners(payoff)[0] for b in blocks])
    assert np.array_equal(among, draws.among(some).winners(payoff)[0])


def test_blocks_advance_the_generator_once():
    belief, first, second = Belief(load_problem("task1")), *map(np.random.default_rng, (3, 3))
    for _ in belief.draw_in_blocks((), 100, first):
        pass
    belief.draw((), 100, second)
    assert first.random() == second.random()


@pytest.mark.parametrize(("prior", "numbers"), [(1.0, 256 * 3), (0.1, 256 * 6)])
def test_blocks_have_limited_size(prior, numbers, monkeypatch):
    monkeypatch.setattr(belief_module, "_BLOCK_NUMBERS", numbers)
    blocks = list(Belief(load_problem("task1"), prior).draw_in_blocks((), 10_000, 0))
    assert sum(block.samples for block in blocks) == 10_000
    assert (
        max((block.after_first if prior == 1 else block.whole).size for block in blocks) <= numbers
    )


def split(draws, size):
    """Yield the draws in blocks of this size."""
    for i in range(0, draws.samples, size):
        others = draws.after_first[:, :, i : i + size]
        whole = None if draws.whole is None else draws.whole[:, :, i : i + size]
        yield Draws(others, whole, draws.kinds, draws.key, i)


@pytest.mark.parametrize("prior", [1.0, 0.01])
@pytest.mark.parametrize("size", [1, 7, 64, 999])
def test_estimates_in_blocks_equal_estimates_at_once(size, prior):
    belief = Belief(load_problem("alarm"), prior)
    draws, payoff = belief.draw((), 1000, 2), belief.problem.payoff
    in_blocks = estimate_in_blocks(split(draws, size), payoff, 1000)
    at_once = estimate_of(draws, payoff)
    for name in ("samples", "winners", "winning", "best"):
        assert np.array_equal(getattr(in_blocks, name), getattr(at_once, name))
    for name in ("joint", "means", "delta", "gain"):
        assert getattr(in_blocks, name) == pytest.approx(getattr(at_once, name), abs=1e-13)


def test_too_large_joints_are_refused_early(monkeypatch):
    monkeypatch.setattr("dowise.information.estimates._MAX_BYTES", 1000)
    belief = Belief(load_problem("alarm"))
    blocks = (belief.draw((), 10, seed) for seed in range(10**9))
    with raises_code("too-large", "fewer samples"):
        estimate_in_blocks(blocks, belief.problem.payoff, 10**9)


@pytest.mark.parametrize("name", ["task1", "child", "alarm"])
def test_gains_above_0_are_those_with_a_positive_lower_end(name):
    belief = Belief(load_problem(name))
    codes = (0,) * len(belief.problem.context)
    estimated = estimate_of(belief.draw(codes, 20_000, 0), belief.problem.payoff)
    results = set()
    for n in (1e3, 1e4, 1e5, 1e6, 1e7, 1e9):
        above = gains_above_0(estimated, 1e-4, int(n))
        assert np.array_equal(above, gain_interval(estimated, 1e-4, int(n)).low > 0)
        results |= {*above.tolist()}
    assert results == {False, True}
