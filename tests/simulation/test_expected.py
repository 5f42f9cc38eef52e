"""Expected regret: what each round cost by the posterior, the same mean as regret with less noise.

z of a normal deviate beyond 4.5 has the probability 7e-6; the seeds are fixed.
"""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from support.parametrize import one_in

from dowise import Belief, CausalGraph, DowiseError, Environment, Problem, make_policy, simulate
from dowise._core.rng import stream
from dowise.cli.main import main
from dowise.environments import WorldOptions, resolve_worlds
from dowise.problem import Intervention
from dowise.simulation import On, Result
from dowise.simulation import expected_regret as module
from dowise.simulation.expected_regret import DRAWS
from dowise.simulation.trial import Purpose, make_world, run_trial

DOUBTFUL = Problem("Z -> X -> Y; Z ?-> Y; W ?-> X", "Y", context="Z", name="doubtful")
THREE = Problem(
    "Z -> X -> Y; Z -> Y", "Y", non_manipulable="Z", minimise=True, name="three",
    reward_values={"low": 2, "fair": 5, "high": 3},
)  # fmt: skip
CAREFUL = Problem("C -> X -> Y; C -> Y", "Y", context="C", prior=0.2, name="careful")


def slow_twin(problem, world, arms, seed, trial, observational):
    """A belief that is shown everything by its labels, and asked for draws of rewards."""
    belief = Belief(problem)
    records = stream(seed, trial, Purpose.RECORDS)
    for _ in range(observational):
        belief.update("do()", world.play("do()", world.draw_context(records), records))
    contexts, outcomes = (stream(seed, trial, x) for x in (Purpose.CONTEXTS, Purpose.OUTCOMES))
    draws = stream(seed, trial, Purpose.EXPECTED)
    found = []
    for arm in arms.tolist():
        context = world.draw_context(contexts)
        rewards = belief.draw_rewards(context, DRAWS, draws).astype(np.float64)
        best = rewards.min(axis=0) if problem.minimise else rewards.max(axis=0)
        found.append(abs(best - rewards[arm]).mean())
        played = problem.arms[arm]
        belief.update(played, world.play(played, context, outcomes))
    return np.array(found)


@pytest.mark.parametrize("observational", [0, 5])
@pytest.mark.parametrize("policy", ["ts", "ucb", "kl-ucb"])
@pytest.mark.parametrize(
    ("given", "is_settled", "is_single"),
    [
        ("task2", True, True), ("chordal-10-0.1", True, True), (THREE, True, True),
        (CAREFUL, True, False),
        pytest.param(DOUBTFUL, False, True, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_it_is_that_of_a_belief_that_is_shown_everything(
    given, is_settled, is_single, policy, observational
):
    worlds = resolve_worlds(given, WorldOptions(edges="prior"))
    world = make_world(worlds, 3, 1)
    posterior = Belief(world.problem).posterior
    assert posterior.is_settled == is_settled
    assert posterior.is_single_precision == is_single
    played = run_trial(world, lambda p: make_policy(policy, p), 40, 3, 1, observational, True)
    wanted = slow_twin(world.problem, world, played.arms, 3, 1, observational)
    np.testing.assert_allclose(played.expected, wanted, atol=2e-6)
    assert wanted.max() > 0.01
    without = run_trial(world, lambda p: make_policy(policy, p), 40, 3, 1, observational)
    np.testing.assert_array_equal(without.arms, played.arms)
    assert without.expected is None


@pytest.mark.parametrize("problem", one_in(2, ["task3", DOUBTFUL]), ids=["dirichlet", "mixture"])
def test_the_compiled_loops_do_what_stepping_does(problem, monkeypatch):
    world = make_world(resolve_worlds(problem, WorldOptions(edges="prior")), 0, 2)
    quick = run_trial(world, lambda p: make_policy("ts", p), 200, 0, 2, 3, True)
    for loop in ("_with_dirichlet", "_with_mixture"):

        def step(posterior, *rest):
            return module.stepped(Belief(posterior.problem, posterior=posterior), *rest)

        monkeypatch.setattr(module, loop, step)
    slow = run_trial(world, lambda p: make_policy("ts", p), 200, 0, 2, 3, True)
    np.testing.assert_allclose(quick.expected, slow.expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("given", "policies", "options"),
    one_in(
        4,
        [
            ("task1", ("ts", "ucb"), {}),
            (THREE, ("ts", "ucb"), {"observational": 10}),
            (DOUBTFUL, ("ts", "random"), {"edges": "prior"}),
            (CAREFUL, ("random",), {}),
        ],
    ),
    ids=["task1", "three values", "doubtful edges", "small prior"],
)
def test_it_has_the_mean_of_the_regret_and_less_spread(given, policies, options):
    """Within 4.5 standard errors of the difference over 400 worlds: a false alarm in 1e5 tests."""
    race = simulate([("it", given)], policies, 50, 400, every=50, expected=True, **options)
    regret, expected = race.final(), race.final("expected")
    for policy in policies:
        difference = expected[policy] - regret[policy]
        assert abs(difference.mean()) < 4.5 * difference.std() / 20
        assert expected[policy].std() < 0.85 * regret[policy].std()


@pytest.mark.parametrize("problem", one_in(3, ["task1", "task3", "healthcare"]))
def test_so_many_draws_add_little(problem, monkeypatch):
    """What 32 draws say varies around what 512 do by less than a hundredth of what worlds do."""
    few = simulate([problem], ["ts"], 300, 40, every=300, expected=True).final("expected")["ts"]
    monkeypatch.setattr(module, "DRAWS", 512)
    many = simulate([problem], ["ts"], 300, 40, every=300, expected=True).final("expected")["ts"]
    assert 0 < (few - many).var() < 0.01 * many.var()


def test_a_policy_with_a_wrong_graph_is_judged_by_the_race():
    """Its own belief never doubts; that of the race knows the arrow, within 4.5 standard errors."""
    truth = Problem("X -> Z -> Y; X -> Y", "Y", arms="all", name="truth")
    drawn = On(Problem("X -> Z -> Y", "Y"), "ts", label="drawn")
    race = simulate([truth], [drawn, "ts"], 200, 200, every=200, expected=True)
    regret, expected = race.final(), race.final("expected")
    for policy in ("drawn", "ts"):
        difference = expected[policy] - regret[policy]
        assert abs(difference.mean()) < 4.5 * difference.std() / np.sqrt(200)
    assert expected["drawn"].mean() > 1.5 * expected["ts"].mean()


QUICK = {"horizon": 30, "trials": 23, "seed": 3, "expected": True}


def test_the_same_bits_for_any_number_of_workers(tmp_path):
    alone = simulate(["task1", "task2"], ["ts", "ucb"], **QUICK).frame()
    assert alone.columns.tolist()[-1] == "expected"
    two = simulate(["task1", "task2"], ["ts", "ucb"], **QUICK, workers=2, out=tmp_path / "two")
    assert two.frame().equals(alone)
    assert Result.open(tmp_path / "two").frame().equals(alone)
    without = simulate(["task1", "task2"], ["ts", "ucb"], **{**QUICK, "expected": False}).frame()
    assert alone.drop(columns="expected").equals(without)


def test_a_run_is_extended_and_told_from_others(tmp_path):
    whole = simulate(["task1"], ["ts", "ucb"], **QUICK)
    simulate(["task1"], ["ts"], **{**QUICK, "trials": 7, "horizon": 20}, out=tmp_path)
    longer = simulate(["task1"], ["ts", "ucb"], **QUICK, out=tmp_path)
    np.testing.assert_array_equal(longer.final("expected"), whole.final("expected"))
    without = simulate(["task1"], ["ts"], **{**QUICK, "expected": False}, out=tmp_path)
    assert without.measures == ("regret",)


def test_a_changed_expectation_is_noticed(tmp_path):
    simulate(["task1"], ["ts"], 20, 3, expected=True, out=tmp_path / "run")
    (file,) = (tmp_path / "run" / "results").iterdir()
    before = file.read_bytes()
    simulate(["task1"], ["ts"], 20, 3, expected=True, out=tmp_path / "again")
    (again,) = (tmp_path / "again" / "results").iterdir()
    assert again.read_bytes() == before
    place = before.index(b"PAR1", 4) // 2
    file.write_bytes(before[:place] + bytes([before[place] ^ 1]) + before[place + 1 :])
    with pytest.raises(DowiseError, match="is damaged"):
        Result.open(tmp_path / "run").final("expected")


def test_measures_are_those_that_the_race_has():
    race = simulate(["task1"], ["ts", "ucb"], **QUICK)
    assert race.measures == ("regret", "expected")
    curve = race.curves("expected")["task1"][0]
    final = race.final("expected")["ts"]
    assert curve.mean[-1] == pytest.approx(final.mean()) and curve.trials == 23
    axes = race.plot(measure="expected").axes
    assert axes[0].get_ylabel() == "mean cumulative expected regret"
    assert race.plot().axes[0].get_ylabel() == "mean cumulative regret"
    found = race.as_dict()
    assert found["expected"]["final"][0] == {
        "problem": "task1", "policy": "ts", "expected": pytest.approx(final.mean()),
        "standard_error": pytest.approx(final.std() / np.sqrt(23)), "trials": 23,
    }  # fmt: skip
    (difference,) = found["expected"]["differences"]
    paired = race.final("expected")["ucb"] - final
    assert (difference["policy"], difference["than"]) == ("ucb", "ts")
    assert difference["mean"] == pytest.approx(paired.mean())
    assert difference["standard_error"] == pytest.approx(paired.std() / np.sqrt(23))
    plain = simulate(["task1"], ["ts"], 5, 2)
    assert plain.measures == ("regret",) and "expected" not in plain.as_dict()
    for ask in (plain.final, plain.curves, lambda measure: plain.plot(measure=measure)):
        with pytest.raises(
            DowiseError, match="has no expected regret: simulate with expected=True"
        ):
            ask("expected")
    with pytest.raises(DowiseError, match="measure='mean': expected 'regret' or 'expected'"):
        race.final("mean")


HIDDEN = Problem("X -> Y; X <-> Y", "Y", name="hidden")


@pytest.mark.parametrize(
    ("given", "options", "complaint"),
    [
        (Environment.from_bif("asia"), {}, "asia: .*has fixed CPTs: pass its problem"),
        (HIDDEN, {}, "hidden: expected=True needs worlds .* with hidden causes"),
        (HIDDEN, {"edges": "prior"}, "with hidden causes"),
        (Problem("X -> M -> Y", "Y", hidden="M", name="mediator"), {}, "with hidden causes"),
        (Problem("X -> Y", "Y", soft=0.1, name="soft"), {"edges": "prior"}, "with hidden causes"),
        (DOUBTFUL, {}, "all doubtful edges .W -> X, Z -> Y.: draw them too, edges='prior'"),
        ("task1", {"strong": True}, "strong worlds are drawn otherwise"),
        ("chordal-10-0.1", {"strong": True}, "strong worlds are drawn otherwise"),
        ("task1", {"expected": 2}, "expected=2"),
    ],
)
def test_other_worlds_are_refused(given, options, complaint, tmp_path):
    with pytest.raises(DowiseError, match=complaint):
        simulate([given], ["random"], 5, 2, **{"expected": True, **options}, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_command_shows_both():
    command = ["simulate", "task1", "--policies", "ts,ucb", "--horizon", "20", "--trials", "12"]
    shown = CliRunner().invoke(main, [*command, "--workers", "1", "--expected"]).output
    assert "final regret" in shown and "expected regret" in shown
    header = next(line for line in shown.splitlines() if "mean" in line)
    assert header.count("95 % interval") == 2 and "expected" in header
    text = CliRunner().invoke(main, [*command, "--workers", "1", "--expected", "--json"]).stdout
    found = json.loads(text)
    assert [one["policy"] for one in found["expected"]["final"]] == ["ts", "ucb"]
    assert found["expected"]["differences"][0]["standard_error"] > 0
    assert found["final"][0]["regret"] > 0
    plain = CliRunner().invoke(main, [*command, "--workers", "1"]).output
    assert "expected" not in plain


def test_the_empty_intervention_is_where_records_come_from():
    """Observational records teach the race whether or not do() is an arm."""
    problem = make_world("task2", 0, 0).problem
    assert Intervention() not in problem.arms
    cold, warm = (
        simulate(["task2"], ["ucb"], 20, 60, expected=True, observational=n) for n in (0, 50)
    )
    np.testing.assert_array_equal(cold.final(), warm.final())  # ucb has no use for them
    assert not np.allclose(cold.final("expected"), warm.final("expected"))


@pytest.mark.slow
def test_graphs_with_marks_make_no_difference_to_what_is_certain():
    """A certain edge with a mark is no doubtful one: nothing is refused."""
    problem = Problem(CausalGraph.parse("X -> Y"), "Y", edge_prior={"X -> Y": 1.0}, name="sure")
    assert simulate([problem], ["ts"], 5, 2, expected=True).measures[1] == "expected"
