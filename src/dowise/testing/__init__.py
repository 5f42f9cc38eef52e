"""Conformance suites for custom stores."""

from dowise.testing.storage import check_storage

__all__ = ["check_storage"]
