"""Off-policy evaluation: what another policy would have earned on the decisions of an experiment.

The package does not read storage. It replays the steps of an experiment in order (`Decide`,
`Learn`, `LearnMany`, `Retract`), and estimates.

>>> import numpy as np
>>> from dowise.problem import load_problem
>>> problem, steps = load_problem("task1"), []
>>> even = np.full(len(problem.arms), 1 / len(problem.arms))
>>> for number, (arm, reward) in enumerate([("do(X=0)", 0), ("do(X=1)", 1), ("do(X=1)", 1)], 1):
...     record = problem.record(arm, {"Y": reward}, number)
...     steps += [Decide(LoggedDecision(number, {}, even, even > 0, record)), Learn(record)]
>>> result = evaluate(problem, steps, "do(X=1)")
>>> round(result.ips.value, 3), result.ips.interval, result.unsupported, result.verdict
(2.0, (0.0, 1.0), 0.0, 'not clear')
"""

from dowise.experiment.evaluation.decision_log import (
    Decide,
    Learn,
    LearnMany,
    LoggedDecision,
    NothingToEvaluateError,
    Replay,
    Retract,
    Step,
)
from dowise.experiment.evaluation.estimators import IntervalEstimate
from dowise.experiment.evaluation.evaluation import Evaluation, evaluate

__all__ = [
    "Decide",
    "Evaluation",
    "IntervalEstimate",
    "Learn",
    "LearnMany",
    "LoggedDecision",
    "NothingToEvaluateError",
    "Replay",
    "Retract",
    "Step",
    "evaluate",
]
