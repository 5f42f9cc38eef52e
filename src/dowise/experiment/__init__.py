"""Live experiments: ask, do, tell, and a journal that records everything.

Names are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dowise._core.codec import to_json as to_json
    from dowise.belief.belief import no_reward_note as no_reward_note
    from dowise.experiment.advice import floor_advice as floor_advice
    from dowise.experiment.advice import soft_advice as soft_advice
    from dowise.experiment.ask import LiveDecision as LiveDecision
    from dowise.experiment.audit import Audit as Audit
    from dowise.experiment.audit import Finding as Finding
    from dowise.experiment.base import ExperimentBase as ExperimentBase
    from dowise.experiment.case import Case as Case
    from dowise.experiment.case import CaseStatus as CaseStatus
    from dowise.experiment.config import ExperimentConfig as ExperimentConfig
    from dowise.experiment.config import option_to_json as option_to_json
    from dowise.experiment.config import problem_of as problem_of
    from dowise.experiment.evaluation import Evaluation as Evaluation
    from dowise.experiment.event import KINDS as KINDS
    from dowise.experiment.event import DamagedEventError as DamagedEventError
    from dowise.experiment.event import Event as Event
    from dowise.experiment.event import Head as Head
    from dowise.experiment.event import as_text as as_text
    from dowise.experiment.event import now as now
    from dowise.experiment.event import resolve_actor as resolve_actor
    from dowise.experiment.event_wording import decision_of as decision_of
    from dowise.experiment.event_wording import event_text as event_text
    from dowise.experiment.experiment import Experiment as Experiment
    from dowise.experiment.experiment import validate_name as validate_name
    from dowise.experiment.explanation import Explanation as Explanation
    from dowise.experiment.factor_tables import FormulaView as FormulaView
    from dowise.experiment.factor_tables import VariableView as VariableView
    from dowise.experiment.factor_tables import formula_view as formula_view
    from dowise.experiment.factor_tables import variable_view as variable_view
    from dowise.experiment.history import POINTS as POINTS
    from dowise.experiment.history import History as History
    from dowise.experiment.prior_sensitivity import Sensitivity as Sensitivity
    from dowise.experiment.prior_sensitivity import sensitivity as sensitivity
    from dowise.experiment.record_import import BadRowsError as BadRowsError
    from dowise.experiment.record_import import forbidden_note as forbidden_note
    from dowise.experiment.record_usage import RecordUsage as RecordUsage
    from dowise.experiment.rehearsal import Rehearsal as Rehearsal
    from dowise.experiment.rehearsal import rehearse as rehearse
    from dowise.experiment.status import ASSUMPTION as ASSUMPTION
    from dowise.experiment.status import ASSUMPTION_NOTE as ASSUMPTION_NOTE
    from dowise.experiment.status import ArmSummary as ArmSummary
    from dowise.experiment.status import Status as Status
    from dowise.experiment.status import context_text as context_text
    from dowise.experiment.status import default_tolerance as default_tolerance
    from dowise.experiment.status import describe_continuing as describe_continuing
    from dowise.experiment.status import describe_decisions as describe_decisions
    from dowise.experiment.status import describe_leader as describe_leader
    from dowise.experiment.status import describe_stopping as describe_stopping
    from dowise.experiment.status import describe_unused as describe_unused
    from dowise.experiment.status import duration as duration
    from dowise.experiment.status import pending_seconds as pending_seconds
    from dowise.experiment.view import StateView as StateView
    from dowise.experiment.wire import API as API
    from dowise.experiment.wire import belief_to_json as belief_to_json
    from dowise.experiment.wire import case_to_json as case_to_json
    from dowise.experiment.wire import change_to_json as change_to_json
    from dowise.experiment.wire import decision_to_json as decision_to_json
    from dowise.experiment.wire import evaluation_to_json as evaluation_to_json
    from dowise.experiment.wire import experiment_to_json as experiment_to_json
    from dowise.experiment.wire import explanation_to_json as explanation_to_json
    from dowise.experiment.wire import records_from_json as records_from_json
    from dowise.experiment.wire import status_to_json as status_to_json
    from dowise.experiment.wire import target_from_json as target_from_json
    from dowise.policies.independent_arms import IndependentArmsBelief as IndependentArmsBelief

# Names by module. Those that `__all__` lacks are for dowise_web, which imports nothing else.
_NAMES = {
    "dowise.experiment.advice": ("floor_advice", "soft_advice"),
    "dowise.experiment.ask": ("LiveDecision",),
    "dowise.experiment.audit": ("Audit", "Finding"),
    "dowise.experiment.base": ("ExperimentBase",),
    "dowise.experiment.case": ("Case", "CaseStatus"),
    "dowise.experiment.config": ("ExperimentConfig", "option_to_json", "problem_of"),
    "dowise.experiment.evaluation": ("Evaluation",),
    "dowise.experiment.event": (
        "DamagedEventError",
        "Event",
        "Head",
        "KINDS",
        "as_text",
        "now",
        "resolve_actor",
    ),
    "dowise.experiment.event_wording": ("decision_of", "event_text"),
    "dowise.experiment.experiment": ("Experiment", "validate_name"),
    "dowise.experiment.explanation": ("Explanation",),
    "dowise.experiment.factor_tables": (
        "FormulaView",
        "VariableView",
        "formula_view",
        "variable_view",
    ),
    "dowise.experiment.history": ("History", "POINTS"),
    "dowise.policies.independent_arms": ("IndependentArmsBelief",),
    "dowise.experiment.prior_sensitivity": ("Sensitivity", "sensitivity"),
    "dowise.experiment.record_import": ("BadRowsError", "forbidden_note"),
    "dowise.experiment.record_usage": ("RecordUsage",),
    "dowise.experiment.rehearsal": ("Rehearsal", "rehearse"),
    "dowise.experiment.status": (
        "ASSUMPTION",
        "ASSUMPTION_NOTE",
        "ArmSummary",
        "Status",
        "context_text",
        "default_tolerance",
        "describe_continuing",
        "describe_decisions",
        "describe_leader",
        "describe_stopping",
        "describe_unused",
        "duration",
        "pending_seconds",
    ),
    "dowise.experiment.view": ("StateView",),
    "dowise.experiment.wire": (
        "API",
        "belief_to_json",
        "case_to_json",
        "change_to_json",
        "decision_to_json",
        "evaluation_to_json",
        "experiment_to_json",
        "explanation_to_json",
        "records_from_json",
        "status_to_json",
        "target_from_json",
    ),
    "dowise._core.codec": ("to_json",),
    "dowise.belief.belief": ("no_reward_note",),
    "dowise.testing": ("check_storage",),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names}

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
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'dowise.experiment' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
