"""What experiments tell about other interventions: formulas, and estimators from counts."""

from dowise.identification.estimators import Estimator, estimators
from dowise.identification.identify import identify

__all__ = ["Estimator", "estimators", "identify"]
