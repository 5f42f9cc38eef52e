"""Numbers on the command line, called by names that people know."""

from __future__ import annotations

import click

__all__ = ["Number", "WholeNumber"]


class WholeNumber(click.IntRange):
    """From a least to a largest one, where they are given."""

    name = "whole number"


class Number(click.FloatRange):
    """From a least to a largest one, where they are given."""

    name = "number"
