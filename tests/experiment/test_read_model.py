"""Estimates of how long the evidence takes."""

import time
from itertools import pairwise

import pytest

from dowise import CausalGraph, Problem, load_problem
from dowise.experiment.read_model import evidence_seconds
from dowise.model.missing_edges import alternatives_of, count_alternatives


@pytest.mark.parametrize("name", ["task1", "task2", "task3", "healthcare", "asia", "sachs"])
def test_missing_edges_are_counted_without_listing_them(name):
    problem = load_problem(name)
    assert count_alternatives(problem) == len(alternatives_of(problem)) > 0


def test_the_time_of_evidence_is_estimated_quickly():
    names = [f"V{i}" for i in range(150)]
    graph = CausalGraph([*pairwise(names)])
    problem = Problem(graph, names[-1], (), tuple(names[1:-1]))
    start = time.perf_counter()
    assert evidence_seconds(problem, 0) > 10
    assert time.perf_counter() - start < 2
