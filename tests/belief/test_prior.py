"""Priors: numbers, counts by variable or factor, files of them, and what is refused."""

import re

import numpy as np
import pytest

from dowise import Belief, CausalGraph, DowiseError, Problem, load_problem, make_policy


def view(belief, name):
    """The Dirichlet parameters of one CPT."""
    return belief.posterior.model.factors.view(belief.parameters, name)


def test_prior_of_many_kinds(tmp_path):
    problem = load_problem("task1")
    assert (Belief(problem, 2).parameters == 2).all()
    belief = Belief(problem, {"X": [[1, 2], [3, 4]], "Z": [5, 6]})
    assert view(belief, "X").tolist() == [[1, 2], [3, 4]]
    assert view(belief, "Z").tolist() == [5, 6]
    assert (view(belief, "Y") == 1).all()
    (tmp_path / "prior.toml").write_text("X = [[1, 2], [3, 4]]\nZ = [5, 6]\n")
    from_file = Belief(problem, tmp_path / "prior.toml")
    np.testing.assert_array_equal(from_file.parameters, belief.parameters)


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (0, "prior=0 must be above 0"),
        (1e300, "from 1e-06 to 1e+09"),
        (1e-300, "from 1e-06 to 1e+09"),
        (True, "must be numbers"),
        ([1, 2], "give one number, or a mapping"),
        ({"X": "2"}, "the prior of X must be numbers"),
        ({"X": {"a": 1}}, "the prior of X must be numbers"),
        ({"X": [[1, 2], [3]]}, "the prior of X must be numbers"),
        ({"X": [3]}, "the prior of X does not fit its CPT: give a number, 2 numbers, or"),
        (-1.0, "must be above 0"),
        (float("nan"), "must be above 0"),
        ({"XX": 1}, "the prior names 'XX', which is not a variable (did you mean 'X'?)"),
        ({"X": [1, 2, 3]}, "array of shape (2, 2) (axes Z, X)"),
        ({"X": 0}, "the prior of X must be above 0"),
        ("nowhere.toml", "nowhere.toml"),
    ],
)
def test_a_bad_prior_is_explained(prior, message):
    with pytest.raises(DowiseError, match=re.escape(message)):
        Belief(load_problem("task1"), prior)


def test_priors_by_the_name_of_a_factor():
    problem = Problem(CausalGraph.parse("Z -> X -> Y; X <-> Y!"), "Y", arms="all")
    belief = Belief(problem, {"Y": [1, 3], "Y | X": 7.0})
    means = belief.mean_cpts()
    assert list(means) == ["X", "Y", "Y | X", "Z"]
    assert means["Y"].shape == (2, 2) and means["Y | X"].shape == (2, 2, 2)
    np.testing.assert_allclose(means["Y"], [[0.25, 0.75]] * 2)
    np.testing.assert_allclose(means["Y | X"], 0.5)
    belief.update("do(X=1)", {"Z": 0, "Y": 1})
    np.testing.assert_allclose(belief.mean_cpts()["Y"], [[0.25, 0.75], [0.2, 0.8]])
    np.testing.assert_allclose(belief.mean_cpts()["Y | X"], 0.5)
    with pytest.raises(DowiseError, match=r"hidden causes give it several.*name 'Y', 'Y | X'"):
        Belief(problem, {"Y": np.ones((2, 2, 2))})
    with pytest.raises(DowiseError, match=r"'Y \| Z', which is not a variable"):
        Belief(problem, {"Y | Z": 1.0})


def test_priors_by_variable_where_edges_are_doubtful():
    problem = Problem(CausalGraph.parse("Z -> X -> Y; Z ?-> Y"), "Y", arms="all")
    belief = Belief(problem, {"Y": [1, 3], "X": [[1, 1], [1, 3]]})
    np.testing.assert_allclose(belief.mean_cpts()["Y"], [[[0.25, 0.75]] * 2] * 2)
    np.testing.assert_allclose(belief.mean_cpts()["X"], [[0.5, 0.5], [0.25, 0.75]])
    with pytest.raises(DowiseError, match=r"doubtful edges give it several: give a number or 2"):
        Belief(problem, {"Y": np.ones((2, 2, 2))})
    with pytest.raises(
        DowiseError, match="doubtful edges give variables several tables.*mean_cpts has"
    ):
        _ = belief.parameters


def test_the_problems_prior_is_the_default_and_what_is_given_goes_before():
    prior = {"X": [[1, 2], [3, 4]], "Z": [5, 6]}
    plain, problem = (Problem("Z -> X -> Y; Z -> Y", "Y", prior=p) for p in (None, prior))
    assert np.array_equal(Belief(problem).parameters, Belief(plain, prior).parameters)
    assert (Belief(problem, 2.0).parameters == 2).all() and (Belief(plain).parameters == 1).all()
    assert (Belief(Problem("X -> Y", "Y", prior=0.25)).parameters == 0.25).all()
    for name in ("ids", "ts"):
        policy = make_policy(name, problem)
        assert np.array_equal(policy.belief.parameters, Belief(plain, prior).parameters)
        assert (make_policy(name, problem, prior=3).belief.parameters == 3).all()
    best = make_policy("bayes-optimal", problem, horizon=1)
    assert np.array_equal(best.belief.parameters, Belief(plain, prior).parameters)
    doubtful = Belief(Problem("Z -> X -> Y; Z ?-> Y", "Y", prior={"Y": [1, 3]}))
    np.testing.assert_allclose(doubtful.mean_cpts()["Y"], [[[0.25, 0.75]] * 2] * 2)
    with pytest.raises(DowiseError, match="give the prior or a belief, not both"):
        make_policy("ids", problem, belief=Belief(problem), prior=2.0)


def test_a_belief_of_a_problem_with_a_prior_is_kept_and_copied(tmp_path):
    problem = Problem("X -> Y", "Y", prior={"X": [3, 1]})
    belief = Belief(problem)
    belief.update("do(X=1)", {"Y": 1})
    belief.save(tmp_path / "belief.json")
    for other in (belief.copy(), Belief.load(tmp_path / "belief.json", problem)):
        assert np.array_equal(other.parameters, belief.parameters)
