"""`Experiment.warm_up` compiles everything and changes nothing."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.experiments import new_experiment

from dowise import load_problem

TESTS = str(Path(__file__).parents[1])
ROUND = """
import sys
from numba.core.dispatcher import Dispatcher
from support.experiments import new_experiment
from dowise import load_problem

def loaded():
    kernels = {
        id(kernel): kernel
        for name, module in [*sys.modules.items()] if name.startswith("dowise")
        for kernel in vars(module).values() if isinstance(kernel, Dispatcher)
    }
    return {(k.py_func.__module__, k.py_func.__name__): len(k.overloads) for k in kernels.values()}

problem, policy = sys.argv[1:]
experiment = new_experiment(load_problem(problem), policy, {})
experiment.warm_up()
before = loaded()
context = {name: experiment.problem.domains[name][1] for name in experiment.problem.context}
first, second, third = experiment.ask_many([context] * 3)
values = {name: domain[1] for name, domain in experiment.problem.domains.items()}
experiment.tell(first.id, {"Z": 1})
experiment.tell(first.id, values | dict(first.arm))
experiment.tell(second.id, values | dict(second.arm))
experiment.withdraw(third.id, "left")
experiment.amend(first.id, {"Y": 0}, "typo")
experiment.ask(context)
experiment.status(), experiment.status(context), experiment.history(), experiment.explain(2)
experiment.counted(), experiment.belief, experiment.records()
assert experiment.audit().ok
after = loaded()
print({name: after[name] for name in after if after[name] != before.get(name)})
"""


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["best", "ids", "ucb"])
def test_nothing_is_compiled_after_a_warm_up(policy):
    command = [sys.executable, "-c", ROUND, "task2", policy]
    path = os.pathsep.join([TESTS, *filter(None, [os.environ.get("PYTHONPATH")])])
    settings = {**os.environ, "PYTHONPATH": path}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=settings)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "{}\n"


@pytest.mark.parametrize("problem", ["task1", "task2", "healthcare"])
def test_a_warm_up_records_nothing(problem):
    experiment = new_experiment(load_problem(problem))
    experiment.warm_up()
    assert experiment.head.number == 1 and not experiment.records()
    assert experiment.counts()["asked"] == experiment.counted().all == 0
