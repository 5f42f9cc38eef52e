"""Posterior of a problem's factors, and the belief that users hold."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dowise.belief.belief import Belief
from dowise.belief.posterior import Posterior

if TYPE_CHECKING:
    from dowise.belief.evidence import Evidence as Evidence
    from dowise.belief.evidence import likely_soft_edges as likely_soft_edges

__all__ = ["Belief", "Posterior"]


def __getattr__(name: str) -> Any:
    if name in ("Evidence", "likely_soft_edges"):
        return getattr(importlib.import_module("dowise.belief.evidence"), name)
    raise AttributeError(f"module 'dowise.belief' has no attribute {name!r}")
