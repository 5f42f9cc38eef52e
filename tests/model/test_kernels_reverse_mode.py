"""Reverse mode: derivatives against differences, visits against enumeration."""

import numpy as np
import pytest
from support.commit_kg_twin import Enumerated

from dowise import CausalGraph, Problem, load_problem
from dowise.model import model_of
from dowise.model.kernels import fill_means, forward, pass_back, trace_of

THREE = Problem(
    CausalGraph.parse("C -> X; C -> Y; Z -> X -> W -> Y; Z -> Y"),
    "Y",
    "C",
    "Z",
    domains={"X": ("a", "b", "c"), "Y": ("0", "1", "2"), "Z": ("l", "m", "h")},
)
HIDDEN = Problem(
    CausalGraph.parse("Z -> X -> W -> Y; X <-> Y; Z <-> W; C -> Y"), "Y", "C", edge_prior=1
)
PROBLEMS = [
    *(load_problem(name) for name in ("task1", "task2", "task3", "healthcare")),
    THREE,
    HIDDEN,
]
NAMES = ["task1", "task2", "task3", "healthcare", "three values", "hidden causes"]


def random_parameters(problem, seed):
    factors = model_of(problem).factors
    return 1.0 + np.random.default_rng(seed).integers(0, 6, factors.entries)


def run_reverse_mode(problem, parameters, codes, seeds):
    """Return the derivatives by every entry, (arms, entries), and the sum of each arm."""
    model, trace = model_of(problem), trace_of(problem)
    rows = model.rows_of(model.trace, codes)[None]
    values, adjoints = np.empty((trace.slots, 1)), np.zeros((trace.slots, 1))
    totals = np.empty((len(trace.block_slots), 1))
    fill_means(values, totals, parameters, np.zeros(len(parameters), np.int64), rows, trace)
    forward(values, trace)
    gradients = np.zeros((len(problem.arms), len(parameters)))
    sums = [seeds @ values[slots, 0] for slots in trace.results]
    for arm in range(len(problem.arms)):
        pass_back(values, adjoints, seeds, arm, trace)
        assert not adjoints[trace.first :].any()
        for r, (slot, size) in enumerate(zip(trace.block_slots, trace.block_sizes, strict=True)):
            gradients[arm, rows[0, r] : rows[0, r] + size] = adjoints[slot : slot + size, 0]
    return gradients, np.array(sums)


@pytest.mark.parametrize("problem", PROBLEMS, ids=NAMES)
def test_derivatives_agree_with_differences_and_enumeration(problem):
    parameters, worth = random_parameters(problem, 3), problem.payoff.scaled
    model, codes = model_of(problem), (0,) * len(problem.context)
    gradients, means = run_reverse_mode(problem, parameters, codes, worth)
    entries, read = model.factors.normalised(parameters), _read(problem)
    for arm, intervention in enumerate(problem.arms):
        twin = Enumerated(problem, model.factors, parameters, intervention, codes)
        np.testing.assert_allclose(means[arm], twin.mean, rtol=1e-12)
        np.testing.assert_allclose(gradients[arm, read], twin.gradient[read], atol=1e-12)
    step = 1e-5
    for e in np.flatnonzero(np.abs(gradients).max(axis=0) > 0)[:40]:
        row = np.searchsorted(model.factors.row_starts, e, side="right") - 1
        start, size = model.factors.row_starts[row], model.factors.row_sizes[row]
        next_entry = start + (e - start + 1) % size
        moved = np.zeros(len(entries))
        moved[e], moved[next_entry] = step, -step  # the row still sums to 1
        up, down = (_mean(problem, entries + sign * moved, codes) for sign in (1, -1))
        slope = gradients[:, e] - gradients[:, next_entry]
        np.testing.assert_allclose((up - down) / (2 * step), slope, atol=1e-9)


def _read(problem):
    """Return a mask of the entries of variables that some arm's reward needs."""
    factors, circuit = model_of(problem).factors, model_of(problem).trace
    read = np.isin(factors.row_tables, factors.row_tables[circuit.blocks])
    return np.repeat(read, factors.row_sizes)


def _mean(problem, entries, codes):
    return model_of(problem).distributions(entries, codes) @ problem.payoff.scaled


@pytest.mark.parametrize("problem", PROBLEMS, ids=NAMES)
def test_visits_agree_with_enumeration(problem):
    """Including variables that the arm's own reward does not need, in each context."""
    parameters, model = random_parameters(problem, 4), model_of(problem)
    ones = np.ones(len(problem.payoff.scaled))
    read = _read(problem)
    for codes in {(0,) * len(problem.context), (1,) * len(problem.context)}:
        gradients, sums = run_reverse_mode(problem, parameters, codes, ones)
        np.testing.assert_allclose(sums, 1, rtol=1e-12)
        for arm, intervention in enumerate(problem.arms):
            twin = Enumerated(problem, model.factors, parameters, intervention, codes)
            np.testing.assert_allclose(gradients[arm, read], twin.visits[read], atol=1e-12)


def test_lanes_hold_several_contexts():
    problem = load_problem("task2")
    parameters, model, trace = random_parameters(problem, 5), model_of(problem), trace_of(problem)
    rows = np.array([model.rows_of(model.trace, codes) for codes in ((0,), (1,))])
    values, adjoints = np.empty((trace.slots, 2)), np.zeros((trace.slots, 2))
    totals = np.empty((len(trace.block_slots), 2))
    fill_means(values, totals, parameters, np.zeros(len(parameters), np.int64), rows, trace)
    forward(values, trace)
    pass_back(values, adjoints, problem.payoff.scaled, 1, trace)
    for lane, codes in enumerate(((0,), (1,))):
        alone, _ = run_reverse_mode(problem, parameters, codes, problem.payoff.scaled)
        for r, (slot, size) in enumerate(zip(trace.block_slots, trace.block_sizes, strict=True)):
            row = slice(rows[lane, r], rows[lane, r] + size)
            np.testing.assert_array_equal(adjoints[slot : slot + size, lane], alone[1, row])
