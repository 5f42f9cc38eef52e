"""Live experiments: ask, do, tell, and a journal that records everything.

Names are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dowise.experiment.advice import RecordUsage as RecordUsage
    from dowise.experiment.ask import LiveDecision as LiveDecision
    from dowise.experiment.audit import Audit as Audit
    from dowise.experiment.audit import Finding as Finding
    from dowise.experiment.base import ExperimentBase as ExperimentBase
    from dowise.experiment.case import Case as Case
    from dowise.experiment.evaluation import Evaluation as Evaluation
    from dowise.experiment.event import Event as Event
    from dowise.experiment.event import Head as Head
    from dowise.experiment.experiment import Experiment as Experiment
    from dowise.experiment.explanation import Explanation as Explanation
    from dowise.experiment.history import History as History
    from dowise.experiment.rehearsal import Rehearsal as Rehearsal
    from dowise.experiment.rehearsal import rehearse as rehearse
    from dowise.experiment.status import ArmSummary as ArmSummary
    from dowise.experiment.status import Status as Status
    from dowise.experiment.view import StateView as StateView

_HOME = {
    "ArmSummary": "dowise.experiment.status",
    "Audit": "dowise.experiment.audit",
    "Case": "dowise.experiment.case",
    "Evaluation": "dowise.experiment.evaluation",
    "Event": "dowise.experiment.event",
    "Experiment": "dowise.experiment.experiment",
    "ExperimentBase": "dowise.experiment.base",
    "Explanation": "dowise.experiment.explanation",
    "Finding": "dowise.experiment.audit",
    "Head": "dowise.experiment.event",
    "History": "dowise.experiment.history",
    "LiveDecision": "dowise.experiment.ask",
    "RecordUsage": "dowise.experiment.advice",
    "Rehearsal": "dowise.experiment.rehearsal",
    "StateView": "dowise.experiment.view",
    "Status": "dowise.experiment.status",
    "check_storage": "dowise.testing",
    "rehearse": "dowise.experiment.rehearsal",
}

__all__ = [
    "ArmSummary",
    "Audit",
    "Case",
    "Evaluation",
    "Event",
    "Experiment",
    "ExperimentBase",
    "Explanation",
    "Finding",
    "Head",
    "History",
    "LiveDecision",
    "RecordUsage",
    "Rehearsal",
    "StateView",
    "Status",
    "check_storage",
    "rehearse",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'dowise.experiment' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
