"""`dowise bounds --certify`: its figures by hand, and that certificates and the bound hold."""

import importlib.util
import json
from math import log
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import t as student

from dowise import CausalGraph, DowiseError, Problem, load_problem
from dowise.cli.main import main
from dowise.environments.random_worlds import WorldOptions
from dowise.environments.sources import random_worlds
from dowise.policies.certified_ids import CertifiedSampling
from dowise.simulation import bounds
from dowise.simulation.bounds import _upper_quantile
from dowise.simulation.trial import make_world, run_trial

pytestmark = pytest.mark.slow  # what only these need takes long to compile

EVIDENCE = Path(__file__).parents[2] / "evidence"


def evidence():
    path = EVIDENCE / "certificate.py"
    spec = importlib.util.spec_from_file_location("evidence_certificate", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_tables_of_the_evidence():
    page = (EVIDENCE.parent / "docs" / "certificate.md").read_text("utf-8")
    tables = (EVIDENCE / "results" / "certificate.md").read_text("utf-8")
    rows = [line for line in tables.splitlines() if line.startswith("|")]
    assert len(rows) == 12
    assert all(row in page.splitlines() for row in rows)


def test_the_figures_by_hand():
    problem = load_problem("task2")
    found = bounds(problem, 30, 2000, 200, seed=5, certify=True, trials=10)
    worlds, sums, held, lost = random_worlds(problem, WorldOptions(edges="prior")), [], [], []

    class Stepped(CertifiedSampling):
        def compiled_trial(self):
            return None

        def decide(self, context=None, rng=None, allowed=None):
            decision = super().decide(context, rng, allowed)
            sums[-1] += decision.figures["certificate"]
            held.append(decision.figures["certified"])
            return decision

    for trial in range(10):
        sums.append(0.0)
        world = make_world(worlds, 5, trial)
        played = run_trial(world, lambda p: Stepped(p, 200, 0.05, 30), 30, 5, trial)
        lost.append(played.regrets.sum())
    lam = CertifiedSampling(problem, horizon=30).lam
    mean = lam * found.entropy + np.mean(sums) + 0.05 * (1 + lam * log(2))
    page = found.as_dict()
    assert page["certified_lam"] == lam
    assert page["certified_mean"] == pytest.approx(mean)
    assert page["certified_share"] == pytest.approx(np.mean(held))
    assert page["certified_regret"] == pytest.approx(np.mean(lost))
    error = np.hypot(np.std(sums, ddof=1) / np.sqrt(10), lam * found.entropy_error)
    assert page["certified_bound"] == pytest.approx(mean + student.ppf(0.95, 9) * error, rel=1e-3)


def test_the_quantile():
    for freedom in (9, 20, 99, 1000):
        assert _upper_quantile(freedom) == pytest.approx(student.ppf(0.95, freedom), rel=1e-3)


def test_the_command():
    words = ["bounds", "task1", "--horizon", "20", "--samples", "1000", "--policy-samples", "100"]
    told = CliRunner().invoke(main, [*words, "--certify", "--trials", "12", "--json"])
    page = json.loads(told.stdout)
    assert page["certified_trials"] == 12
    assert 0 <= page["certified_share"] <= 1
    assert page["certified_mean"] <= page["certified_bound"]
    shown = CliRunner().invoke(main, [*words, "--certify", "--trials", "12"])
    assert "Certificates, certified-ids, N = 100" in shown.stdout
    assert "runs of certified-ids" in shown.stdout
    without = CliRunner().invoke(main, [*words, "--json"])
    assert not [name for name in json.loads(without.stdout) if "certified" in name]
    bad = CliRunner().invoke(main, [*words, "--trials", "12"])
    assert bad.exit_code == 2
    assert "--trials 12 requires --certify" in bad.output


def test_bad_trials():
    with pytest.raises(DowiseError, match="trials=3 must be a whole number, 10 or more"):
        bounds(load_problem("task1"), 10, 1000, 100, certify=True, trials=3)


def test_with_hidden_causes_and_three_values():
    """Mixtures and rewards of more than two values go the same way."""
    graph = CausalGraph.parse("X -> Y; X <-> Y; Z ?-> Y")
    problem = Problem(graph, "Y", domains={"Y": ("0", "1", "2")})
    found = bounds(problem, 15, 1000, 100, certify=True, trials=10)
    assert np.isfinite(found.certified.bound)


def test_certificates_hold():
    """2,400 rounds: 5 % are allowed, and 3 standard errors of a share of 5 % (1 in 740)."""
    module = evidence()
    for name in ("task1", "task3"):
        failed = module.failures(load_problem(name), 2, 100, exact=300_000)
        assert failed.mean() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / (len(failed) * 100))


def test_the_bound_holds_and_says_something():
    """In 60 worlds of task1 and healthcare: above the regret by 3 standard errors, below
    Corollary 2; evidence/certificate.py has 400 worlds of each task."""
    for name in ("task1", "healthcare"):
        found = bounds(load_problem(name), 300, 50_000, 1000, seed=2, certify=True, trials=60)
        own = found.certified
        error = own.regrets.std(ddof=1) / np.sqrt(60)
        assert own.regrets.mean() + 3 * error < own.mean
        assert own.bound < 0.9 * found.values()["corollary_2"]
        assert found.as_dict()["theorem_2"] == "inf"
