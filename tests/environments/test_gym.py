"""The Gymnasium adapter: Gymnasium's own checker, and agreement with the world it wraps."""

import sys

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from support.errors import raises_code

from dowise import DowiseError, make_environment
from dowise.environments import front_door_world
from dowise.environments.gym import CausalBanditEnv


@pytest.mark.parametrize("name", ["task1", "task2", "healthcare"])
def test_gymnasium_finds_nothing_to_object_to(name):
    check_env(CausalBanditEnv(make_environment(name, 0), horizon=20), skip_render_check=True)


def test_a_run_is_what_the_world_says():
    world = make_environment("task3", seed=2)
    env = CausalBanditEnv(world, horizon=30)
    seen, info = env.reset(seed=4)
    assert info == {}
    rng = np.random.default_rng(0)
    for t in range(30):
        context = {"C": world.problem.domains["C"][seen[0]]}
        action = rng.integers(len(world.problem.arms))
        seen, reward, terminated, truncated, info = env.step(action)
        arm = world.problem.arms[action]
        assert info["regret"] == world.regret(arm, context)
        assert info["outcome"] == info["outcome"] | context | dict(arm)
        assert reward == world.problem.reward_values[info["outcome"]["Y"]]
        assert not terminated and truncated == (t == 29)
    with pytest.raises(DowiseError, match="call reset first"):
        env.step(0)


def test_without_context_the_observation_is_zero():
    env = CausalBanditEnv(front_door_world(), horizon=3)
    seen, _ = env.reset(seed=0)
    assert seen == 0 and env.observation_space.contains(seen)
    with raises_code("unknown-arm", "action 7", "3 arms"):
        env.step(7)


def test_bad_arguments_are_explained():
    with pytest.raises(DowiseError, match="horizon=0 must be"):
        CausalBanditEnv(front_door_world(), horizon=0)
    with pytest.raises(DowiseError, match="call reset first"):
        CausalBanditEnv(front_door_world(), horizon=1).step(0)


def test_without_gymnasium_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "dowise.environments.gym")
    with pytest.raises(DowiseError, match=r"pip install 'dowise\[gym\]'"):
        import dowise.environments.gym  # noqa: F401
