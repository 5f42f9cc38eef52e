"""`certified-ids`: what it plays and says, and that it falls back on a draw of its own."""

import numpy as np
import pytest

from dowise import Belief, CausalGraph, DowiseError, Problem, check_policy, load_problem
from dowise.belief import Posterior
from dowise.environments import make_environment
from dowise.errors import DowiseWarning
from dowise.information import estimate_of, minimise_ratio
from dowise.information.certificate import make_certificate, net_values
from dowise.policies.certified_ids import CertifiedSampling
from dowise.simulation.trial import make_world, run_trial

pytestmark = pytest.mark.slow  # what only these need takes long to compile

DOUBTFUL = Problem(CausalGraph.parse("C -> X -> Y; C -> Y; X <-> Y; Z ?-> Y"), "Y", context="C")
THREE = Problem(
    CausalGraph.parse("X -> Z -> Y; X -> Y"), "Y", domains={"Y": ("low", "middle", "high")}
)
COSTLY = Problem(
    CausalGraph.parse("C -> X -> Y; C -> Y; Z -> X; Z -> Y; W -> Y"), "Y", "C", "Z",
    reward_values={"low": -1.0, "middle": 2.0, "high": 3.0}, costs={"X": 0.4, "W": 1.2},
)  # fmt: skip
ONE = 1e-9  # so small a λ that all is certified
HUGE = 1e6  # so large a one that nothing is
NOW_AND_THEN = {"samples": 300, "lam": 20.0}  # with these costs a third of the rounds is not


@pytest.fixture(scope="module")
def task1():
    return load_problem("task1")


def test_it_plays_what_ids_would_by_the_first_draws(task1):
    policy = CertifiedSampling(task1, lam=ONE)
    decision = policy.decide(rng=3)
    draws = policy.belief.posterior.draw((), 1000, np.random.default_rng(3))
    found = estimate_of(draws.head(300), task1.payoff)
    action = minimise_ratio(found.delta, found.gain)
    assert decision.figures["certified"]
    assert decision.probabilities == pytest.approx(action.distribution(3))
    assert decision.figures["q"] == action.probability
    assert decision.figures["pair"] == (task1.arms[action.first], task1.arms[action.second])
    assert decision.figures["delta"] == pytest.approx(found.delta)
    assert decision.figures["gain"] == pytest.approx(found.gain)
    assert decision.figures["best"] == pytest.approx(found.best)
    assert decision.figures["failure"] == 0.05 / 1000
    assert decision.reason.startswith("best trade-off of cost and information, certified: net ")
    assert "(wrong with a chance of 1 in 20,000), within the limit of" in decision.reason


def test_it_falls_back_on_another_draw(task1):
    """Arms as often as they are best: χ² with 2 degrees of freedom, a false alarm in 1,000."""
    policy = CertifiedSampling(task1, samples=100, lam=HUGE)
    rng = np.random.default_rng(0)
    decisions = [policy.decide(rng=rng) for _ in range(3000)]
    assert not any(d.figures["certified"] for d in decisions)
    assert all(d.probabilities is None for d in decisions)
    assert decisions[0].figures["certificate"] == decisions[0].figures["limit"] == 3 / (8 * HUGE)
    assert decisions[0].reason.startswith("sampled in proportion to each arm's chance")
    assert "is not certified: net of what it teaches it may lose" in decisions[0].reason
    played = np.array([sum(d.arm == arm for d in decisions) for arm in task1.arms])
    expected = 3000 * Belief(task1).probability_best(None, 1_000_000, 1)
    assert ((played - expected) ** 2 / expected).sum() < 13.8


def test_the_shares_of_other_draws_are_the_probabilities(task1):
    policy = CertifiedSampling(task1, samples=100, lam=HUGE, propensity_samples=400)
    rng = np.random.default_rng(4)
    policy.belief.posterior.draw((), 100, rng)
    winners, _ = policy.belief.posterior.draw((), 400, rng).winners(task1.payoff)
    decision = policy.decide(rng=4)
    assert decision.probabilities.tolist() == (np.bincount(winners, minlength=3) / 400).tolist()
    assert decision.probabilities[task1.arm_index(decision.arm)] > 0


def test_the_draw_it_falls_back_on_is_none_of_the_others(task1):
    """With the same stream: the draws of the certificate first, then one from another key."""
    policy = CertifiedSampling(task1, samples=100, lam=HUGE)
    rng = np.random.default_rng(4)
    policy.belief.posterior.draw((), 100, rng)
    winners, _ = policy.belief.posterior.draw((), 1, rng).winners(task1.payoff)
    assert policy.decide(rng=4).arm == task1.arms[winners[0]]


@pytest.mark.parametrize("lam", [ONE, HUGE, None])
def test_only_what_is_allowed_is_played(lam):
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
    only = policy.decide({"C": "1"}, 0, [allowed[0]])
    assert only.arm == allowed[0]


@pytest.mark.parametrize("problem", [DOUBTFUL, THREE], ids=["doubtful", "three values"])
def test_the_contract_of_other_problems(problem):
    check_policy("certified-ids", rounds=60, problems=[problem])


def test_doubtful_edges_among_the_figures():
    policy = CertifiedSampling(DOUBTFUL, samples=100)
    assert not policy.belief.posterior.is_settled
    assert policy.belief.posterior.has_exact_means
    figures = policy.decide({"C": "0"}, 1).figures
    assert figures["edges"] == policy.belief.edges()


def test_too_many_sets_of_edges_have_no_exact_means():
    pairs = [f"A{i} -> B{i} -> Y; A{i} <-> B{i}" for i in range(4)]
    more = "A0 ?-> B1; A1 ?-> B2; A2 ?-> B3; A0 ?-> B3; A0 <?> B1; A1 <?> B2; A2 <?> B3; A0 <?> B3"
    graph = CausalGraph.parse("; ".join([*pairs, more, "A0 <?> A1; A1 <?> A2"]))
    problem = Problem(graph, "Y", arms=["do()", "do(B1=1)"])  # one that no other test warns of
    with pytest.warns(DowiseWarning, match="the 128 likeliest"):
        posterior = Belief(problem).posterior
    assert not posterior.has_exact_means


def test_without_exact_means_nothing_is_said_of_gains(monkeypatch):
    monkeypatch.setattr(Posterior, "has_exact_means", False)
    policy = CertifiedSampling(DOUBTFUL, samples=2000, lam=20.0)
    rng = np.random.default_rng(0)
    found = [policy.certify((0,), np.arange(len(DOUBTFUL.arms)), rng) for _ in range(20)]
    assert not any(c.counts_gain for c in found)
    monkeypatch.setattr(Posterior, "has_exact_means", True)
    found = [policy.certify((0,), np.arange(len(DOUBTFUL.arms)), rng) for _ in range(20)]
    assert any(c.counts_gain for c in found)


def test_exact_means_are_made_where_what_is_taught_is_counted(monkeypatch):
    """Else the bound is the one that does without them; of 40 rounds there are some of each."""
    policy = CertifiedSampling(DOUBTFUL, samples=200, lam=2.0)
    posterior, arms, made = policy.belief.posterior, np.arange(len(DOUBTFUL.arms)), []
    exact, real = posterior.mean_distributions((0,)), Posterior.mean_distributions
    monkeypatch.setattr(
        Posterior, "mean_distributions", lambda own, codes: made.append(codes) or real(own, codes)
    )
    counted = []
    for seed in range(40):
        made.clear()
        found = policy.certify((0,), arms, np.random.default_rng(seed))
        draws = posterior.draw((0,), 200, np.random.default_rng(seed))
        counted.append(len(made))
        means, payoff = exact if made else None, DOUBTFUL.payoff
        worth = net_values(payoff, len(arms))
        again = make_certificate(draws, payoff, worth, means, policy.lam, policy.failure)
        assert found.bound == again.bound
        assert found.counts_gain == again.counts_gain
        assert len(made) <= 1
    assert 10 < sum(counted) < 30


class Told(CertifiedSampling):
    """Tells what a trial certified, and where it left its generator; stepping is out of bounds."""

    def compiled_trial(self):
        def play(script, rng):
            self.played, self.rng = self.play_certified(script, rng), rng
            return self.played.arms

        return play

    def _step(self, *_):
        raise AssertionError("the trial was not compiled")


class Stepped(CertifiedSampling):
    """Plays by `decide` and `observe`, and keeps what the decisions say."""

    def compiled_trial(self):
        self.certificates, self.held = [], []

    def decide(self, context=None, rng=None, allowed=None):
        self.rng, decision = rng, super().decide(context, rng, allowed)
        self.certificates.append(decision.figures["certificate"])
        self.held.append(decision.figures["certified"])
        return decision


def both(problem, rounds, options, loop=Told):
    """The same trial in one loop, and stepped through: the two policies, and what each played."""
    world, policies, arms = make_world(problem, 0, 0), [], []
    for kind in (loop, Stepped):

        def make(own, kind=kind):
            policies.append(kind(own, **options))
            return policies[-1]

        arms.append(run_trial(world, make, rounds, 0, 0).arms.tolist())
    return policies, arms


@pytest.mark.parametrize(
    ("problem", "options"),
    [
        ("task1", {}),
        ("task1", {"samples": 200}),
        ("task1", {"samples": 60, "lam": HUGE}),
        ("task2", {"samples": 300}),
        ("task3", {"samples": 300, "lam": 1.0}),
        (THREE, {"samples": 200}),
        (COSTLY, {"samples": 200}),
        (COSTLY, NOW_AND_THEN),
    ],
)
def test_a_trial_is_what_stepping_makes_of_it(problem, options):
    """Arms, certificates, what was learned and where the generator stands, to the last bit."""
    (ours, stepped), (arms, again) = both(problem, 80, options)
    assert arms == again
    assert ours.played.arms.tolist() == arms
    assert ours.played.certificates.tolist() == stepped.certificates
    assert ours.played.held.tolist() == stepped.held
    assert ours.rng.bit_generator.state == stepped.rng.bit_generator.state
    assert ours.fingerprint() == stepped.fingerprint()
    assert ours.next_number == stepped.next_number == 80


def test_a_trial_that_falls_back_now_and_then():
    """So that what follows a round of either kind has been compared above."""
    (ours, _), _ = both(COSTLY, 80, NOW_AND_THEN)
    assert 20 < ours.played.held.sum() < 60


@pytest.mark.parametrize(
    ("problem", "options"),
    [
        ("task1", {"samples": 60, "lam": HUGE, "propensity_samples": 20}),
        (Problem(CausalGraph.parse("X -> Y; Z -> Y"), "Y", prior=0.05), {"samples": 100}),
        (DOUBTFUL, {"samples": 100}),
    ],
    ids=["propensities", "small prior", "doubtful"],
)
def test_other_trials_are_played_round_by_round(problem, options):
    class Free(Told):
        _step = CertifiedSampling._step

    (ours, stepped), (arms, again) = both(problem, 30, options, Free)
    assert arms == again
    assert ours.played.certificates.tolist() == stepped.certificates
    with pytest.raises(AssertionError, match="was not compiled"):
        both(problem, 5, options)


def test_a_mersenne_twister_is_stepped_with():
    """It makes a uniform of two words of 32 bits, so that trials can't tell words from coins."""

    class Turned(Told):
        _step = CertifiedSampling._step

        def play_certified(self, script, _rng):
            return super().play_certified(script, np.random.Generator(np.random.MT19937(3)))

    class Stepping(Turned):
        def play_certified(self, script, _rng):
            return self._step(script, np.random.Generator(np.random.MT19937(3)))

    (ours, _), (arms, _) = both("task1", 30, {"samples": 100}, Turned)
    (stepped, _), (again, _) = both("task1", 30, {"samples": 100}, Stepping)
    assert arms == again
    assert ours.played.certificates.tolist() == stepped.played.certificates.tolist()


# -- arms with costs -------------------------------------------------------------------------------


def net_of_costs(problem, belief, codes, samples, rng):
    """P(Y = y) and net rewards under draws, (arms, …, samples): costs are taken off by hand."""
    p = belief.posterior.draw(codes, samples, rng).distributions().astype(np.float64)
    values = np.array([problem.reward_values[label] for label in problem.domains["Y"]])
    span = values.max() - values.min()
    paid = [sum(problem.costs.get(name, 0) for name in arm) for arm in problem.arms]
    return p, np.einsum("ayi,y->ai", p, (values - values.min()) / span) - np.c_[paid] / span


def what_it_bounds(p, net, pi, lam):
    """Δ(π) − λg(π) from draws, and its standard error: the mean of one number for each draw."""
    arms, _, samples = p.shape
    best = net.argmax(axis=0)
    numbers = net.max(axis=0) - pi @ net
    for a in range(arms):
        out = p[a].mean(axis=1)
        for k in range(arms):
            won = best == k
            if won.any():
                given = p[a][:, won].mean(axis=1)
                numbers[won] -= lam * pi[a] * (np.log(given / out) @ p[a][:, won])
    return numbers.mean(), numbers.std() / np.sqrt(samples)


def test_what_values_are_worth_where_arms_have_costs():
    plain, paid = np.array([0, 0.75, 1]), {"X": 0.1, "W": 0.3}
    worth = [plain - sum(paid[name] for name in arm) for arm in COSTLY.arms]
    assert net_values(COSTLY.payoff, len(COSTLY.arms)) == pytest.approx(np.array(worth))


@pytest.mark.parametrize("lam", [0.5, None])
def test_certificates_hold_where_arms_have_costs(lam):
    """10 beliefs. A certificate fails with probability 5e-5 and four standard errors are exceeded
    with 3.2e-5: a false alarm in 1,000 runs at most."""
    rng = np.random.default_rng(8)
    world, policy = make_environment(COSTLY, 2), CertifiedSampling(COSTLY, 20_000, lam=lam)
    arms, above = np.arange(len(COSTLY.arms)), []
    for t in range(101):
        context = world.draw_context(rng)
        if t in (0, 1, 2, 5, 10, 20, 30, 50, 70, 100):
            codes = COSTLY.context_codes(context)
            found = policy.certify(codes, arms, rng)
            p, net = net_of_costs(COSTLY, policy.belief, codes, 50_000, rng)
            pi = found.action.distribution(len(arms))
            value, error = what_it_bounds(p, net, pi, policy.lam)
            assert found.bound >= value - 4 * error
            above.append(found.bound - value)
        arm = policy.decide(context, rng).arm
        policy.observe(arm, world.play(arm, context, rng))
    if lam == 0.5:  # what is not counted of the gain is little
        assert max(above) < 0.01


def test_costs_among_the_allowed():
    """p* and Δ of some arms, net of what these cost: by hand from the same draws."""
    allowed = [arm for arm in COSTLY.arms if "W" in arm]
    places = [COSTLY.arm_index(arm) for arm in allowed]
    policy = CertifiedSampling(COSTLY, samples=1000, lam=ONE)
    decision = policy.decide({"C": "1"}, 5, allowed)
    codes, rng = COSTLY.context_codes({"C": "1"}), np.random.default_rng(5)
    _, net = net_of_costs(COSTLY, policy.belief, codes, 1000, rng)
    own = net[places, :300]
    best = np.bincount(own.argmax(axis=0), minlength=len(own)) / 300
    assert decision.figures["best"][places] == pytest.approx(best)
    assert decision.figures["delta"][places] == pytest.approx(
        own.max(axis=0).mean() - own.mean(axis=1), abs=1e-6
    )


def test_small_priors_take_double_precision():
    problem = Problem(CausalGraph.parse("X -> Y; Z -> Y"), "Y", prior=0.05)
    policy = CertifiedSampling(problem, samples=200)
    world = make_environment(problem, 1)
    rng = np.random.default_rng(1)
    for _ in range(20):
        decision = policy.decide(rng=rng)
        assert np.isfinite(decision.figures["certificate"])
        policy.observe(decision.arm, world.play(decision.arm, None, rng))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"lam": 0}, r"lam=0 must be more than 0; leave it out"),
        ({"lam": -1.0}, r"lam=-1.0 must be a number of at least 0"),
        ({"lam": "much"}, r"lam='much' must be a number"),
        ({"samples": 9}, r"samples=9 must be a whole number, 10 or more"),
        ({"delta": 1.5}, r"delta=1.5 must be between 0 and 1"),
        ({"horizon": 0}, r"horizon=0 must be a whole number, 1 or more"),
    ],
)
def test_bad_options(task1, options, says):
    with pytest.raises(DowiseError, match=says):
        CertifiedSampling(task1, **options)
