"""`dowise …`: one small function a command; everything heavy is imported inside it."""

<<<<<<< HEAD
from dowise.cli import evidence, live, looks, problems, races, records, rehearse, serving
from dowise.cli.group import main

__all__ = [
    "evidence", "live", "looks", "main", "problems", "races", "records", "rehearse", "serving",
=======
from dowise.cli import evidence, live, looks, problems, races, records, rehearse, tokens
from dowise.cli.group import main

__all__ = [
    "evidence", "live", "looks", "main", "problems", "races", "records", "rehearse", "tokens",
>>>>>>> 4472ef2fd6608d9f9f09ac1cc42d7d641ee472e2
]  # fmt: skip
