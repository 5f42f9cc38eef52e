"""What every policy decides, over 300 rounds, for fixed seeds: the golden file and how it is made.

    python tests/golden/record.py > tests/golden/decisions.json

One character a round: the place of the arm among the problem's arms. A change that moves a single
decision shows; where that is meant, renew the file and say in the commit which part and why.
"""

from __future__ import annotations

import json
import string
import sys
from pathlib import Path

import numpy as np

from dowise import CausalGraph, Problem, make_environment, make_policy
from dowise.environments import front_door_world

FILE = Path(__file__).with_name("decisions.json")
ROUNDS = 300
DIGITS = string.digits + string.ascii_letters
POSTERIOR = ["ids", "ts"]
OTHERS = ["bernoulli-ts", "kl-ucb", "random", "ucb", "z2-kl-ucb", "z2-ts"]
WORLDS = ["task1", "task2", "task3", "healthcare", "asia", "front-door", "X -> Y"]


def world_of(name):
    """The world that a part of the file was recorded in."""
    if name == "front-door":
        return front_door_world()
    if name == "X -> Y":
        return make_environment(Problem(CausalGraph.parse(name), "Y"), seed=3)
    return make_environment(name, seed=3)


def policies_of(name):
    """The policies that play there: hidden causes rule a posterior out, size rules planning out."""
    if name == "front-door":
        return OTHERS
    return ["bayes-optimal"] if name == "X -> Y" else POSTERIOR + OTHERS


def decisions(name, policy):
    """One character for the arm of every round."""
    world, rounds = world_of(name), 60 if policy == "bayes-optimal" else ROUNDS
    options = {"horizon": rounds} if policy == "bayes-optimal" else {}
    player = make_policy(policy, world.problem, **options)
    outcomes, own = np.random.default_rng(5), np.random.default_rng(7)
    played = []
    for _ in range(rounds):
        context = world.draw_context(outcomes)
        arm = player.decide(context, own).arm
        player.observe(arm, world.play(arm, context, outcomes))
        played.append(DIGITS[world.problem.arm_index(arm)])
    return "".join(played)


if __name__ == "__main__":
    found = {
        name: {policy: decisions(name, policy) for policy in policies_of(name)} for name in WORLDS
    }
    json.dump(found, sys.stdout, indent=1)
    sys.stdout.write("\n")
