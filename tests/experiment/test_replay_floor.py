"""Experiments whose policy has a floor, or other information gains."""

import numpy as np
import pytest
from support.experiments import deciding_policy, play_experiment

from dowise.experiment.experiment import Experiment
from dowise.experiment.storage import MemoryStorage
from dowise.policies import BayesianPolicy

POLICIES = [
    (
        "ids",
        {"samples": 40, "gain": "all", "about": "map", "choice": "deterministic", "floor": 0.1},
    ),
    ("ids", {"samples": 40, "gain": "rows", "floor": 0.25}),
    ("ts", {"floor": 0.1, "propensity_samples": 30}),
    ("kl-ucb", {"floor": 0.2}),
    ("z2-kl-ucb", {"floor": 0.2, "resamples": 20}),
    ("random", {"floor": 0.5}),
]


@pytest.mark.parametrize(("policy", "options"), POLICIES, ids=[f"{p} {o}" for p, o in POLICIES])
def test_decisions_are_derived_again(policy, options):
    storage = MemoryStorage()
    experiment = play_experiment(9, policy=policy, options=options, storage=storage)
    for event in experiment.events():
        if event.kind == "asked":
            pi = np.array(event.payload["probabilities"])
            assert pi.sum() == pytest.approx(1) and (pi > 0).sum() > 2
    audit = experiment.audit()
    assert audit.ok, audit.finding
    again = Experiment.open(storage, "w")
    stored = {name: again._journal.read().config.options[name] for name in options}
    assert stored == options
    context = {"C": "0"}
    twin = play_experiment(9, policy=policy, options=options)
    assert again.ask(context).reason == twin.ask(context).reason


def test_the_belief_of_a_policy_with_a_floor_is_its_own():
    experiment = play_experiment(6, policy="ts", options={"floor": 0.1})
    assert isinstance(deciding_policy(experiment), BayesianPolicy)
    belief = deciding_policy(experiment).belief
    np.testing.assert_array_equal(
        experiment.belief.mean_rewards({"C": 1}), belief.mean_rewards({"C": 1})
    )
    assert not np.allclose(belief.mean_rewards({"C": 1}), 0.5)
