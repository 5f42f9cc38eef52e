"""The point of it all: the best POMIS arm is the best of all interventions, in each context."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.brute_force import mean_reward, random_cpts
from support.strategies import cases, examples

from dowise import Problem


def check_optimality(case, seed):
    graph, reward, context, hidden = case
    worth_trying = Problem(graph, reward, context, hidden)
    everything = Problem(graph, reward, context, hidden, arms="all")
    cpts = random_cpts(worth_trying, np.random.default_rng(seed))
    for places in product((0, 1), repeat=len(context)):
        seen = dict(zip(sorted(context), places, strict=True))
        best, best_of_all = (
            max(mean_reward(problem, cpts, arm, seen) for arm in problem.arms)
            for problem in (worth_trying, everything)
        )
        assert best == pytest.approx(best_of_all, abs=1e-12)


@given(cases(max_size=5, bidirected=False), st.integers(0, 2**32 - 1))
@examples(60)
def test_nothing_beats_the_best_pomis_arm(case, seed):
    check_optimality(case, seed)


@pytest.mark.slow
@given(cases(min_size=5, max_size=7, bidirected=False), st.integers(0, 2**32 - 1))
@examples(150)
def test_nothing_beats_the_best_pomis_arm_on_larger_graphs(case, seed):
    check_optimality(case, seed)
