"""Gymnasium adapter: Gymnasium's own checker, and agreement with the wrapped world."""

import sys

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from support.errors import raises_code

from dowise import make_environment
from dowise.environments import front_door_world
from dowise.environments.gym import CausalBanditEnv


@pytest.mark.parametrize("name", ["task1", "task2", "healthcare"])
def test_the_checker_of_gymnasium_passes(name):
    check_env(CausalBanditEnv(make_environment(name, 0), horizon=20), skip_render_check=True)


def test_an_episode_agrees_with_the_world():
    world = make_environment("task3", seed=2)
    env = CausalBanditEnv(world, horizon=30)
    observation, info = env.reset(seed=4)
    assert info == {}
    rng = np.random.default_rng(0)
    for t in range(30):
        context = {"C": world.problem.domains["C"][observation[0]]}
        action = rng.integers(len(world.problem.arms))
        observation, reward, terminated, truncated, info = env.step(action)
        arm = world.problem.arms[action]
        assert info["regret"] == world.regret(arm, context)
        assert info["outcome"] == info["outcome"] | context | dict(arm)
        assert reward == world.problem.reward_values[info["outcome"]["Y"]]
        assert not terminated and truncated == (t == 29)
    with raises_code("invalid-input", "reset"):
        env.step(0)


def test_without_context_the_observation_is_zero():
    env = CausalBanditEnv(front_door_world(), horizon=3)
    observation, _ = env.reset(seed=0)
    assert observation == 0 and env.observation_space.contains(observation)
    with raises_code("unknown-arm", "action 7", "3 arms"):
        env.step(7)


def test_invalid_arguments_are_refused():
    with raises_code("invalid-number", "horizon=0"):
        CausalBanditEnv(front_door_world(), horizon=0)
    with raises_code("invalid-input", "reset"):
        CausalBanditEnv(front_door_world(), horizon=1).step(0)


def test_without_gymnasium_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "dowise.environments.gym")
    with raises_code("missing-extra", "dowise[gym]"):
        import dowise.environments.gym  # noqa: F401
