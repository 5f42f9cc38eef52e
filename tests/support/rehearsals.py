"""Results of rehearsals, made by hand."""

from dataclasses import replace

import numpy as np

from dowise import load_problem
from dowise.experiment.rehearsal import Rehearsal

ARRAYS = ("regret", "at_random", "stopping", "cost", "sure")
INF = float("inf")


def rows(*worlds):
    return np.array(worlds, dtype=float)


BY_HAND = Rehearsal(
    problem=load_problem("task1"),
    policy="ids",
    options={"samples": 1000},
    prior=1.0,
    horizon=10,
    tolerance=0.05,
    delay=0,
    seed=7,
    rounds=np.array([0, 5, 10]),
    regret=rows([0, 2, 3], [0, 1, 1], [0, 4, 8], [0, 1, 2]),
    at_random=rows([0, 4, 8], [0, 4, 8], [0, 5, 10], [0, 3, 6]),
    stopping=rows([0.3, 0.05, 0.01], [0.3, 0.2, 0.04], [0.3, 0.2, 0.1], [0.3, 0.04, 0.2]),
    cost=rows([0.2, 0.04, 0], [0, 0, 0], [0.5, 0.5, 0.1], [0, 0.02, 0.03]),
    sure=rows([0.25, 0.5, 0.9], [0.25, 0.6, 0.8], [0.25, 0.4, 0.5], [0.25, 0.6, 0.7]),
)
IN_MONEY = replace(
    BY_HAND, tolerance=1_250.5, **{name: 2120 * getattr(BY_HAND, name) for name in ARRAYS[:-1]}
)
ONE_WORLD = replace(BY_HAND, **{name: getattr(BY_HAND, name)[:1] for name in ARRAYS})
