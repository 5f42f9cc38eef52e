"""`dowise …`: one small function a command; everything heavy is imported inside it."""

from dowise.cli import evidence, problems, races
from dowise.cli.group import main

__all__ = ["evidence", "main", "problems", "races"]
