"""Identification of effects from other experiments: formulas, and estimators from counts."""

from dowise.identification.identify import Estimator, estimators, identify

__all__ = ["Estimator", "estimators", "identify"]
