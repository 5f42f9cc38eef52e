"""Statistics of results: intervals, curves, final regrets, paired differences and verdicts."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from dowise.simulation.analysis import (
    Claim,
    JudgedClaim,
    Spread,
    curves,
    differences,
    paper_claims,
    spread_of,
    standings,
)


def test_interval_is_student_s():
    spread = spread_of(np.array([1.0, 2.0, 3.0, 6.0]))
    assert spread.mean == 3 and spread.trials == 4
    assert spread.error == pytest.approx(np.std([1, 2, 3, 6], ddof=1) / 2)
    width = stats.t.ppf(0.975, 3) * spread.error
    assert spread.interval == pytest.approx((3 - width, 3 + width), rel=1e-9)
    single = spread_of(np.array([1.0]))
    assert np.isnan(single.error) and single.interval == (-np.inf, np.inf)


def test_curves_do_not_depend_on_the_order_of_rows():
    rows = [
        {"policy": policy, "trial": trial, "round": t, "regret": (trial + 1) * t * factor}
        for policy, factor in (("a", 1.0), ("b", 2.0))
        for trial in range(3)
        for t in (10, 20)
    ]
    frame = pd.DataFrame(rows).sample(frac=1, random_state=0)
    a, b = curves(frame, ["a", "b"])
    assert a.rounds.tolist() == [10, 20] and a.trials == 3
    np.testing.assert_allclose(a.mean, [20, 40])
    np.testing.assert_allclose(b.deviation, [20, 40])
    np.testing.assert_allclose(b.band("sd")[1], [80, 160])
    np.testing.assert_allclose(b.band("se")[0], [40 - 40 / np.sqrt(3), 80 - 80 / np.sqrt(3)])


def final_table(rows):
    names = ["problem", "trial", "ts", "ucb", "ids"]
    return pd.DataFrame(rows, columns=names).set_index(["problem", "trial"])


def test_differences_are_paired_within_trials():
    """A trial that lacks one of the two policies does not count."""
    final = final_table(
        [
            ("b", 0, 1.0, 4.0, 2.0),
            ("b", 1, 3.0, 8.0, 1.0),
            ("a", 0, 1.0, 5.0, np.nan),
            ("a", 1, 9.0, np.nan, np.nan),
        ]
    )
    rows = [standing.as_dict() for standing in standings(final)]
    expected = {"policy": "ts", "regret": 2.0, "standard_error": 1.0, "trials": 2}
    assert rows[0] == {"problem": "b", **expected}
    assert [(row["problem"], row["policy"], row["trials"]) for row in rows] == [
        *(("b", policy, 2) for policy in ("ts", "ucb", "ids")),
        ("a", "ts", 2),
        ("a", "ucb", 1),
    ]
    ucb, ids, single = (difference.as_dict() for difference in differences(final))
    width = stats.t.ppf(0.975, 1) * np.std([3.0, 5.0], ddof=1) / np.sqrt(2)
    assert (ucb["policy"], ucb["than"], ucb["mean"]) == ("ucb", "ts", 4.0)
    assert (ucb["low"], ucb["high"]) == pytest.approx((4 - width, 4 + width))
    assert (ids["policy"], ids["mean"]) == ("ids", -0.5)
    assert (ucb["trials"], ucb["standard_error"]) == (2, pytest.approx(1.0))
    undefined = dict.fromkeys(("standard_error", "low", "high"))
    expected = {"policy": "ucb", "than": "ts", "mean": 4.0, "trials": 1, **undefined}
    assert single == {"problem": "a", **expected}
    json.dumps([*rows, ucb, ids, single], allow_nan=False)
    pairs = [difference.as_dict() for difference in differences(final, all_pairs=True)]
    assert [(pair["problem"], pair["policy"], pair["than"], pair["mean"]) for pair in pairs] == [
        ("b", "ucb", "ts", 4.0),
        ("b", "ids", "ts", -0.5),
        ("b", "ids", "ucb", -4.5),
        ("a", "ucb", "ts", 4.0),
    ]


def test_paper_claims_are_judged_by_paired_differences():
    """Worlds differ much more than policies, so only a paired difference shows the effect."""
    worlds = np.random.default_rng(0).normal(50, 20, size=100)
    final = pd.DataFrame({"ids": worlds, "ts": worlds + 1, "ucb": worlds - 1, "x": worlds + 1})
    final["x"] += np.random.default_rng(1).normal(0, 50, size=100)
    judged = [claim.judge(final) for claim in paper_claims([*final.columns])]
    assert {(claim.less, claim.more): claim.verdict for claim in judged} == {
        ("ids", "ts"): "holds",
        ("ts", "ucb"): "does not hold",
        ("ts", "x"): "not shown",
    }
    assert paper_claims(["ids", "ucb"]) == [] and len(paper_claims(["ucb", "ts"])) == 1


def test_a_claim_may_compare_with_a_multiple():
    final = pd.DataFrame({"soft": [4.0] * 12, "drawn": [9.0, 10.0, 11.0] * 4})
    less, half, third = (Claim("soft", "drawn", times).judge(final) for times in (1.0, 0.5, 0.3))
    assert less.difference.mean == pytest.approx(-6) and half.difference.mean == pytest.approx(-1)
    verdicts = [claim.verdict for claim in (less, half, third)]
    assert verdicts == ["holds", "holds", "does not hold"]
    assert [str(less), str(half)] == ["soft < drawn", "soft < 0.5 × (drawn)"]


def test_expected_regret_decides_if_it_was_computed():
    final = pd.DataFrame({"a": [1.0, 9.0] * 6, "b": [8.0, 3.0] * 6})
    expected = pd.DataFrame({"a": [4.0, 4.1] * 6, "b": [5.0, 5.2] * 6})
    by_regret, by_expected = Claim("a", "b").judge(final), Claim("a", "b").judge(final, expected)
    assert (by_regret.measure, by_regret.verdict) == ("regret", "not shown")
    assert (by_expected.measure, by_expected.verdict) == ("expected", "holds")
    assert by_expected.difference == by_regret.difference == by_regret.deciding
    assert by_expected.deciding.mean == pytest.approx(-1.05)


@pytest.mark.parametrize(
    ("spread", "verdict"),
    [
        (Spread(-1.0, 0.50, 500), "holds"),
        (Spread(-1.0, 0.52, 500), "not shown"),
        (Spread(-1.0, 0.50, 10), "not shown"),
        (Spread(1.0, 0.50, 500), "does not hold"),
        (Spread(-9.0, 0.50, 9), "not shown"),  # too few trials
    ],
)
def test_verdict_depends_on_the_interval_and_the_number_of_trials(spread, verdict):
    assert JudgedClaim("a", "b", spread).verdict == verdict
