"""Evidence against the graph: records that are kept, and what they say of edges that it lacks."""

from dowise.belief.evidence.kept import KeptRecords
from dowise.belief.evidence.monitor import Monitor
from dowise.belief.evidence.report import Evidence

__all__ = ["Evidence", "KeptRecords", "Monitor"]
