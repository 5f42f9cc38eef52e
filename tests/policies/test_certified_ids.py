"""`certified-ids`: certified choices, the fallback to Thompson Sampling, and compiled trials."""

import numpy as np
import pytest
from support.errors import raises_code
from support.policies import play

from dowise import Belief, CausalGraph, Problem, load_problem
from dowise.belief import Posterior
from dowise.environments import make_environment
from dowise.errors import DowiseWarning
from dowise.information import estimate_of, minimise_ratio
from dowise.information.certificate import make_certificate, net_values
from dowise.policies.certified_ids import CertifiedSampling
from dowise.simulation.trial import make_world, run_trial

pytestmark = pytest.mark.slow  # kernels that only these tests need take long to compile

DOUBTFUL = Problem(CausalGraph.parse("C -> X -> Y; C -> Y; X <-> Y; Z ?-> Y"), "Y", context="C")
THREE = Problem(
    CausalGraph.parse("X -> Z -> Y; X -> Y"), "Y", domains={"Y": ("low", "middle", "high")}
)
COSTLY = Problem(
    CausalGraph.parse("C -> X -> Y; C -> Y; Z -> X; Z -> Y; W -> Y"),
    "Y",
    "C",
    "Z",
    reward_values={"low": -1.0, "middle": 2.0, "high": 3.0},
    costs={"X": 0.4, "W": 1.2},
)
ALWAYS = 1e-9  # λ so small that every round is certified
NEVER = 1e6  # λ so large that none is
SOMETIMES = {"samples": 300, "lam": 20.0}  # with costs, two thirds of the rounds are


TASK1 = load_problem("task1")


def test_a_certified_choice_is_that_of_ids_on_the_first_draws():
    policy = CertifiedSampling(TASK1, lam=ALWAYS)
    decision = policy.decide(rng=3)
    draws = policy.belief.posterior.draw((), 1000, np.random.default_rng(3))
    expected = estimate_of(draws.head(300), TASK1.payoff)
    action = minimise_ratio(expected.delta, expected.gain)
    assert decision.figures["certified"]
    assert decision.probabilities == pytest.approx(action.distribution(3))
    assert decision.figures["q"] == action.probability
    assert decision.figures["pair"] == (TASK1.arms[action.first], TASK1.arms[action.second])
    assert decision.figures["delta"] == pytest.approx(expected.delta)
    assert decision.figures["gain"] == pytest.approx(expected.gain)
    assert decision.figures["best"] == pytest.approx(expected.best)
    assert decision.figures["failure"] == 0.05 / 1000
    assert decision.reason.startswith("best trade-off of cost and information, certified: net ")
    assert "(wrong with a chance of 1 in 20,000), within the limit of" in decision.reason


def test_uncertified_choices_sample_in_proportion_to_p_star():
    """χ² with 2 degrees of freedom: a false alarm in 1,000."""
    policy = CertifiedSampling(TASK1, samples=100, lam=NEVER)
    rng = np.random.default_rng(0)
    decisions = [policy.decide(rng=rng) for _ in range(3000)]
    assert not any(d.figures["certified"] for d in decisions)
    assert all(d.probabilities is None for d in decisions)
    assert decisions[0].figures["certificate"] == decisions[0].figures["limit"] == 3 / (8 * NEVER)
    assert decisions[0].reason.startswith("sampled in proportion to each arm's chance")
    assert "is not certified: net of what it teaches it may lose" in decisions[0].reason
    played = np.array([sum(d.arm == arm for d in decisions) for arm in TASK1.arms])
    expected = 3000 * Belief(TASK1).probability_best(None, 1_000_000, 1)
    assert ((played - expected) ** 2 / expected).sum() < 13.8


def test_propensity_samples_come_after_the_draws_of_the_certificate():
    policy = CertifiedSampling(TASK1, samples=100, lam=NEVER, propensity_samples=400)
    rng = np.random.default_rng(4)
    policy.belief.posterior.draw((), 100, rng)
    winners, _ = policy.belief.posterior.draw((), 400, rng).winners(TASK1.payoff)
    decision = policy.decide(rng=4)
    assert decision.probabilities.tolist() == (np.bincount(winners, minlength=3) / 400).tolist()
    assert decision.probabilities[TASK1.arm_index(decision.arm)] > 0


@pytest.mark.parametrize("lam", [ALWAYS, NEVER, None])
def test_only_allowed_arms_are_played(lam):
    problem = load_problem("task3")
    policy = CertifiedSampling(problem, samples=50, lam=lam)
    allowed = problem.arms[2:5]
    for seed in range(20):
        decision = policy.decide({"C": "1"}, seed, allowed)
        assert decision.arm in allowed
        assert decision.figures["limit"] == pytest.approx(3 / (8 * policy.lam))
        if decision.probabilities is not None:
            assert decision.probabilities.sum() == pytest.approx(1)
            assert decision.probabilities[[0, 1, 5, 6, 7, 8]].max() == 0


def test_figures_include_probabilities_of_doubtful_edges():
    policy = CertifiedSampling(DOUBTFUL, samples=100)
    assert not policy.belief.posterior.is_settled
    assert policy.belief.posterior.has_exact_means
    figures = policy.decide({"C": "0"}, 1).figures
    assert figures["edges"] == policy.belief.edges()


def test_too_many_sets_of_edges_have_no_exact_means():
    pairs = [f"A{i} -> B{i} -> Y; A{i} <-> B{i}" for i in range(4)]
    more = "A0 ?-> B1; A1 ?-> B2; A2 ?-> B3; A0 ?-> B3; A0 <?> B1; A1 <?> B2; A2 <?> B3; A0 <?> B3"
    graph = CausalGraph.parse("; ".join([*pairs, more, "A0 <?> A1; A1 <?> A2"]))
    problem = Problem(graph, "Y", arms=["do()", "do(B1=1)"])  # one that no other test warns about
    with pytest.warns(DowiseWarning, match="the 128 likeliest"):
        posterior = Belief(problem).posterior
    assert not posterior.has_exact_means


def test_gains_count_only_with_exact_means(monkeypatch):
    monkeypatch.setattr(Posterior, "has_exact_means", False)
    policy = CertifiedSampling(DOUBTFUL, samples=2000, lam=20.0)
    rng = np.random.default_rng(0)
    arms = np.arange(len(DOUBTFUL.arms))
    assert not any(policy.certify((0,), arms, rng).counts_gain for _ in range(20))
    monkeypatch.setattr(Posterior, "has_exact_means", True)
    assert any(policy.certify((0,), arms, rng).counts_gain for _ in range(20))


def test_exact_means_are_computed_only_where_gains_count(monkeypatch):
    """Otherwise the bound is the one without means; 40 rounds have some of each."""
    policy = CertifiedSampling(DOUBTFUL, samples=200, lam=2.0)
    posterior, arms, calls = policy.belief.posterior, np.arange(len(DOUBTFUL.arms)), []
    exact, original = posterior.mean_distributions((0,)), Posterior.mean_distributions
    monkeypatch.setattr(
        Posterior,
        "mean_distributions",
        lambda self, codes: calls.append(codes) or original(self, codes),
    )
    counted = []
    for seed in range(40):
        calls.clear()
        certificate = policy.certify((0,), arms, np.random.default_rng(seed))
        draws = posterior.draw((0,), 200, np.random.default_rng(seed))
        counted.append(len(calls))
        means, payoff = exact if calls else None, DOUBTFUL.payoff
        net = net_values(payoff, len(arms))
        expected = make_certificate(draws, payoff, net, means, policy.lam, policy.failure)
        assert certificate.bound == expected.bound
        assert certificate.counts_gain == expected.counts_gain
        assert len(calls) <= 1
    assert 10 < sum(counted) < 30


class Compiled(CertifiedSampling):
    """Keeps the certificates of a trial and its generator; refuses to step."""

    def compiled_trial(self):
        def play(script, rng):
            self.played, self.rng = self.play_certified(script, rng), rng
            return self.played.arms

        return play

    def _step(self, *_):
        raise AssertionError("the trial was not compiled")


class Stepped(CertifiedSampling):
    """Plays by `decide` and `observe`, and keeps the certificates of its decisions."""

    def compiled_trial(self):
        self.certificates, self.held = [], []

    def decide(self, context=None, rng=None, allowed=None):
        self.rng, decision = rng, super().decide(context, rng, allowed)
        self.certificates.append(decision.figures["certificate"])
        self.held.append(decision.figures["certified"])
        return decision


def play_both(problem, rounds, options, compiled=Compiled):
    """Play the same trial compiled and stepped; return the two policies and their arms."""
    world, policies, arms = make_world(problem, 0, 0), [], []
    for cls in (compiled, Stepped):

        def make(problem, cls=cls):
            policies.append(cls(problem, **options))
            return policies[-1]

        arms.append(run_trial(world, make, rounds, 0, 0).arms.tolist())
    return policies, arms


@pytest.mark.parametrize(
    ("problem", "options"),
    [
        ("task1", {}),
        ("task1", {"samples": 200}),
        ("task1", {"samples": 60, "lam": NEVER}),
        ("task2", {"samples": 300}),
        ("task3", {"samples": 300, "lam": 1.0}),
        (THREE, {"samples": 200}),
        (COSTLY, {"samples": 200}),
        (COSTLY, SOMETIMES),
    ],
)
def test_a_compiled_trial_equals_stepping(problem, options):
    """Arms, certificates, knowledge and the state of the generator, to the last bit."""
    (compiled, stepped), (arms, stepped_arms) = play_both(problem, 80, options)
    assert arms == stepped_arms
    assert compiled.played.arms.tolist() == arms
    assert compiled.played.certificates.tolist() == stepped.certificates
    assert compiled.played.held.tolist() == stepped.held
    assert compiled.rng.bit_generator.state == stepped.rng.bit_generator.state
    assert compiled.fingerprint() == stepped.fingerprint()
    assert compiled.next_number == stepped.next_number == 80
    assert options is not SOMETIMES or 20 < compiled.played.held.sum() < 60


@pytest.mark.parametrize(
    ("problem", "options"),
    [
        ("task1", {"samples": 60, "lam": NEVER, "propensity_samples": 20}),
        (Problem(CausalGraph.parse("X -> Y; Z -> Y"), "Y", prior=0.05), {"samples": 100}),
        (DOUBTFUL, {"samples": 100}),
    ],
    ids=["propensities", "small prior", "doubtful"],
)
def test_other_trials_are_stepped(problem, options):
    class MayStep(Compiled):
        _step = CertifiedSampling._step

    (policy, stepped), (arms, stepped_arms) = play_both(problem, 30, options, MayStep)
    assert arms == stepped_arms
    assert policy.played.certificates.tolist() == stepped.certificates
    with pytest.raises(AssertionError, match="was not compiled"):
        play_both(problem, 5, options)


def test_a_trial_with_a_mersenne_twister_is_stepped():
    """It makes a uniform from two words of 32 bits, which compiled trials do not support."""

    class Twister(Compiled):
        _step = CertifiedSampling._step

        def play_certified(self, script, _rng):
            return super().play_certified(script, np.random.Generator(np.random.MT19937(3)))

    class Stepping(Twister):
        def play_certified(self, script, _rng):
            return self._step(script, np.random.Generator(np.random.MT19937(3)))

    (policy, _), (arms, _) = play_both("task1", 30, {"samples": 100}, Twister)
    (stepped, _), (stepped_arms, _) = play_both("task1", 30, {"samples": 100}, Stepping)
    assert arms == stepped_arms
    assert policy.played.certificates.tolist() == stepped.played.certificates.tolist()


# -- arms with costs --------------------------------------------------------------------------


def net_of_costs(problem, belief, codes, samples, rng):
    """P(Y = y) and net rewards under draws, (arms, …, samples), computed without Payoff."""
    p = belief.posterior.draw(codes, samples, rng).distributions().astype(np.float64)
    values = np.array([problem.reward_values[label] for label in problem.domains["Y"]])
    span = values.max() - values.min()
    costs = [sum(problem.costs.get(name, 0) for name in arm) for arm in problem.arms]
    return p, np.einsum("ayi,y->ai", p, (values - values.min()) / span) - np.c_[costs] / span


def bounded_value(p, net, pi, lam):
    """Δ(π) − λg(π) from draws, as a mean of one number per draw, and its standard error."""
    arms, _, samples = p.shape
    best = net.argmax(axis=0)
    numbers = net.max(axis=0) - pi @ net
    for a in range(arms):
        marginal = p[a].mean(axis=1)
        for k in range(arms):
            won = best == k
            if won.any():
                conditional = p[a][:, won].mean(axis=1)
                numbers[won] -= lam * pi[a] * (np.log(conditional / marginal) @ p[a][:, won])
    return numbers.mean(), numbers.std() / np.sqrt(samples)


def test_net_values_subtract_the_costs_of_arms():
    scaled, costs = np.array([0, 0.75, 1]), {"X": 0.1, "W": 0.3}
    expected = [scaled - sum(costs[name] for name in arm) for arm in COSTLY.arms]
    assert net_values(COSTLY.payoff, len(COSTLY.arms)) == pytest.approx(np.array(expected))


@pytest.mark.parametrize("lam", [0.5, None])
def test_certificates_hold_for_arms_with_costs(lam):
    """10 beliefs. A certificate fails with probability 5e-5 and four standard errors are exceeded
    with 3.2e-5: a false alarm in 1,000 runs at most."""
    rng = np.random.default_rng(8)
    world, policy = make_environment(COSTLY, 2), CertifiedSampling(COSTLY, 20_000, lam=lam)
    arms, above = np.arange(len(COSTLY.arms)), []
    for t in range(101):
        context = world.draw_context(rng)
        if t in (0, 1, 2, 5, 10, 20, 30, 50, 70, 100):
            codes = COSTLY.context_codes(context)
            certificate = policy.certify(codes, arms, rng)
            p, net = net_of_costs(COSTLY, policy.belief, codes, 50_000, rng)
            pi = certificate.action.distribution(len(arms))
            value, error = bounded_value(p, net, pi, policy.lam)
            assert certificate.bound >= value - 4 * error
            above.append(certificate.bound - value)
        arm = policy.decide(context, rng).arm
        policy.observe(arm, world.play(arm, context, rng))
    if lam == 0.5:  # little of the gain is not counted
        assert max(above) < 0.01


def test_figures_of_allowed_arms_are_net_of_cost():
    """p* and Δ of some arms, computed from the same draws."""
    allowed = [arm for arm in COSTLY.arms if "W" in arm]
    indices = [COSTLY.arm_index(arm) for arm in allowed]
    policy = CertifiedSampling(COSTLY, samples=1000, lam=ALWAYS)
    decision = policy.decide({"C": "1"}, 5, allowed)
    codes, rng = COSTLY.context_codes({"C": "1"}), np.random.default_rng(5)
    _, net = net_of_costs(COSTLY, policy.belief, codes, 1000, rng)
    net = net[indices, :300]
    best = np.bincount(net.argmax(axis=0), minlength=len(net)) / 300
    assert decision.figures["best"][indices] == pytest.approx(best)
    assert decision.figures["delta"][indices] == pytest.approx(
        net.max(axis=0).mean() - net.mean(axis=1), abs=1e-6
    )


def test_small_priors_are_supported():
    problem = Problem(CausalGraph.parse("X -> Y; Z -> Y"), "Y", prior=0.05)
    policy = CertifiedSampling(problem, samples=200)
    for _ in range(5):
        play(policy, make_environment(problem, 1), 4, rng=1)
        assert np.isfinite(policy.decide(rng=0).figures["certificate"])


@pytest.mark.parametrize(
    "options",
    [
        {"lam": 0},
        {"lam": -1.0},
        {"lam": "much"},
        {"samples": 9},
        {"delta": 1.5},
        {"horizon": 0},
    ],
)
def test_invalid_options_are_refused(options):
    ((option, value),) = options.items()
    with raises_code("invalid-number", f"{option}={value!r}"):
        CertifiedSampling(TASK1, **options)
