"""`dowise …`: one small function a command; everything heavy is imported inside it."""

from dowise.cli import evidence, live, looks, problems, races, records, rehearse, serving, tokens
from dowise.cli.group import main

__all__ = [
    "evidence", "live", "looks", "main", "problems", "races", "records", "rehearse", "serving",
    "tokens",
]  # fmt: skip
