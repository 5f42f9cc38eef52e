"""Live experiments whose policy has a floor, or gains that are not the paper's."""

import numpy as np
import pytest
from support.experiments import WARD, deciding_policy, new, played

from dowise import DowiseError
from dowise.experiment.experiment import Experiment
from dowise.experiment.storage import MemoryStorage
from dowise.policies import BayesianPolicy

PLANS = [
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


@pytest.mark.parametrize(("policy", "options"), PLANS, ids=[f"{p} {o}" for p, o in PLANS])
def test_a_journal_is_replayed(policy, options):
    storage = MemoryStorage()
    experiment = played(9, policy=policy, options=options, storage=storage)
    for event in experiment.events():
        if event.kind == "asked":
            pi = np.array(event.payload["probabilities"])
            assert pi.sum() == pytest.approx(1) and (pi > 0).sum() > 2
    audit = experiment.audit()
    assert audit.ok, audit.finding
    again = Experiment.open(storage, "w")
    kept = {name: again._journal.read().config.options[name] for name in options}
    assert kept == options
    context = {"C": "0"}
    twin = played(9, policy=policy, options=options)
    assert again.ask(context).reason == twin.ask(context).reason


def test_what_a_belief_says_is_still_asked_of_the_policy():
    experiment = played(6, policy="ts", options={"floor": 0.1})
    assert isinstance(deciding_policy(experiment), BayesianPolicy)
    own = deciding_policy(experiment).belief
    np.testing.assert_array_equal(
        experiment.belief.mean_rewards({"C": 1}), own.mean_rewards({"C": 1})
    )
    assert not np.allclose(own.mean_rewards({"C": 1}), 0.5)


def test_a_bad_floor_is_refused_before_anything_is_written():
    with pytest.raises(DowiseError, match="floor=1.5 must be at least 0 and below 1"):
        new(WARD, "ucb", {"floor": 1.5})
