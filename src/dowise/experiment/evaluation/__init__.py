"""What another policy would have earned on the decisions of an experiment.

It knows nothing of storage: it is given the steps of an experiment in order (`Decide`, `Learn`,
`LearnMany`, `Retract`), replays them, and estimates.

>>> import numpy as np
>>> from dowise.problem import load_problem
>>> problem, steps = load_problem("task1"), []
>>> even = np.full(len(problem.arms), 1 / len(problem.arms))
>>> for number, (arm, reward) in enumerate([("do(X=0)", 0), ("do(X=1)", 1), ("do(X=1)", 1)], 1):
...     record = problem.record(arm, {"Y": reward}, number)
...     steps += [Decide(LoggedDecision(number, {}, even, even > 0, record)), Learn(record)]
>>> found = evaluate(problem, steps, "do(X=1)")
>>> round(found.ips.value, 3), found.ips.interval, found.unsupported, found.verdict
(2.0, (0.0, 1.0), 0.0, 'not clear')
"""

from dowise.experiment.evaluation.estimators import Estimated
from dowise.experiment.evaluation.evaluation import Evaluation, evaluate
from dowise.experiment.evaluation.replay import (
    Decide,
    Learn,
    LearnMany,
    LoggedDecision,
    NothingToEvaluateError,
    Replay,
    Retract,
    Step,
)

__all__ = [
    "Decide", "Estimated", "Evaluation", "Learn", "LearnMany", "LoggedDecision",
    "NothingToEvaluateError", "Replay", "Retract", "Step", "evaluate",
]  # fmt: skip
