"""Estimates of how long the evidence takes."""

from itertools import pairwise

import pytest

from dowise import CausalGraph, Problem, load_problem
from dowise.experiment.read_model import evidence_seconds
from dowise.model.missing_edges import alternatives_of, count_alternatives


@pytest.mark.parametrize("name", ["task1", "task2", "task3", "healthcare", "asia", "sachs"])
def test_missing_edges_are_counted_without_listing_them(name):
    problem = load_problem(name)
    assert count_alternatives(problem) == len(alternatives_of(problem)) > 0


def test_the_time_of_evidence_is_estimated_without_listing_edges(monkeypatch):
    names = [f"V{i}" for i in range(150)]
    graph = CausalGraph([*pairwise(names)])
    problem = Problem(graph, names[-1], (), tuple(names[1:-1]))
    monkeypatch.delattr("dowise.model.missing_edges.alternatives_of")
    assert evidence_seconds(problem, 0) > 10
