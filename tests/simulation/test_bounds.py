"""Bounds of a problem: the worked example, the joint map, and a run recomputed step by step."""

import signal
import subprocess
import sys

import numpy as np
import pytest
from support.errors import raises_code

from dowise import Belief, CausalGraph, Problem, load_problem, make_environment
from dowise.information import delta_interval, estimate, gain_interval, gamma_bracket, map_entropy
from dowise.simulation import bounds


def test_bounds_agree_with_the_worked_example_of_section_6():
    """PAPER-NOTES 16: 2e8 draws of an independent prototype give p* = .07719, .46142, .46139 and
    H = .91149; the paper, which had rounded p*, prints .9165. The tolerance is five standard errors
    of 400,000 draws: a false alarm in 2e-6 for each figure."""
    result = bounds(load_problem("task1"), horizon=1, samples=400_000, policy_samples=100)
    errors = 5 * np.sqrt(result.p_best[0] * (1 - result.p_best[0]) / 400_000)
    assert (np.abs(result.p_best[0] - [0.07719, 0.46142, 0.46139]) < errors).all()
    assert result.entropy_error < 0.001
    assert result.entropy == pytest.approx(0.91149, abs=5 * result.entropy_error)
    assert result.worst_entropy == pytest.approx(np.log(3))
    assert result.worst_coefficient == pytest.approx(1.2837, abs=5e-5)  # as printed
    slope = 1.16929 / (2 * 0.91149)  # of √(1.5 H) in H
    tolerance = 5 * slope * result.entropy_error
    assert result.coefficient == pytest.approx(1.16929, abs=tolerance)
    assert 100 * result.saving == pytest.approx(8.91, abs=0.005 + 100 * tolerance / 1.2837)


@pytest.mark.parametrize(
    ("name", "entropy"), [("task2", 1.569), ("task3", 3.318), ("healthcare", 1.386)]
)
def test_the_entropy_of_the_joint_map_counts_all_contexts(name, entropy):
    """PAPER-NOTES 16 has three digits; the tolerance adds five standard errors."""
    result = bounds(load_problem(name), horizon=1, samples=200_000, policy_samples=100)
    assert result.is_joint
    assert result.entropy == pytest.approx(entropy, abs=0.0005 + 5 * result.entropy_error)


def test_draws_have_the_same_cpts_in_every_context():
    """The reward does not depend on the context, so each draw has one best arm, and the joint map
    has the entropy of one context; independent draws would double it."""
    graph = CausalGraph.parse("C -> W; X -> Y; Z -> Y")
    problem = Problem(graph, "Y", context="C", non_manipulable=["W", "Z"])
    result = bounds(problem, horizon=1, samples=20_000, policy_samples=100)
    assert result.maps_seen == len(problem.arms) == 2
    assert result.entropy == pytest.approx(np.log(2), abs=1e-3)


def test_entropy_of_the_map_equals_a_count_of_best_arms():
    problem = load_problem("task2")
    result = bounds(problem, horizon=1, samples=5_000, policy_samples=100, seed=3)
    belief = Belief(problem)
    winners = [belief.draw_rewards({"C": c}, 5_000, 3).argmax(axis=0) for c in (0, 1)]
    _, counts = np.unique(np.stack(winners), axis=1, return_counts=True)
    shares = counts / 5_000
    plug_in = -(shares * np.log(shares)).sum()
    assert result.entropy == pytest.approx(plug_in + (len(counts) - 1) / 10_000)
    assert result.maps_seen == len(counts)


def test_entropies_of_contexts_are_summed_if_there_are_few_draws_per_map():
    result = bounds(load_problem("task3"), horizon=1, samples=200, policy_samples=100)
    assert not result.is_joint and result.as_dict()["entropy_of"] == "sum over contexts"
    assert result.maps_seen * 10 > 200
    parts = [map_entropy(200 * row) for row in result.p_best]
    assert result.entropy == pytest.approx(sum(entropy for entropy, _ in parts))
    assert result.entropy_error == pytest.approx(sum(error for _, error in parts))
    assert 3.318 - 5 * result.entropy_error < result.entropy <= result.worst_entropy


def test_run_equals_its_steps_with_public_functions():
    problem = load_problem("task1")
    result = bounds(problem, horizon=20, samples=100, policy_samples=200_000, seed=5)
    world_seed, run_seed = np.random.SeedSequence(5).spawn(2)
    world = make_environment(problem, int(world_seed.generate_state(1)[0]))
    belief, rng = Belief(problem), np.random.default_rng(run_seed)
    level = 0.05 / (2 * 20 * 3)
    ratios, gammas, parameters, vacuous = [], [], [], 0
    for _ in range(20):
        world.draw_context(rng)
        figures = estimate(belief.draw_rewards(None, 200_000, rng))
        ratios.append((figures.best @ figures.delta) ** 2 / (figures.best @ figures.gain))
        parameters.append(tuple(belief.parameters))
        gain = gain_interval(figures, level)
        gammas.append(gamma_bracket(delta_interval(figures, level), gain))
        vacuous += bool((gain.low == 0).all() and (gain.high == np.log(2)).all())
        arm = problem.arms[int(belief.draw_rewards(None, 1, rng)[:, 0].argmax())]
        belief.update(arm, world.play(arm, None, rng))
    prior = estimate(Belief(problem).draw_rewards(None, 100, 5))
    prior_ratio = (prior.best @ prior.delta) ** 2 / (prior.best @ prior.gain)
    run, values = result.run, result.values()
    assert prior_ratio <= run.largest_ratio <= 1.5  # K/2, by the proof of Corollary 1
    steepest = {tuple(belief.parameters) for _, belief in run.steepest}
    assert steepest == {parameters[t] for t in np.argsort(ratios)[-5:]}
    assert run.vacuous_rounds == vacuous < 20
    assert run.gamma_high == pytest.approx(sum(high for _, high in gammas))
    assert run.infinite_rounds == sum(np.isinf(high) for _, high in gammas)
    expected = np.sqrt(run.largest_ratio * result.entropy * 20)
    assert values["theorem_1_run"] == pytest.approx(expected)
    assert values["theorem_1_run"] < values["theorem_1"] == pytest.approx(values["corollary_2"])
    assert values["corollary_2"] < values["corollary_1"] <= values["theorem_2"]


@pytest.mark.parametrize("name", ["task1", "task2", "task3", "healthcare"])
def test_theorem_2_is_vacuous_at_a_thousand_draws(name):
    """PAPER-NOTES 12, in a run of 50 rounds."""
    result = bounds(load_problem(name), horizon=50, samples=20_000)
    assert result.run.infinite_rounds == result.run.vacuous_rounds == 50
    assert result.as_dict()["theorem_2"] == "inf" == result.as_dict()["gamma_sum"]
    assert 1000 < result.samples_for_some < 1e5
    assert result.samples_for_some <= result.samples_for_all < 1e9


def test_numbers_of_draws_are_the_smallest_with_positive_lower_bounds():
    """Correct to two digits: 5 % more are enough, and 5 % fewer are not."""
    problem = load_problem("task1")
    result = bounds(problem, horizon=100, samples=50_000, policy_samples=100)
    figures = estimate(Belief(problem).draw_rewards(None, 50_000, 0))
    level = 0.05 / (2 * 100 * 3)
    for number, condition in ((result.samples_for_some, np.any), (result.samples_for_all, np.all)):
        assert condition(gain_interval(figures, level, int(1.05 * number)).low > 0)
        assert not condition(gain_interval(figures, level, int(0.95 * number)).low > 0)


def test_numbers_of_draws_are_over_all_contexts():
    """The minimum over contexts for some arm, the maximum for every arm. In context C = 1 there is
    another path from X to Y, through a rare W."""
    graph = CausalGraph.parse("C -> Y; X -> W; W -> Y; X -> Y")
    problem = Problem(graph, "Y", context="C", non_manipulable="W")
    result = bounds(problem, horizon=10, samples=20_000, policy_samples=100)
    belief, by_context = Belief(problem), []
    level = 0.05 / (2 * 10 * len(problem.arms))
    for c in (0, 1):
        figures = estimate(belief.draw_rewards({"C": c}, 20_000, 0))
        numbers = list(10 ** np.arange(2, 9, 0.01))
        low = [gain_interval(figures, level, int(n)).low > 0 for n in numbers]
        pairs = list(zip(numbers, low, strict=True))
        by_context.append([next(n for n, x in pairs if test(x)) for test in (np.any, np.all)])
    some, every = zip(*by_context, strict=True)
    assert result.samples_for_some == pytest.approx(min(some), rel=0.08)
    assert result.samples_for_all == pytest.approx(max(every), rel=0.08)


def test_arm_without_information_is_unresolved():
    """By symmetry do() has no information on the best value of X: no N would be enough."""
    problem = Problem(CausalGraph.parse("X -> Y"), "Y", arms=["do()", "do(X=0)", "do(X=1)"])
    for samples in (5_000, 50_000):
        result = bounds(problem, horizon=5, samples=samples, policy_samples=100)
        assert result.unresolved == 1 and result.samples_for_all == np.inf
        assert result.samples_for_some < 1e5


def test_bounds_of_a_single_arm_are_zero():
    problem = Problem(CausalGraph.parse("X -> Y"), "Y", arms=["do(X=1)"])
    figures = bounds(problem, horizon=5, samples=100, policy_samples=100).as_dict()
    assert figures["corollary_1"] == figures["corollary_2"] == figures["entropy"] == 0
    assert figures["saving"] == 0 and figures["samples_for_some_lower_bound"] == "inf"


@pytest.mark.parametrize("prior", [1.0, 0.05])
def test_progress_is_reported_within_every_step(prior, monkeypatch):
    monkeypatch.setattr("dowise.belief.belief._BLOCK_WORK", 1.0)
    monkeypatch.setattr(sys.modules["dowise.simulation.bounds"], "PROGRESS_INTERVAL", 0.0)
    reports = {}

    def progress(step, finished, total):
        reports.setdefault(step, []).append((finished, total))

    problem = Problem(CausalGraph.parse("X -> Z -> Y"), "Y", arms="all", prior=prior)
    bounds(problem, 1, samples=2000, policy_samples=1000, progress=progress)
    assert len(reports) == 3
    for steps in reports.values():
        finished, totals = zip(*steps, strict=True)
        assert len({*totals}) == 1 and finished[0] == 0 and finished[-1] == totals[0]
        assert sorted(finished) == list(finished) and len({*finished}) >= 4
    search = [finished for finished, _ in next(iter(reports.values())) if finished > 2000]
    assert len(search) > 10


def test_progress_is_limited_to_intervals():
    reports = []
    bounds(load_problem("task1"), 2000, 1000, 30, progress=lambda *report: reports.append(report))
    assert 6 <= len(reports) < 500
    finished = {step: finished == total for step, finished, total in reports}
    assert len(finished) == 3 and all(finished.values())


INTERRUPTED = """
from dowise import load_problem
from dowise.simulation import bounds

def progress(step, finished, total):
    print("running", flush=True)

try:
    bounds(load_problem("insurance"), 1000, samples=5_000_000, progress=progress)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


@pytest.mark.slow
def test_ctrl_c_interrupts_long_draws():
    """All draws take minutes, and a block of them a tenth of a second."""
    command = [sys.executable, "-c", INTERRUPTED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "running\n"
        assert process.stdout.readline() == "running\n"  # in the middle of the draws
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=30)
    assert output.splitlines()[-1] == "stopped"


def problem_with_336_arms():
    graph = CausalGraph.parse("A -> Y; B -> Y; C -> Y; U -> A; U -> Y")
    domains = {"A": range(7), "B": range(8), "C": range(6)}
    arms = [{"A": a, "B": b, "C": c} for a in range(7) for b in range(8) for c in range(6)]
    return Problem(graph, "Y", non_manipulable="U", domains=domains, arms=arms)


def test_default_numbers_of_draws_depend_on_the_number_of_arms():
    small = bounds(load_problem("task1"), 1)
    assert (small.samples, small.policy_samples) == (50_000, 1000)
    assert small.p_best_radius == pytest.approx(0.0093, abs=5e-5)  # as printed in the paper
    large = bounds(problem_with_336_arms(), 1)
    assert (large.samples, large.policy_samples) == (50_000, 3360)
    assert large.maps_seen == 336 and large.entropy == pytest.approx(np.log(336), abs=0.01)
    for name in ("samples", "policy_samples"):
        with raises_code("invalid-number", f"{name}=3359", "3,360"):
            bounds(problem_with_336_arms(), 1, **{name: 3359})


@pytest.mark.parametrize(
    ("options", "code", "name"),
    [
        ({"horizon": 0}, "invalid-number", "horizon=0"),
        ({"horizon": 10**9}, "invalid-number", "horizon=1000000000"),
        ({"samples": 1.5}, "invalid-number", "samples=1.5"),
        ({"samples": 29}, "invalid-number", "samples=29"),
        ({"samples": 10**11}, "invalid-number", "samples=100000000000"),
        ({"policy_samples": 1}, "invalid-number", "policy_samples=1"),
        ({"delta": 1.0}, "invalid-number", "delta=1.0"),
        ({"seed": np.random.default_rng(0)}, "invalid-number", "seed"),
        ({"trials": 12}, "unused-option", "trials=12"),
        ({"certify": True, "trials": 3}, "invalid-number", "trials=3"),
    ],
)
def test_invalid_arguments_are_rejected(options, code, name):
    with raises_code(code, name):
        bounds(load_problem("task1"), **{"horizon": 5, **options})


def test_too_many_contexts_are_rejected():
    names = [f"C{i}" for i in range(11)]
    graph = CausalGraph([*((name, "Y") for name in names), ("X", "Y")])
    with raises_code("too-large", "2,048 contexts"):
        bounds(Problem(graph, "Y", context=names), 5)
