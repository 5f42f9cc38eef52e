"""Factors of a problem, and the circuit from their entries to the rewards of all arms."""

from dowise.model.factors import Codes, FactorLayout
from dowise.model.model import Model, model_of

__all__ = ["Codes", "FactorLayout", "Model", "model_of"]
