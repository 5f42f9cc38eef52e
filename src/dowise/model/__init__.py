"""Where the numbers stand, and what follows from them: factors, circuits, values of all arms."""

from dowise.model.factors import Factors
from dowise.model.model import Codes, Model, model_of

__all__ = ["Codes", "Factors", "Model", "model_of"]
