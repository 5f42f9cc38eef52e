"""`bounds(certify=True)`: its figures recomputed, and the validity of certificates and bound."""

import importlib.util
import json
from math import log
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import t as student

from dowise import CausalGraph, Problem, load_problem
from dowise.cli.main import main
from dowise.environments.random_worlds import WorldOptions
from dowise.environments.sources import random_worlds
from dowise.policies.certified_ids import CertifiedSampling
from dowise.simulation import bounds
from dowise.simulation.bounds import _upper_quantile
from dowise.simulation.trial import make_world, run_trial

pytestmark = pytest.mark.slow  # the kernels take long to compile

EVIDENCE = Path(__file__).parents[2] / "evidence"


def test_documentation_has_the_tables_of_the_evidence():
    page = (EVIDENCE.parent / "docs" / "certificate.md").read_text("utf-8").splitlines()
    tables = (EVIDENCE / "results" / "certificate.md").read_text("utf-8")
    rows = [line for line in tables.splitlines() if line.startswith("|")]
    assert len(rows) == 12 and {*rows} <= {*page}


def test_figures_equal_those_of_single_decisions():
    problem = load_problem("task2")
    result = bounds(problem, 30, 2000, 200, seed=5, certify=True, trials=10)
    worlds = random_worlds(problem, WorldOptions(edges="prior"))
    sums, certified, regrets = [], [], []

    class Stepwise(CertifiedSampling):
        def compiled_trial(self):
            return None

        def decide(self, context=None, rng=None, allowed=None):
            decision = super().decide(context, rng, allowed)
            sums[-1] += decision.figures["certificate"]
            certified.append(decision.figures["certified"])
            return decision

    for trial in range(10):
        sums.append(0.0)
        world = make_world(worlds, 5, trial)
        played = run_trial(world, lambda p: Stepwise(p, 200, 0.05, 30), 30, 5, trial)
        regrets.append(played.regrets.sum())
    lam = CertifiedSampling(problem, horizon=30).lam
    mean = lam * result.entropy + np.mean(sums) + 0.05 * (1 + lam * log(2))
    data = result.as_dict()
    assert data["certified_lam"] == lam
    assert data["certified_mean"] == pytest.approx(mean)
    assert data["certified_share"] == pytest.approx(np.mean(certified))
    assert data["certified_regret"] == pytest.approx(np.mean(regrets))
    error = np.hypot(np.std(sums, ddof=1) / np.sqrt(10), lam * result.entropy_error)
    assert data["certified_bound"] == pytest.approx(mean + student.ppf(0.95, 9) * error, rel=1e-3)


def test_quantile_of_student_agrees_with_scipy():
    for freedom in (9, 20, 99, 1000):
        assert _upper_quantile(freedom) == pytest.approx(student.ppf(0.95, freedom), rel=1e-3)


def test_command_shows_certificates():
    command = ["bounds", "task1", "--horizon", "20", "--samples", "1000", "--policy-samples", "100"]
    certify = [*command, "--certify", "--trials", "12"]
    data = json.loads(CliRunner().invoke(main, [*certify, "--json"]).stdout)
    assert data["certified_trials"] == 12
    assert 0 <= data["certified_share"] <= 1
    assert data["certified_mean"] <= data["certified_bound"]
    assert "Certificates, certified-ids, N = 100" in CliRunner().invoke(main, certify).stdout
    without = json.loads(CliRunner().invoke(main, [*command, "--json"]).stdout)
    assert not [name for name in without if "certified" in name]


def test_hidden_causes_and_three_valued_rewards():
    graph = CausalGraph.parse("X -> Y; X <-> Y; Z ?-> Y")
    problem = Problem(graph, "Y", domains={"Y": ("0", "1", "2")})
    result = bounds(problem, 15, 1000, 100, certify=True, trials=10)
    assert np.isfinite(result.certified.bound)


def test_certificates_fail_in_at_most_five_per_cent_of_rounds():
    """2,400 rounds; 3 standard errors of a share of 5 % are 1 in 740."""
    spec = importlib.util.spec_from_file_location("certificate", EVIDENCE / "certificate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name in ("task1", "task3"):
        failed = module.failures(load_problem(name), 2, 100, exact=300_000)
        assert failed.mean() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / (len(failed) * 100))


def test_bound_is_above_the_regret_and_below_corollary_2():
    """60 worlds, 3 standard errors; evidence/certificate.py has 400 worlds of each task."""
    for name in ("task1", "healthcare"):
        result = bounds(load_problem(name), 300, 50_000, 1000, seed=2, certify=True, trials=60)
        certified = result.certified
        error = certified.regrets.std(ddof=1) / np.sqrt(60)
        assert certified.regrets.mean() + 3 * error < certified.mean
        assert certified.bound < 0.9 * result.values()["corollary_2"]
        assert result.as_dict()["theorem_2"] == "inf"
