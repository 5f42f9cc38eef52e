"""Short, seeded versions of what `make evidence` shows at length."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

EVIDENCE = Path(__file__).parents[1] / "evidence"


def script(name):
    spec = importlib.util.spec_from_file_location(f"evidence_{name}", EVIDENCE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("name", ["instrument", "task 2 with X1↔Y", "two causes, three values"])
def test_intervals_hold_the_truth(name):
    """85 to 95 % after every number of records; seeded, so it always passes or never.

    With other seeds a mean of 90 % would fall out by 3 standard errors of 100 worlds, 1 in 370.
    """
    intervals = script("intervals")
    held = intervals.coverage(intervals.CASES[name], 100, (30, 100, 300), sure=False)
    slack = 3 * held.std(axis=0) / np.sqrt(len(held))
    assert (held.mean(axis=0) > 0.85 - slack).all()
    assert (held.mean(axis=0) < 0.95 + slack).all()
    assert held.mean() > 0.87  # and not by slack alone


@pytest.mark.slow
def test_nobody_is_caught_in_the_trap_but_who_lacks_the_edge():
    """At .9 no worse than bernoulli-ts, within 3 standard errors (1 in 740); else far worse."""
    trap = script("trap")
    worlds = trap.traps(25)
    lost = {
        label: np.array([trap.regret(w, *trap.PLAYERS[label], i) for i, w in enumerate(worlds)])
        for label in ("bernoulli-ts", "ts", "ids", "ts, edge not drawn")
    }
    for label in ("ts", "ids"):
        more = lost[label] - lost["bernoulli-ts"]
        assert more.mean() < 3 * more.std() / np.sqrt(len(more))
    assert lost["ts, edge not drawn"].mean() > 3 * lost["ts"].mean()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ids", "ts", "ucb"])
def test_ten_at_a_time_cost_little_more_than_one_at_a_time(name):
    """At most a quarter more in 100 rounds of task 1; 3 standard errors of 30 worlds, 1 in 740."""
    batches = script("batches")
    worlds = [batches.world_of("task1", trial) for trial in range(30)]

    def lost(size):
        return np.array(
            [batches.regret(w, name, size, True, i, 100)[0] for i, w in enumerate(worlds)]
        )

    one, ten = lost(1), lost(10)
    more = ten - 1.25 * one
    assert more.mean() < 3 * more.std() / np.sqrt(30)


@pytest.mark.slow
def test_best_loses_less_than_the_papers_ids():
    """60 worlds of task 1, 300 rounds, paired; seeded, so it always passes or never.

    With other seeds −15 % ± 5 would come out above −2 % once in 200.
    """
    beyond = script("beyond")
    frame = beyond.race(("task1",), 300, 60, 7, None, 1)
    found = beyond.judged(frame, ("task1",), "best", "ids", 300)
    assert found["together"]["per_cent"] < -2
    assert not found["panels"]["task1"]["above"]
    assert "best" in beyond.figures(frame, ("task1",), 300)


def test_the_bar_is_judged_as_it_says():
    """Holm's procedure by hand, a bar that is missed, and policies that play alike."""
    beyond = script("beyond")
    assert beyond.holm([0.001, 0.2, 0.012]) == [True, False, True]
    assert beyond.holm([0.02, 0.001, 0.03]) == [False, True, False]
    assert beyond.holm([0.03, 0.03]) == [False, False]
    panels = {"task1": {"per_cent": -5.0, "error": 1.0, "above": False}}
    together = beyond.together(list(panels.values()))
    found = {str(t): {"panels": panels, "together": together} for t in (500, 1000)}
    assert [holds for _, holds in beyond.verdicts(found)] == [False, True, False, True]


def test_many_arms_are_raced(monkeypatch):
    """The script runs; of ten worlds nothing is concluded."""
    monkeypatch.syspath_prepend(str(EVIDENCE))
    ((panel, rounds, *shares),) = script("many_arms").main(["--quick"])
    assert (panel, rounds) == ("child", "40") and all(" ± " in share for share in shares)
