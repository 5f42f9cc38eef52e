"""Short, seeded versions of the measurements of `make evidence`.

The seeds are fixed, so the tests pass always or never; the probabilities are those of other seeds.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

EVIDENCE = Path(__file__).parents[1] / "evidence"


def load_script(name):
    spec = importlib.util.spec_from_file_location(f"evidence_{name}", EVIDENCE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("name", ["instrument", "task 2 with X1↔Y", "two causes, three values"])
def test_intervals_have_their_coverage(name):
    """85 to 95 % after every number of records; a mean of 90 % fails by 3 standard errors of 100
    worlds with probability 1 in 370."""
    intervals = load_script("intervals")
    covered = intervals.coverage(intervals.CASES[name], 100, (30, 100, 300), sure=False)
    tolerance = 3 * covered.std(axis=0) / np.sqrt(len(covered))
    assert (covered.mean(axis=0) > 0.85 - tolerance).all()
    assert (covered.mean(axis=0) < 0.95 + tolerance).all()
    assert covered.mean() > 0.87  # not by the tolerance alone


@pytest.mark.slow
def test_hidden_causes_protect_against_the_trap():
    """No worse than bernoulli-ts, by 3 standard errors (1 in 740); without the edge far worse."""
    trap = load_script("trap")
    worlds = trap.traps(25)
    regrets = {
        label: np.array([trap.regret(w, *trap.PLAYERS[label], i) for i, w in enumerate(worlds)])
        for label in ("bernoulli-ts", "ts", "ids", "ts, edge not drawn")
    }
    for label in ("ts", "ids"):
        difference = regrets[label] - regrets["bernoulli-ts"]
        assert difference.mean() < 3 * difference.std() / np.sqrt(len(difference))
    assert regrets["ts, edge not drawn"].mean() > 3 * regrets["ts"].mean()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ids", "ts", "ucb"])
def test_batches_of_ten_cost_at_most_a_quarter_more(name):
    """100 rounds of task 1, by 3 standard errors of 30 worlds (1 in 740)."""
    batches = load_script("batches")
    worlds = [batches.world_of("task1", trial) for trial in range(30)]

    def regrets(size):
        return np.array(
            [batches.regret(w, name, size, True, i, 100)[0] for i, w in enumerate(worlds)]
        )

    difference = regrets(10) - 1.25 * regrets(1)
    assert difference.mean() < 3 * difference.std() / np.sqrt(30)


@pytest.mark.slow
def test_best_has_less_regret_than_the_papers_ids():
    """60 worlds of task 1, 300 rounds, paired; −15 % ± 5 is above −2 % once in 200."""
    beyond = load_script("beyond")
    frame = beyond.simulate_policies(("task1",), 300, 60, 7, None, 1)
    comparison = beyond.compare(frame, ("task1",), "best", "ids", 300)
    assert comparison["together"]["per_cent"] < -2
    assert not comparison["panels"]["task1"]["above"]
    assert "best" in beyond.figures(frame, ("task1",), 300)


def test_verdicts_of_beyond_allow_for_many_comparisons():
    """Holm's procedure, a missed goal, and policies with equal regret."""
    beyond = load_script("beyond")
    assert beyond.holm([0.001, 0.2, 0.012]) == [True, False, True]
    assert beyond.holm([0.02, 0.001, 0.03]) == [False, True, False]
    assert beyond.holm([0.03, 0.03]) == [False, False]
    panels = {"task1": {"per_cent": -5.0, "error": 1.0, "above": False}}
    together = beyond.together(list(panels.values()))
    results = {str(t): {"panels": panels, "together": together} for t in (500, 1000)}
    assert [holds for _, holds in beyond.verdicts(results)] == [False, True, False, True]


def test_many_arms_runs_its_quick_panel(monkeypatch):
    monkeypatch.syspath_prepend(str(EVIDENCE))
    ((panel, rounds, *shares),) = load_script("many_arms").main(["--quick"])
    assert (panel, rounds) == ("child", "40") and all(" ± " in share for share in shares)
