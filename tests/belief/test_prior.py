"""Priors: numbers, counts by variable or factor, and files."""

import numpy as np
import pytest
from support.errors import raises_code

from dowise import Belief, CausalGraph, Problem, load_problem, make_policy


def cpt_parameters(belief, name):
    return belief.posterior.model.factors.view(belief.parameters, name)


def test_a_prior_is_a_number_a_mapping_or_a_file(tmp_path):
    problem = load_problem("task1")
    assert (Belief(problem, 2).parameters == 2).all()
    belief = Belief(problem, {"X": [[1, 2], [3, 4]], "Z": [5, 6]})
    assert cpt_parameters(belief, "X").tolist() == [[1, 2], [3, 4]]
    assert cpt_parameters(belief, "Z").tolist() == [5, 6]
    assert (cpt_parameters(belief, "Y") == 1).all()
    (tmp_path / "prior.toml").write_text("X = [[1, 2], [3, 4]]\nZ = [5, 6]\n")
    from_file = Belief(problem, tmp_path / "prior.toml")
    np.testing.assert_array_equal(from_file.parameters, belief.parameters)


@pytest.mark.parametrize(
    ("prior", "code", "mentioned"),
    [
        (1e300, "invalid-number", "1e+09"),
        (1e-300, "invalid-number", "1e-06"),
        ([1, 2], "invalid-type", "mapping"),
        ({"X": "2"}, "invalid-number", "prior of X"),
        ({"X": {"a": 1}}, "invalid-number", "prior of X"),
        ({"X": [[1, 2], [3]]}, "invalid-number", "prior of X"),
        ({"X": [3]}, "invalid-shape", "prior of X"),
        (float("nan"), "invalid-number", "nan"),
        ({"X": [1, 2, 3]}, "invalid-shape", "(2, 2) (axes Z, X)"),
        ("missing.toml", "file-not-found", "missing.toml"),
    ],
)
def test_invalid_priors_are_refused(prior, code, mentioned):
    with raises_code(code, mentioned):
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
    with raises_code("invalid-shape", "hidden causes", "'Y', 'Y | X'"):
        Belief(problem, {"Y": np.ones((2, 2, 2))})
    with raises_code("unknown-variable", "'Y | Z'"):
        Belief(problem, {"Y | Z": 1.0})


def test_priors_by_variable_with_doubtful_edges():
    problem = Problem(CausalGraph.parse("Z -> X -> Y; Z ?-> Y"), "Y", arms="all")
    belief = Belief(problem, {"Y": [1, 3], "X": [[1, 1], [1, 3]]})
    np.testing.assert_allclose(belief.mean_cpts()["Y"], [[[0.25, 0.75]] * 2] * 2)
    np.testing.assert_allclose(belief.mean_cpts()["X"], [[0.5, 0.5], [0.25, 0.75]])
    with raises_code("invalid-shape", "doubtful edges"):
        Belief(problem, {"Y": np.ones((2, 2, 2))})
    with raises_code("doubtful-edges", "mean_cpts"):
        _ = belief.parameters


def test_the_prior_of_the_problem_is_the_default():
    prior = {"X": [[1, 2], [3, 4]], "Z": [5, 6]}
    plain, problem = (Problem("Z -> X -> Y; Z -> Y", "Y", prior=p) for p in (None, prior))
    assert np.array_equal(Belief(problem).parameters, Belief(plain, prior).parameters)
    assert (Belief(problem, 2.0).parameters == 2).all() and (Belief(plain).parameters == 1).all()
    assert (Belief(Problem("X -> Y", "Y", prior=0.25)).parameters == 0.25).all()
    for name in ("ids", "ts"):
        policy = make_policy(name, problem)
        assert np.array_equal(policy.belief.parameters, Belief(plain, prior).parameters)
        assert (make_policy(name, problem, prior=3).belief.parameters == 3).all()
    optimal = make_policy("bayes-optimal", problem, horizon=1)
    assert np.array_equal(optimal.belief.parameters, Belief(plain, prior).parameters)
    doubtful = Belief(Problem("Z -> X -> Y; Z ?-> Y", "Y", prior={"Y": [1, 3]}))
    np.testing.assert_allclose(doubtful.mean_cpts()["Y"], [[[0.25, 0.75]] * 2] * 2)
    with raises_code("invalid-option"):
        make_policy("ids", problem, belief=Belief(problem), prior=2.0)


def test_the_prior_of_the_problem_is_saved_and_copied(tmp_path):
    problem = Problem("X -> Y", "Y", prior={"X": [3, 1]})
    belief = Belief(problem)
    belief.update("do(X=1)", {"Y": 1})
    belief.save(tmp_path / "belief.json")
    for other in (belief.copy(), Belief.load(tmp_path / "belief.json", problem)):
        assert np.array_equal(other.parameters, belief.parameters)
